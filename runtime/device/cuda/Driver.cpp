//===- Driver.cpp - The functions of the CUDA driver that we call ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads them and starts the driver, once.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Driver.h"

#include "runtime/device/cuda/Libraries.h"

#include <cstdlib>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

/// Finds the functions of the installed driver.
static Error findFunctions(Driver &driver) {
  void *library = openLibrary({"libcuda.so.1"});
  if (!library)
    return userError("this program needs an NVIDIA driver: libcuda.so.1 was "
                     "not found");
#define PENSTOCK_FUNCTION(name, symbol, parameters)                            \
  driver.name =                                                                \
      reinterpret_cast<decltype(driver.name)>(findFunction(library, #symbol)); \
  if (!driver.name)                                                            \
    return userError("libcuda.so.1 has no " #symbol                            \
                     "; this program needs driver 525 or later");
#include "runtime/device/cuda/Driver.def"
  return {};
}

static Error start(const Driver &driver) {
  // Streams share queues of the GPU. With fewer than streams, one that waits
  // would hold up another.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  int status = driver.cuInit(0);
  if (status == CUDA_ERROR_NO_DEVICE)
    return userError("this program needs an NVIDIA GPU: the driver finds none");
  if (status)
    return userError("the NVIDIA driver does not start: %s",
                     describeStatus(driver, status).c_str());
  return {};
}

namespace {

struct Loaded {
  Driver found = {};
  const Driver *driver = nullptr;
  Error error;

  Loaded() {
    if (emulatedLibraries) {
      driver = emulatedLibraries->driver;
    } else {
      error = findFunctions(found);
      driver = &found;
    }
    if (!error)
      error = start(*driver);
  }
};

} // namespace

Error cuda::loadDriver(const Driver *&result) {
  static const Loaded loaded;
  result = loaded.driver;
  return loaded.error;
}

std::string cuda::describeStatus(const Driver &driver, int status) {
  const char *name = nullptr, *text = nullptr;
  if (driver.cuGetErrorName(status, &name) || !name)
    return format("error %d", status);
  if (driver.cuGetErrorString(status, &text) || !text)
    return name;
  return format("%s, %s", name, text);
}

Error cuda::describeFailure(const Driver &driver, int status,
                            const char *call) {
  std::string text = describeStatus(driver, status);
  if (status == CUDA_ERROR_OUT_OF_MEMORY)
    return doesNotFit("%s failed: %s", call, text.c_str());
  return defect("%s failed: %s", call, text.c_str());
}
