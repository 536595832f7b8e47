//===- Stream.cpp - Many bytes from one process to another ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader answers each piece when it has taken it.
//===----------------------------------------------------------------------===//

#include "runtime/job/Stream.h"

#include <algorithm>
#include <cstring>

using namespace penstock::runtime;

constexpr uint64_t kPiece = 1 << 20;
/// Pieces that are on their way.
constexpr uint64_t kWindow = 4;

void StreamWriter::awaitPiece() {
  // Where there is no answer, the process ends.
  control.receive(rank, tag + 1);
  ++taken;
}

void StreamWriter::sendPiece() {
  if (sent - taken >= kWindow)
    awaitPiece();
  control.send(rank, tag, piece);
  piece.clear();
  ++sent;
}

void StreamWriter::write(const void *data, uint64_t size) {
  const char *bytes = static_cast<const char *>(data);
  while (size) {
    uint64_t part = std::min(size, kPiece - piece.size());
    piece.append(bytes, part);
    bytes += part;
    size -= part;
    if (piece.size() == kPiece)
      sendPiece();
  }
}

void StreamWriter::finish() {
  if (!piece.empty())
    sendPiece();
  while (taken < sent)
    awaitPiece();
}

bool StreamReader::read(void *data, uint64_t size) {
  char *bytes = static_cast<char *>(data);
  while (size) {
    if (at == piece.size()) {
      auto next = control.receive(rank, tag);
      if (!next)
        return false;
      control.send(rank, tag + 1, "");
      piece = std::move(*next);
      at = 0;
    }
    uint64_t part = std::min<uint64_t>(size, piece.size() - at);
    std::memcpy(bytes, piece.data() + at, part);
    at += part;
    bytes += part;
    size -= part;
  }
  return true;
}
