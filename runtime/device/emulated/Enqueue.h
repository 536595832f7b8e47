//===- Enqueue.h - Work on streams of the emulated driver -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What emulated libraries need of the emulated driver.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_EMULATED_ENQUEUE_H
#define PENSTOCK_RUNTIME_DEVICE_EMULATED_ENQUEUE_H

#include "runtime/device/cuda/Stream.h"

#include <cstdint>
#include <functional>

namespace penstock::runtime::emulated {

/// Puts work on a stream; it runs when the stream gets there.
void enqueue(cuda::Stream stream, std::function<void()> work);

/// Addresses of the emulated GPU are those of the host and so much, so that the
/// host faults where it takes one for a pointer.
inline constexpr uint64_t kBias = uint64_t(1) << 46;

/// What is at an address of the emulated GPU.
template <typename T> T *atAddress(T *address) {
  return reinterpret_cast<T *>(reinterpret_cast<uint64_t>(address) - kBias);
}

} // namespace penstock::runtime::emulated

#endif // PENSTOCK_RUNTIME_DEVICE_EMULATED_ENQUEUE_H
