//===- SampleArray.h - The samples of one input -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An array along its first axis, in one mapped file or in several: .npy files,
// members of .npz files, tensors of .safetensors files, and raw bytes of a type
// that is said. What a sample is divided by when it is gathered belongs to it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_SAMPLEARRAY_H
#define PENSTOCK_RUNTIME_IO_SAMPLEARRAY_H

#include "runtime/io/Npy.h"
#include "runtime/io/SampleStream.h"

#include <memory>

namespace penstock::runtime {

class SampleArray {
public:
  uint32_t element = 0; // as in abi.h
  std::vector<int64_t> shape;
  /// Samples are gathered as f32, divided by this; 0: as they are.
  double divisor = 0;

  /// Opens what `spec` says: - for standard input, FILE, or several with commas
  /// or as a pattern, each with :MEMBER of an .npz or .safetensors file or
  /// :TYPE[N,..] of raw bytes, and at the end :/DIVISOR. `what` starts
  /// messages.
  Error open(const std::string &spec, const char *what);

  /// Where a sample is; `run` is how many follow it in one piece, with itself.
  const char *find(int64_t sample, int64_t &run) const;
  /// The bytes of a sample.
  uint64_t sampleBytes() const { return bytes; }
  /// All of it, where it is in one piece; else null.
  const char *data() const {
    return parts.size() == 1 ? parts.front().array.data : nullptr;
  }
  /// Samples will be read in no order.
  void setRandom();
  /// Returns true if a file of it may not be in memory.
  bool isLarge() const;
  /// The stream that it comes from; null for files.
  SampleStream *getStream() const { return stream.get(); }
  /// Begins to read a sample of such a file. Returns true if it was in memory.
  bool prefetch(int64_t sample) const;
  /// Begins to bring a sample from memory into the caches.
  void fetch(int64_t sample) const;
  /// The memory of this process does not count what has been read.
  void giveBackPages() const;
  /// Its pieces, in their order.
  std::vector<const NpyArray *> arrays() const;
  /// The files that it was opened from.
  std::vector<std::string> paths() const;

private:
  struct Part {
    NpyArray array;
    int64_t begin; // its first sample
  };

  const Part &findPart(int64_t sample) const;
  Error add(const std::string &path, const std::string &member,
            const char *what);

  std::vector<Part> parts;
  std::unique_ptr<SampleStream> stream;
  uint64_t bytes = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_SAMPLEARRAY_H
