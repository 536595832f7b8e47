//===- CopyPastCaches.cpp - Copies of more than caches hold ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Such stores take whole cache lines; what is before the first and behind the
// last one is copied as usual.
//===----------------------------------------------------------------------===//

#include "runtime/support/CopyPastCaches.h"

#include "runtime/support/InstructionSets.h"

#include <algorithm>
#include <cstring>

using namespace penstock::runtime;

#if defined(__x86_64__) && defined(__clang__)
PENSTOCK_INLINE static void copyLines(char *to, const char *from,
                                      uint64_t bytes) {
  constexpr uint64_t kLine = 64, kLines = 4;
  typedef uint64_t Line __attribute__((vector_size(kLine)));
  uint64_t at = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % kLine);
  std::memcpy(to, from, at);
  auto copy = [&](uint64_t offset) __attribute__((always_inline)) {
    Line line;
    std::memcpy(&line, from + offset, kLine);
    __builtin_nontemporal_store(line, reinterpret_cast<Line *>(to + offset));
  };
  for (; at + kLines * kLine <= bytes; at += kLines * kLine)
    for (uint64_t i = 0; i < kLines; ++i)
      copy(at + i * kLine);
  for (; at + kLine <= bytes; at += kLine)
    copy(at);
  std::memcpy(to + at, from + at, bytes - at);
  // They come in no order with other stores.
  __builtin_ia32_sfence();
}

PENSTOCK_FOR_INSTRUCTION_SETS(
    void, copyPastCaches, (void *to, const void *from, uint64_t bytes),
    (to, from, bytes),
    copyLines(static_cast<char *>(to), static_cast<const char *>(from), bytes);)
#else
void penstock::runtime::copyPastCaches(void *to, const void *from,
                                       uint64_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif
