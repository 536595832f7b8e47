//===- SampleStream.h - Samples from standard input -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An .npy array that comes through a pipe: every sample once, in order. It is
// written to reserved addresses when somebody waits for it, and its pages go
// when nobody needs them any more.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_SAMPLESTREAM_H
#define PENSTOCK_RUNTIME_IO_SAMPLESTREAM_H

#include "runtime/io/Npy.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace penstock::runtime {

class SampleStream {
public:
  ~SampleStream();

  /// Reads the header. `what` starts messages, here and later. Sets all but the
  /// file of `array`. There is one standard input, and one stream of it.
  Error open(const char *what, NpyArray &array);

  /// Sets the number of readers, which take all samples or every n-th.
  void setReaders(size_t count) { readers = count; }

  /// Reads until all samples before `end` are there. A stream that ends before
  /// ends the process, with a message: nobody can go on.
  void waitFor(int64_t end);
  /// A reader needs nothing before sample `begin` any more.
  void release(const void *reader, int64_t begin);

private:
  std::string flag;
  std::mutex mutex;
  char *memory = nullptr;
  uint64_t mapped = 0;
  uint64_t sampleBytes = 0;
  int64_t samples = 0;
  uint64_t filled = 0, freed = 0; ///< In bytes.
  size_t readers = 0;
  std::map<const void *, int64_t> needs; ///< From here on, by reader.
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_SAMPLESTREAM_H
