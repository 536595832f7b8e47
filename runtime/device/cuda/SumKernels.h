//===- SumKernels.h - Adds up on the GPU ------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of sums over devices, in one process or in several: each element is added up
// on one GPU, in the order of the summands.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_SUMKERNELS_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_SUMKERNELS_H

#include "runtime/device/cuda/Driver.h"

namespace penstock::runtime::cuda {

class SumKernels {
public:
  Error open(const Driver &driver);
  void close(const Driver &driver);
  bool isOpen() const { return module; }
  /// Stores the sums of `terms` rows of `count` elements, `stride` bytes apart.
  Error launch(const Driver &driver, bool isDouble, uint64_t from,
               uint64_t stride, uint64_t terms, uint64_t to, uint64_t count,
               Stream stream) const;

private:
  Module module = nullptr;
  Function functions[2] = {}; // of f32 and f64
};

/// Their code, for GPUs from sm_80 on.
extern const char *const kSumPtx;

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_SUMKERNELS_H
