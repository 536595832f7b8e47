//===- CublasLtHeaderTest.cpp - Our declarations of cuBLASLt --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants, structs and signatures are those of the installed header, or this
// does not compile.
//===----------------------------------------------------------------------===//

#include "SameInterface.h"
#include "runtime/device/cuda/CublasLt.h"

#include <cublasLt.h>
#include <gtest/gtest.h>

namespace cuda = penstock::runtime::cuda;
using penstock::test::SameInterface;

#define PENSTOCK_FUNCTION(name, result, parameters)                            \
  static_assert(SameInterface<decltype(cuda::CublasLt::name),                  \
                              decltype(&::name)>::value);
#include "runtime/device/cuda/CublasLt.def"

#define SAME(name) static_assert(int(cuda::name) == int(::name))
SAME(CUBLAS_STATUS_SUCCESS);
SAME(CUBLAS_STATUS_INVALID_VALUE);
SAME(CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CUBLAS_OP_N);
SAME(CUBLAS_OP_T);
SAME(CUBLAS_COMPUTE_32F);
SAME(CUDA_R_32F);
SAME(CUDA_R_16BF);
SAME(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CUBLASLT_EPILOGUE_DEFAULT);
SAME(CUBLASLT_EPILOGUE_RELU);
SAME(CUBLASLT_EPILOGUE_BIAS);
static_assert((cuda::CUBLASLT_EPILOGUE_RELU | cuda::CUBLASLT_EPILOGUE_BIAS) ==
              int(::CUBLASLT_EPILOGUE_RELU_BIAS));
SAME(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
SAME(CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);

static_assert(sizeof(cuda::MatmulAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cuda::MatmulChoice) ==
              sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cuda::MatmulChoice, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cuda::MatmulChoice, status) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

// The comparison tells signatures apart.
static_assert(SameInterface<int (*)(char *, long), int (*)(void *, size_t)>());
static_assert(!SameInterface<int (*)(char *, long), int (*)(void *, int)>());
static_assert(!SameInterface<int (*)(char *, long), int (*)(long, void *)>());
static_assert(!SameInterface<int (*)(char *, long), int (*)(char *)>());
static_assert(!SameInterface<void (*)(char *), int (*)(char *)>());

TEST(CudaHeaders, CublasLt) { EXPECT_GE(CUBLAS_VERSION, 120000); }
