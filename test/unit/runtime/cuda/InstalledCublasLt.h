//===- InstalledCublasLt.h - cuBLASLt without a GPU -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The descriptors of the library of this machine. What needs a GPU does
// nothing.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_CUDA_INSTALLEDCUBLASLT_H
#define PENSTOCK_TEST_UNIT_RUNTIME_CUDA_INSTALLEDCUBLASLT_H

#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/emulated/Libraries.h"

#include <string>
#include <utility>

namespace penstock::test {

/// Products that such functions were asked for.
inline int productsAsked = 0;

/// Sets `functions` to those of the library. Returns why there is none, or an
/// empty string.
inline std::string loadInstalledCublasLt(runtime::cuda::CublasLt &functions) {
  using namespace runtime::cuda;
  const Libraries *libraries = std::exchange(emulatedLibraries, nullptr);
  const CublasLt *installed = nullptr;
  runtime::Error error = loadCublasLt(installed);
  emulatedLibraries = libraries;
  if (error)
    return error.text;
  functions = *installed;
  functions.cublasLtCreate = runtime::emulated::cublasLt.cublasLtCreate;
  functions.cublasLtDestroy = runtime::emulated::cublasLt.cublasLtDestroy;
  functions.cublasLtMatmulAlgoGetHeuristic =
      [](CublasLtHandle, MatmulDescriptor, MatrixLayout, MatrixLayout,
         MatrixLayout, MatrixLayout, MatmulPreference, int, MatmulChoice *,
         int *count) {
        *count = 1;
        return int(CUBLAS_STATUS_SUCCESS);
      };
  functions.cublasLtMatmulAlgoConfigGetAttribute =
      runtime::emulated::cublasLt.cublasLtMatmulAlgoConfigGetAttribute;
  functions.cublasLtMatmulAlgoCheck =
      [](CublasLtHandle, MatmulDescriptor, MatrixLayout, MatrixLayout,
         MatrixLayout, MatrixLayout, const MatmulAlgorithm *,
         MatmulChoice *result) {
        *result = {};
        return int(CUBLAS_STATUS_SUCCESS);
      };
  functions.cublasLtMatmul =
      [](CublasLtHandle, MatmulDescriptor, const void *, const void *,
         MatrixLayout, const void *, MatrixLayout, const void *, const void *,
         MatrixLayout, void *, MatrixLayout, const MatmulAlgorithm *, void *,
         size_t, Stream) {
        ++productsAsked;
        return int(CUBLAS_STATUS_SUCCESS);
      };
  return "";
}

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_CUDA_INSTALLEDCUBLASLT_H
