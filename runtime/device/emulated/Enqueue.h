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

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

namespace penstock::runtime::emulated {

/// Puts work on a stream; it runs when the stream gets there.
void enqueue(cuda::Stream stream, std::function<void()> work);

// For a library that other processes have a part in, and that has a thread. It
// shares the lock of the driver, which its thread takes and its work has.

std::mutex &getLock();
/// With the lock: puts work on a stream that is done when `isDone` says so. It
/// is asked with the lock, from when the stream gets there.
void enqueueRemote(cuda::Stream stream, std::function<bool()> isDone);
/// With the lock: whoever waits for what is done elsewhere looks again.
void notifyWaiting();
/// With the lock: runs an item of any stream. False if none can run.
bool stepStreams();
/// The GPU of the calling thread; -1: it has none.
int getCurrentGpu();
/// With the lock: whether these bytes are memory of that GPU.
bool isOnDevice(const void *address, uint64_t bytes);
/// Allocates memory of that GPU by mappings, which cuMemFree does not free.
/// Returns a status, as the next one.
int allocateMapped(uint64_t *address, size_t bytes);
int freeMapped(uint64_t address);
/// With the lock: returns the first byte of the mapped memory of that GPU that
/// holds all these, or 0.
uint64_t findMapped(const void *address, uint64_t bytes);
/// With the lock: whether it is a stream of that GPU, which is not captured.
bool takesRemote(cuda::Stream stream);

/// Addresses of the emulated GPU are those of the host and so much, so that the
/// host faults where it takes one for a pointer.
inline constexpr uint64_t kBias = uint64_t(1) << 46;

/// Returns the host address of an address of the emulated GPU.
template <typename T> T *atAddress(T *address) {
  return reinterpret_cast<T *>(reinterpret_cast<uint64_t>(address) - kBias);
}

} // namespace penstock::runtime::emulated

#endif // PENSTOCK_RUNTIME_DEVICE_EMULATED_ENQUEUE_H
