//===- cuda.h - Configs of library calls on GPUs ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The struct that `config` of a product or convolution on a GPU points to. The
// compiler writes it from #cuda.gemm and #cuda.conv; nothing but the GPU's
// device reads it. The workspace is the scratch of the call.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_CUDA_H
#define PENSTOCK_CUDA_H

#include "penstock/abi.h"

/* How cuBLASLt computes a product. `is_tf32`: from operands rounded to 10 bits
 * of mantissa. `has_bias`, `has_relu`: the epilogue of the call, which the
 * runtime tries when a program opens. */
typedef struct {
  int64_t is_tf32;
  int64_t has_bias;
  int64_t has_relu;
} penstock_cuda_gemm;

/* A knob of an engine of cuDNN. */
typedef struct {
  int64_t type;
  int64_t value;
} penstock_cuda_knob;

/* An engine of version `cudnn_version` of cuDNN that computes the convolution
 * within its scratch, and its knobs, which follow the struct. Of an `engine` of
 * -1, one is chosen when the program opens. `is_direct`: it adds up the
 * products of the definition. `is_tf32`: it may round operands. */
typedef struct {
  int64_t is_direct;
  int64_t is_tf32;
  int64_t engine;
  int64_t cudnn_version;
  int64_t knob_count;
} penstock_cuda_conv;

namespace penstock::runtime::cuda {

/// The alignment that libraries require of their workspace, in bytes.
inline constexpr uint64_t kWorkspaceAlignment = 256;

/// The scratch that has room for so much workspace wherever it begins.
constexpr uint64_t getScratchBytes(uint64_t workspaceBytes) {
  return workspaceBytes ? workspaceBytes + kWorkspaceAlignment : 0;
}
/// The workspace in so much scratch; not more where it begins better aligned,
/// as algorithms are chosen by it.
constexpr uint64_t getWorkspaceBytes(uint64_t scratchBytes) {
  return scratchBytes > kWorkspaceAlignment ? scratchBytes - kWorkspaceAlignment
                                            : 0;
}
/// Where it begins.
constexpr uint64_t getWorkspace(uint64_t scratch) {
  return scratch + -scratch % kWorkspaceAlignment;
}

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_CUDA_H
