//===- Stream.h - Many bytes from one process to another --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In pieces, of which few are on their way: neither side ever holds what is
// streamed. One of the two is rank 0.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_STREAM_H
#define PENSTOCK_RUNTIME_JOB_STREAM_H

#include "runtime/job/Control.h"

namespace penstock::runtime {

/// `tag` and the one after it belong to the stream.
class StreamWriter {
public:
  StreamWriter(Control &control, int rank, uint16_t tag)
      : control(control), rank(rank), tag(tag) {}

  void write(const void *data, uint64_t size);
  /// Returns when the other side has taken all.
  void finish();

private:
  void sendPiece();
  void awaitPiece();

  Control &control;
  const int rank;
  const uint16_t tag;
  std::string piece;
  uint64_t sent = 0, taken = 0;
};

class StreamReader {
public:
  StreamReader(Control &control, int rank, uint16_t tag)
      : control(control), rank(rank), tag(tag) {}

  /// Reads so many bytes. False where the processes end instead.
  bool read(void *data, uint64_t size);

private:
  Control &control;
  const int rank;
  const uint16_t tag;
  std::string piece;
  uint64_t at = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_STREAM_H
