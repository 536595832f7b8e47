//===- product.h - Matrix products by oneDNN --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product as several calls of the library, each by one thread: it divides a
// product over threads by other rules than over one, and rounds by them. The
// compiler asks here what scratch a product needs; the runtime computes it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PRODUCT_H
#define PENSTOCK_PRODUCT_H

#include "penstock/cpu.h"

#include <memory>
#include <optional>
#include <string>

namespace penstock::runtime {

/// How a product reads its weights in panels: descriptors that make these and
/// that multiply by them. None where the bits would be others.
struct PrepackedProduct {
  ProductCall prepack, product;
  uint64_t bytes;
  /// It multiplies faster so, whatever making them takes.
  bool gains;
};
std::optional<PrepackedProduct> prepackProduct(const ProductCall &gemm);

/// Parts of a product may be computed at the same time.
class Product {
public:
  /// An f32 product for at most so many threads; small ones have one part.
  Product(const ProductCall &descriptor, int64_t threads);
  Product(Product &&) noexcept;
  Product &operator=(Product &&) noexcept;
  ~Product();

  /// Why the library cannot compute it, or only slowly; empty if it can.
  const std::string &getError() const;
  int64_t getParts() const;
  /// For all parts together.
  uint64_t getScratchBytes() const;

  /// Makes it ready to run with its scratch at `scratch`; false if the library
  /// fails.
  bool prepare(char *scratch);
  /// Computes one part on the calling thread, which must be alone in calls of
  /// the library: a member of a team, or set to one thread.
  bool run(int64_t part, const float *a, const float *b, float *c) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace penstock::runtime

#endif // PENSTOCK_PRODUCT_H
