//===- CublasLt.cpp - The functions of cuBLASLt that we call --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads them, once.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CublasLt.h"

#include "runtime/device/cuda/Libraries.h"

#include <cstdlib>
#include <string_view>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

struct Loaded {
  CublasLt functions;
  Error error;

  Loaded() {
    void *library = openLibrary({"libcublasLt.so.13", "libcublasLt.so.12"});
    if (!library) {
      error = userError("matrix products need libcublasLt.so.12 or .13; set "
                        "PENSTOCK_CUDA_PATH or install CUDA");
      return;
    }
#define PENSTOCK_FUNCTION(name, result, parameters)                            \
  functions.name = reinterpret_cast<decltype(functions.name)>(                 \
      findFunction(library, #name));                                           \
  if (!functions.name) {                                                       \
    error = userError("libcublasLt.so has no " #name                           \
                      "; matrix products need version 12 or 13");              \
    return;                                                                    \
  }
#include "runtime/device/cuda/CublasLt.def"
  }
};

} // namespace

Error cuda::checkProductEnvironment() {
  for (const char *name :
       {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"}) {
    const char *value = std::getenv(name);
    if (value && std::string_view(value) == "1")
      return userError("%s=1 in the environment would round the operands of "
                       "f32 matrix products; unset it, or compile with "
                       "--precision=tf32",
                       name);
  }
  return {};
}

Error cuda::loadCublasLt(const CublasLt *&result) {
  if (emulatedLibraries) {
    result = emulatedLibraries->cublasLt;
    return {};
  }
  static const Loaded loaded;
  result = &loaded.functions;
  return loaded.error;
}
