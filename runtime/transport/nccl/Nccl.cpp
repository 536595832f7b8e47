//===- Nccl.cpp - The functions of NCCL that we call ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads them, once.
//===----------------------------------------------------------------------===//

#include "runtime/transport/nccl/Nccl.h"

#include "runtime/device/cuda/Libraries.h"

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

static Error findFunctions(Nccl &nccl) {
  void *library = openLibrary({"libnccl.so.2"});
  if (!library)
    return userError("--transport=nccl: libnccl.so.2 was not found; set "
                     "PENSTOCK_CUDA_PATH, install NCCL, or use "
                     "--transport=mpi");
#define PENSTOCK_FUNCTION(name, result, parameters)                            \
  nccl.name =                                                                  \
      reinterpret_cast<decltype(nccl.name)>(findFunction(library, #name));     \
  if (!nccl.name)                                                              \
    return userError("--transport=nccl: libnccl.so.2 has no " #name            \
                     "; install NCCL 2.19 or later");
#include "runtime/transport/nccl/Nccl.def"
  return {};
}

/// "2.28.9".
static std::string describeVersion(int version) {
  // Up to 2.8.
  if (version < 10000)
    return format("%d.%d.%d", version / 1000, version / 100 % 10,
                  version % 100);
  return format("%d.%d.%d", version / 10000, version / 100 % 100,
                version % 100);
}

Error cuda::loadNccl(const Nccl *&result, std::string &name) {
  static Nccl found;
  if (emulatedLibraries) {
    result = emulatedLibraries->nccl;
  } else {
    static const Error error = findFunctions(found);
    if (error)
      return error;
    result = &found;
  }
  int version = 0;
  if (int status = result->ncclGetVersion(&version))
    return defect("--transport=nccl: ncclGetVersion failed: %s",
                  result->ncclGetErrorString(status));
  if (version < kLeastNccl)
    return userError("--transport=nccl: this is NCCL %s; install 2.19 or later",
                     describeVersion(version).c_str());
  name = "NCCL " + describeVersion(version);
  return {};
}
