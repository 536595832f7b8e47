//===- Arena.cpp - All memory of one device -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mapped by the device's own thread, which also touches every page first: the
// memory is near its core, and the steady state faults no page in.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Arena.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

using namespace penstock::runtime;

Arena::~Arena() {
  if (mapped)
    munmap(mapped, mappedBytes);
}

Error Arena::allocate(uint32_t device,
                      const penstock_device_descriptor &descriptor) {
  constexpr uint64_t kHuge = 2 << 20;
  uint64_t alignment = std::max<uint64_t>(descriptor.arena_alignment, 4096);
  if (!std::has_single_bit(alignment))
    return defect("device %u: arena alignment %llu is no power of two", device,
                  (unsigned long long)descriptor.arena_alignment);
  if (descriptor.arena_bytes >= kHuge)
    alignment = std::max(alignment, kHuge);
  bytes = descriptor.arena_bytes;
  mappedBytes = std::max<uint64_t>(bytes, 1) + alignment;
  mapped = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    mapped = nullptr;
    return doesNotFit("device %u: cannot reserve its arena of %llu bytes: %s",
                      device, (unsigned long long)bytes, std::strerror(errno));
  }
  uintptr_t address = reinterpret_cast<uintptr_t>(mapped);
  aligned = static_cast<char *>(mapped) + (-address & (alignment - 1));
  if (bytes >= kHuge)
    madvise(aligned, bytes, MADV_HUGEPAGE); // advice: may be refused
  for (uint64_t at = 0; at < bytes; at += 4096)
    static_cast<volatile char *>(aligned)[at] = 0;
  return {};
}
