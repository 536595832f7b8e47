//===- DriverHeaderTest.cpp - Our declarations of the CUDA driver ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants and signatures are those of the installed header, or this does not
// compile. What the library exports is that of the toolkit's stub of it.
//===----------------------------------------------------------------------===//

#include "SameInterface.h"
#include "runtime/device/cuda/Driver.h"

// The header makes a macro of it.
static constexpr int kPortable =
    penstock::runtime::cuda::CU_MEMHOSTALLOC_PORTABLE;

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace cuda = penstock::runtime::cuda;
using penstock::test::SameInterface;

// The header turns a plain name into that of the version that it declares, so
// our table is read with these names, too, and the symbol must come out.
#undef cuEventElapsedTime
// The header's version came with drivers of 12.8; it has the same signature.
extern "C" CUresult cuEventElapsedTime(float *, CUevent, CUevent);

#define STRING(text) #text
#define TEXT(name) STRING(name)
#define PENSTOCK_FUNCTION(name, symbol, parameters)                            \
  static_assert(SameInterface<int(*) parameters, decltype(&::name)>::value);   \
  static_assert(std::string_view(TEXT(name)) == #symbol);
using cuda::CaptureMode, cuda::DriverContext, cuda::Event, cuda::Function,
    cuda::Graph, cuda::GraphExec, cuda::Module, cuda::Stream;
#include "runtime/device/cuda/Driver.def"

#define SAME(name) static_assert(int(cuda::name) == int(::name))
SAME(CUDA_SUCCESS);
SAME(CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_ERROR_NOT_INITIALIZED);
SAME(CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(CUDA_ERROR_NO_DEVICE);
SAME(CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_ERROR_INVALID_IMAGE);
SAME(CUDA_ERROR_INVALID_CONTEXT);
SAME(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CUDA_ERROR_INVALID_HANDLE);
SAME(CUDA_ERROR_ILLEGAL_STATE);
SAME(CUDA_ERROR_NOT_FOUND);
SAME(CUDA_ERROR_NOT_READY);
SAME(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
SAME(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME(CUDA_ERROR_CAPTURED_EVENT);
SAME(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_STREAM_NON_BLOCKING);
SAME(CU_EVENT_BLOCKING_SYNC);
SAME(CU_EVENT_DISABLE_TIMING);
static_assert(kPortable == CU_MEMHOSTALLOC_PORTABLE);

TEST(CudaHeaders, DriverExportsTheTable) {
  void *library = dlopen(PENSTOCK_CUDA_STUB, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    GTEST_SKIP() << "no stub of libcuda.so in the toolkit";
#define PENSTOCK_FUNCTION(name, symbol, parameters)                            \
  EXPECT_NE(dlsym(library, #symbol), nullptr) << #symbol;
#include "runtime/device/cuda/Driver.def"
  // The lookup tells names apart.
  EXPECT_EQ(dlsym(library, "cuMemAlloc_v3"), nullptr);
}
