//===- EventFile.h - Scalars that TensorBoard reads -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of events in TensorBoard's format: records with their length and
// checksums, each with a message of Google's protocol buffers. Of these it
// writes the version of the file, and scalars.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_EVENTFILE_H
#define PENSTOCK_RUNTIME_OBSERVE_EVENTFILE_H

#include "runtime/support/Error.h"

#include <cstdio>
#include <span>
#include <string_view>

namespace penstock::runtime {

/// CRC-32C (Castagnoli) of `bytes`.
uint32_t crc32c(std::string_view bytes);

struct Scalar {
  std::string tag;
  float value;
};

class EventFile {
public:
  EventFile() = default;
  EventFile(const EventFile &) = delete;
  ~EventFile();

  /// Begins a new file in a folder, which is made if it is missing. A folder
  /// may have files of several runs of one training.
  Error open(const std::string &folder);
  bool isOpen() const { return stream != nullptr; }
  /// `seconds` is the time of the clock on the wall.
  Error add(int64_t step, double seconds, std::span<const Scalar> scalars);
  /// Makes all that was added readable.
  Error flush();

private:
  Error write(const std::string &event);

  std::string path;
  FILE *stream = nullptr;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_EVENTFILE_H
