//===- CublasLt.h - The functions of cuBLASLt that we call ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our own declarations of its C API, the same from version 12 on: no header of
// CUDA is needed to build. test/unit/runtime/cuda/HeadersTest.cpp compares them
// with the real ones where these are installed.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_CUBLASLT_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_CUBLASLT_H

#include "runtime/device/cuda/Stream.h"
#include "runtime/support/Error.h"

#include <cstddef>
#include <cstdint>

namespace penstock::runtime::cuda {

// Opaque to us.
using CublasLtHandle = struct CublasLtState *;
using MatrixLayout = struct MatrixLayoutState *;
using MatmulDescriptor = struct MatmulState *;
using MatmulPreference = struct MatmulPreferenceState *;

struct MatmulAlgorithm {
  uint64_t data[8];
};

/// An algorithm that the heuristic offers.
struct MatmulChoice {
  MatmulAlgorithm algorithm;
  size_t workspaceBytes;
  int status;
  float waves;
  int reserved[4];
};

enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,

  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,

  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUDA_R_32F = 0,
  CUDA_R_16BF = 14,

  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          // int32_t
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, // int64_t

  CUBLASLT_MATMUL_DESC_TRANSA = 3,       // int32_t
  CUBLASLT_MATMUL_DESC_TRANSB = 4,       // int32_t
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,     // uint32_t
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8, // const void *, a row of D's columns

  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,

  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   // uint64_t
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, // uint32_t
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, // uint32_t, as the others
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,

  CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME = 3, // uint32_t
  CUBLASLT_REDUCTION_SCHEME_NONE = 0,
  CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2
};

/// The table of functions.
struct CublasLt {
#define PENSTOCK_FUNCTION(name, result, parameters)                            \
  result(*name) parameters = nullptr;
#include "runtime/device/cuda/CublasLt.def"
};

/// Sets `result` to the functions, which live as long as the process. Fails
/// where there is no library.
Error loadCublasLt(const CublasLt *&result);

/// Fails where the environment asks the library to round the operands of f32
/// products.
Error checkProductEnvironment();

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_CUBLASLT_H
