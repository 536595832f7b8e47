//===- Cudnn.cpp - The functions of cuDNN that we call --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads them, once. The backend API is all in libcudnn_graph, which finds the
// libraries beside it.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Cudnn.h"

#include "runtime/device/cuda/Libraries.h"

using namespace penstock::runtime::cuda;

namespace {

struct Loaded {
  Cudnn functions;
  std::string error;

  Loaded() {
    void *library = openLibrary({"libcudnn_graph.so.9"});
    if (!library) {
      error =
          "convolutions need libcudnn_graph.so.9; set PENSTOCK_CUDA_PATH or "
          "install cuDNN 9";
      return;
    }
#define PENSTOCK_FUNCTION(name, result, parameters)                            \
  functions.name = reinterpret_cast<decltype(functions.name)>(                 \
      findFunction(library, #name));                                           \
  if (!functions.name) {                                                       \
    error = "libcudnn_graph.so.9 has no " #name;                               \
    return;                                                                    \
  }
#include "runtime/device/cuda/Cudnn.def"
  }
};

} // namespace

std::string penstock::runtime::cuda::loadCudnn(const Cudnn *&result) {
  if (emulatedLibraries) {
    result = emulatedLibraries->cudnn;
    return "";
  }
  static const Loaded loaded;
  result = &loaded.functions;
  return loaded.error;
}
