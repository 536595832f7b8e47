//===- PinnedRings.cpp - Memory of the host that a GPU copies -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A slot is used again when its event says that its copy is done.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/PinnedRings.h"

#include <algorithm>
#include <cstring>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

//===----------------------------------------------------------------------===//
// To the GPU
//===----------------------------------------------------------------------===//

int InputRing::add(const Driver &driver, uint64_t bytes, uint32_t count) {
  Ring &ring = rings[bytes];
  for (uint32_t i = 0; i < count; ++i) {
    Slot &slot = ring.slots.emplace_back();
    if (int status = driver.cuMemHostAlloc(&slot.memory, bytes,
                                           CU_MEMHOSTALLOC_PORTABLE))
      return status;
    if (int status =
            driver.cuEventCreate(&slot.copied, CU_EVENT_DISABLE_TIMING))
      return status;
  }
  return CUDA_SUCCESS;
}

int InputRing::send(const Driver &driver, Address at, const void *host,
                    uint64_t bytes, Event free, Event done, Stream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  Ring &ring = rings.at(bytes);
  Slot &slot = ring.slots[ring.next++ % ring.slots.size()];
  if (int status = driver.cuEventSynchronize(slot.copied))
    return status;
  std::memcpy(slot.memory, host, bytes);
  int status = driver.cuStreamWaitEvent(stream, free, 0);
  if (!status)
    status = driver.cuMemcpyHtoDAsync(at, slot.memory, bytes, stream);
  if (!status)
    status = driver.cuEventRecord(slot.copied, stream);
  return status ? status : driver.cuEventRecord(done, stream);
}

void InputRing::clear(const Driver &driver) {
  for (auto &[bytes, ring] : rings)
    for (Slot &slot : ring.slots) {
      if (slot.memory)
        (void)driver.cuMemFreeHost(slot.memory);
      if (slot.copied)
        (void)driver.cuEventDestroy(slot.copied);
    }
  rings.clear();
}

//===----------------------------------------------------------------------===//
// At once
//===----------------------------------------------------------------------===//

int HostCopies::open(const Driver &driver) {
  int status = CUDA_SUCCESS;
  for (Piece &piece : pieces) {
    void *memory = nullptr;
    if (!status)
      status =
          driver.cuMemHostAlloc(&memory, kPieceBytes, CU_MEMHOSTALLOC_PORTABLE);
    piece.memory = static_cast<char *>(memory);
    if (!status)
      status = driver.cuEventCreate(&piece.copied, CU_EVENT_DISABLE_TIMING);
  }
  return status;
}

int HostCopies::upload(const Driver &driver, Address at, const void *host,
                       uint64_t bytes, Stream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  const char *from = static_cast<const char *>(host);
  for (uint64_t i = 0; i * kPieceBytes < bytes; ++i) {
    const Piece &piece = pieces[i % 2];
    uint64_t done = i * kPieceBytes, size = std::min(kPieceBytes, bytes - done);
    if (int status = driver.cuEventSynchronize(piece.copied))
      return status;
    std::memcpy(piece.memory, from + done, size);
    if (int status =
            driver.cuMemcpyHtoDAsync(at + done, piece.memory, size, stream))
      return status;
    if (int status = driver.cuEventRecord(piece.copied, stream))
      return status;
  }
  return driver.cuStreamSynchronize(stream);
}

int HostCopies::download(const Driver &driver, void *host, Address at,
                         uint64_t bytes, Stream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  char *to = static_cast<char *>(host);
  uint64_t count = (bytes + kPieceBytes - 1) / kPieceBytes;
  auto sizeOf = [&](uint64_t i) {
    return std::min(kPieceBytes, bytes - i * kPieceBytes);
  };
  auto start = [&](uint64_t i) -> int {
    if (i >= count)
      return CUDA_SUCCESS;
    const Piece &piece = pieces[i % 2];
    if (int status = driver.cuMemcpyDtoHAsync(
            piece.memory, at + i * kPieceBytes, sizeOf(i), stream))
      return status;
    return driver.cuEventRecord(piece.copied, stream);
  };
  int status = start(0);
  for (uint64_t i = 0; i < count && !status; ++i) {
    status = start(i + 1);
    if (!status)
      status = driver.cuEventSynchronize(pieces[i % 2].copied);
    if (!status)
      std::memcpy(to + i * kPieceBytes, pieces[i % 2].memory, sizeOf(i));
  }
  return status;
}

void HostCopies::clear(const Driver &driver) {
  for (Piece &piece : pieces) {
    if (piece.memory)
      (void)driver.cuMemFreeHost(piece.memory);
    if (piece.copied)
      (void)driver.cuEventDestroy(piece.copied);
    piece = {};
  }
}

//===----------------------------------------------------------------------===//
// To the host
//===----------------------------------------------------------------------===//

int OutputRing::open(const Driver &driver) {
  void *memory = nullptr;
  if (int status = driver.cuMemHostAlloc(&memory, kSize * sizeof(uint64_t),
                                         CU_MEMHOSTALLOC_PORTABLE))
    return status;
  values = static_cast<uint64_t *>(memory);
  for (Slot &slot : slots)
    if (int status =
            driver.cuEventCreate(&slot.arrived, CU_EVENT_DISABLE_TIMING))
      return status;
  return CUDA_SUCCESS;
}

int OutputRing::send(const Driver &driver, SinkRing &sink, int64_t n,
                     Address at, uint64_t bytes, Stream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  if (end - first == kSize)
    if (int status = deliverArrived(driver, first + 1))
      return status;
  Slot &slot = slots[end % kSize];
  slot.sink = &sink;
  slot.n = n;
  slot.bytes = bytes;
  if (int status =
          driver.cuMemcpyDtoHAsync(&values[end % kSize], at, bytes, stream))
    return status;
  ++end;
  return driver.cuEventRecord(slot.arrived, stream);
}

/// Waits for those before `until`, and takes what has arrived after them and
/// finds room.
int OutputRing::deliverArrived(const Driver &driver, uint64_t until) {
  for (; first != end; ++first) {
    Slot &slot = slots[first % kSize];
    if (first >= until && slot.sink->isFull())
      return CUDA_SUCCESS;
    int status = first < until ? driver.cuEventSynchronize(slot.arrived)
                               : driver.cuEventQuery(slot.arrived);
    if (status == CUDA_ERROR_NOT_READY)
      return CUDA_SUCCESS;
    if (status)
      return status;
    uint64_t bits = 0;
    std::memcpy(&bits, &values[first % kSize], slot.bytes);
    slot.sink->push(slot.n, bits);
  }
  return CUDA_SUCCESS;
}

int OutputRing::drain(const Driver &driver) {
  std::lock_guard<std::mutex> lock(mutex);
  return deliverArrived(driver, end);
}

int OutputRing::poll(const Driver &driver) {
  // Who observes makes room in the sinks, and must not wait for it.
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  return lock ? deliverArrived(driver, first) : CUDA_SUCCESS;
}

void OutputRing::clear(const Driver &driver) {
  if (values)
    (void)driver.cuMemFreeHost(values);
  values = nullptr;
  for (Slot &slot : slots)
    if (slot.arrived)
      (void)driver.cuEventDestroy(slot.arrived);
}
