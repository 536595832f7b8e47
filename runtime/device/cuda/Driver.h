//===- Driver.h - The functions of the CUDA driver that we call -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our own declarations of the driver API, as drivers from version 525 on have
// it: no header of CUDA is needed to build. test/unit/runtime/cuda compares
// them with the real ones where these are installed.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_DRIVER_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_DRIVER_H

#include "runtime/device/cuda/Stream.h"
#include "runtime/support/Error.h"

#include <cstddef>
#include <cstdint>

namespace penstock::runtime::cuda {

// Opaque to us. A GPU is an int, an address of its memory a uint64_t.
using DriverContext = struct ContextState *;
using Module = struct ModuleState *;
using Function = struct FunctionState *;
using Event = struct EventState *;
using Graph = struct GraphState *;
using GraphExec = struct GraphExecState *;

/// Statuses.
enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
};

/// Which calls fail while a stream is captured.
enum CaptureMode : int {
  /// Those of the thread that captures which the graph could not repeat.
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
};

/// Facts about a GPU, and flags.
enum {
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,

  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_MEMHOSTALLOC_PORTABLE = 1,
};

/// The table of functions.
struct Driver {
#define PENSTOCK_FUNCTION(name, symbol, parameters) int(*name) parameters;
#include "runtime/device/cuda/Driver.def"
};

/// Sets `result` to the functions, which live as long as the process, and
/// starts the driver. Fails where there is no driver, or one that is too old.
Error loadDriver(const Driver *&result);

/// Returns the name of a status and what the driver says about it.
std::string describeStatus(const Driver &driver, int status);

/// Returns the error of a call that failed with `status`: the GPU has not
/// enough memory, or the call is a defect.
Error describeFailure(const Driver &driver, int status, const char *call);

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_DRIVER_H
