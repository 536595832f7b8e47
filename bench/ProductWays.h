//===- ProductWays.h - Ways to compute a matrix product ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What benchmarks compare: a product as the runtime computes it, and in one
// call by any of oneDNN's fast implementations.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_BENCH_PRODUCTWAYS_H
#define PENSTOCK_BENCH_PRODUCTWAYS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace penstock::bench {

/// Sizes and strides of a product.
struct Shape {
  std::vector<int64_t> sizes;   ///< The batch, then m, n, k.
  std::vector<int64_t> a, b, c; ///< One per batch dimension, and two.
  bool accumulate = false;

  uint32_t rank() const { return uint32_t(sizes.size() - 3); }
  int64_t m() const { return sizes[rank()]; }
  int64_t n() const { return sizes[rank() + 1]; }
  int64_t k() const { return sizes[rank() + 2]; }
  double flops() const;
  /// The same product of matrices one after the other.
  Shape plain() const;
};

/// On huge pages where the system grants them, as a program's arena is: the
/// products run faster there, so anything else would flatter us.
class Buffer {
public:
  Buffer(size_t count, float value);
  void fill(float value);
  float *data() const { return floats.get(); }

private:
  struct Free {
    void operator()(float *memory) const;
  };
  std::unique_ptr<float[], Free> floats;
  size_t count;
};

/// One way to compute a product, ready to run, with its best time so far.
struct Way {
  std::function<void(const float *a, const float *b, float *c)> run;
  double best = 1e30; ///< Seconds.
};

/// As programs do. Ends the process where that fails.
Way ownWay(const Shape &shape, int threads);
/// Lists each fast implementation of the library, which divides the product
/// over its threads by its own rules; none if it cannot describe the product.
std::vector<Way> libraryWays(const Shape &shape);

} // namespace penstock::bench

#endif // PENSTOCK_BENCH_PRODUCTWAYS_H
