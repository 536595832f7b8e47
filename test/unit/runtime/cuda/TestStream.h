//===- TestStream.h - A stream that runs when told --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In place of the emulated driver: calls of emulated libraries wait here, so
// that whatever they keep of their arguments too long shows.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_CUDA_TESTSTREAM_H
#define PENSTOCK_TEST_UNIT_RUNTIME_CUDA_TESTSTREAM_H

#include "runtime/device/emulated/Enqueue.h"

#include <cstddef>

namespace penstock::test {

/// The one stream.
runtime::cuda::Stream testStream();

/// Runs what waits on it; returns how many calls that were.
size_t runStream();

/// The address of host memory on the emulated GPU.
inline uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer) + runtime::emulated::kBias;
}

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_CUDA_TESTSTREAM_H
