//===- EpilogueTrial.h - Tries epilogues of products ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that adds a bias to a product, or bounds it by zero, may do so with
// other bits than kernels: drop NaN, keep numbers that are flushed elsewhere,
// or add up in another order. Then results would depend on the cut, as ops of
// another stage are always kernels. So each product is tried before a program
// begins.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_EPILOGUETRIAL_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_EPILOGUETRIAL_H

#include "penstock/abi.h"
#include "penstock/cuda.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/transport/DeviceMemory.h"

#include <functional>
#include <vector>

namespace penstock::runtime::cuda {

/// The result of max(sum + bias, 0), or a part of it, by the instructions of
/// kernels: subnormal numbers are zero, NaN is kept.
float applyEpilogue(float sum, float bias, const penstock_cuda_gemm &epilogue);

/// Tries products in memory that nothing else uses yet, aligned to 256 bytes.
class EpilogueTrial {
public:
  EpilogueTrial(const Driver &driver, Stream stream, Address memory,
                uint64_t bytes)
      : driver(driver), stream(stream), memory(memory), bytes(bytes) {}

  /// Computes a product on the stream, with its epilogue if `isWhole`. Returns
  /// a status of the library.
  struct Operands {
    Address a, b, c, bias, workspace;
  };
  using Multiply = std::function<int(const Operands &operands, bool isWhole)>;

  /// Returns true if the epilogue has the bits of kernels; not where the memory
  /// is too small to try, or a call fails. A GPU that has failed says so in
  /// whatever is called next.
  bool run(const penstock_gemm_descriptor &gemm,
           const penstock_cuda_gemm &epilogue, uint64_t workspaceBytes,
           const Multiply &multiply) const;

  Stream getStream() const { return stream; }

private:
  bool copy(Address to, const std::vector<float> &values) const;
  bool read(Address from, std::vector<float> &values) const;

  const Driver &driver;
  Stream stream;
  Address memory;
  uint64_t bytes;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_EPILOGUETRIAL_H
