//===- Gemm.h - Matrix products by oneDNN -----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All products of a device are prepared when the program opens; running one
// rebinds addresses. oneDNN is loaded only when a program needs it, so that
// --help and error messages do not wait for it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_GEMM_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_GEMM_H

#include "penstock/product.h"
#include "runtime/support/Error.h"

#include <optional>
#include <vector>

namespace penstock::runtime {

/// The products of one device. Prepared, run and destroyed on its thread.
class Gemms {
public:
  /// Destroys every product.
  void clear() { products.clear(); }

  /// `arena` is the device's. The library's scratch lies in it.
  Error prepare(const penstock_program &program, uint32_t device, char *arena);
  /// False when the library reports a failure.
  bool run(penstock_device *device, uint32_t id, const float *a, const float *b,
           float *c);

private:
  std::vector<std::optional<Product>> products; // none for other devices
  uint32_t threads = 1;
};

/// m x k by k x n, batched, for messages.
std::string shapeText(const penstock_gemm_descriptor &gemm);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_GEMM_H
