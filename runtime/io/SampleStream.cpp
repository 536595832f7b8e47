//===- SampleStream.cpp - Samples from standard input ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See SampleStream.h.
//===----------------------------------------------------------------------===//

#include "runtime/io/SampleStream.h"

#include "penstock/abi.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace penstock::runtime;

/// Reads up to `size` bytes, fewer only at the end of the stream; -1 on errors.
static ssize_t readAll(char *to, uint64_t size) {
  uint64_t done = 0;
  while (done < size) {
    ssize_t count = ::read(STDIN_FILENO, to + done, size - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return -1;
    if (count == 0)
      break;
    done += uint64_t(count);
  }
  return ssize_t(done);
}

SampleStream::~SampleStream() {
  if (memory)
    munmap(memory, mapped);
}

Error SampleStream::open(const char *what, NpyArray &array) {
  // 1. Who writes, and that nobody reads already.
  static std::atomic<bool> isTaken = false;
  if (isTaken.exchange(true))
    return userError("%s: standard input holds one array, which another input "
                     "reads",
                     what);
  if (isatty(STDIN_FILENO))
    return userError("%s: standard input is a terminal; samples come through a "
                     "pipe, as in: ./samples | ./program --data x=-",
                     what);
  flag = what;

  // 2. The header, whose length is in its first bytes.
  constexpr uint64_t kStart = 12, kLongest = 1 << 20;
  std::string header(kStart, '\0');
  ssize_t count = readAll(header.data(), kStart);
  if (count < 0)
    return userError("%s: standard input cannot be read: %s", what,
                     std::strerror(errno));
  header.resize(size_t(count));
  uint64_t whole = npyHeaderBytes(header);
  if (whole > kLongest)
    return userError("%s: the header of standard input is too long", what);
  if (whole > kStart) {
    header.resize(whole);
    count = readAll(header.data() + kStart, whole - kStart);
    header.resize(kStart + size_t(std::max<ssize_t>(count, 0)));
  }
  uint64_t start = 0, bytes = 0;
  if (Error error =
          parseNpyHeader(header, "standard input", what, array, start, bytes))
    return error;
  if (array.shape.empty() || array.shape[0] == 0)
    return userError("%s: standard input has no axis of samples", what);

  // 3. Addresses for all of it, of which little will ever be in memory.
  samples = array.shape[0];
  sampleBytes = bytes / uint64_t(samples);
  mapped = std::max<uint64_t>(bytes, 1);
  void *addresses = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED)
    return userError("%s: there is no room for an array %s", what,
                     shapeText(array.shape.data(), array.shape.size()).c_str());
  memory = static_cast<char *>(addresses);
  array.data = memory;
  return {};
}

void SampleStream::waitFor(int64_t end) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t wanted = uint64_t(std::min(end, samples)) * sampleBytes;
  if (wanted <= filled)
    return;
  ssize_t count = readAll(memory + filled, wanted - filled);
  int problem = count < 0 ? errno : 0;
  filled += uint64_t(std::max<ssize_t>(count, 0));
  if (filled == wanted)
    return;
  std::string text;
  if (problem)
    text = format("cannot be read: %s", std::strerror(problem));
  else if (filled % sampleBytes)
    text =
        format("ended within sample %llu of %lld, after %llu of its %llu "
               "bytes",
               (unsigned long long)(filled / sampleBytes), (long long)samples,
               (unsigned long long)(filled % sampleBytes),
               (unsigned long long)sampleBytes);
  else
    text =
        format("ended after %llu of %lld samples",
               (unsigned long long)(filled / sampleBytes), (long long)samples);
  std::fprintf(stderr, "error: %s: standard input %s\n", flag.c_str(),
               text.c_str());
  std::fflush(stderr);
  ::_exit(PENSTOCK_USER_ERROR);
}

void SampleStream::release(const void *reader, int64_t begin) {
  std::lock_guard<std::mutex> lock(mutex);
  needs[reader] = begin;
  if (needs.size() < readers)
    return;
  int64_t least = samples;
  for (const auto &[each, need] : needs)
    least = std::min(least, need);
  // Whole pages, and many at a time.
  constexpr uint64_t kPiece = 1 << 22;
  uint64_t end = uint64_t(least) * sampleBytes / kPiece * kPiece;
  if (end <= freed)
    return;
  madvise(memory + freed, end - freed, MADV_DONTNEED);
  freed = end;
}
