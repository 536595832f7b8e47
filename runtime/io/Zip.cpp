//===- Zip.cpp - The members of a zip file --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the central directory at the end of the file (PKWARE's APPNOTE,
// sections 4.3.6 to 4.3.16), in its 64-bit form, too. Every number is checked
// against the size of the file before it is used.
//===----------------------------------------------------------------------===//

#include "runtime/io/Zip.h"

#include <algorithm>

using namespace penstock::runtime;

namespace {

constexpr uint64_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56,
                   kEntrySize = 46, kLocalSize = 30;
constexpr uint32_t kEndMark = 0x06054b50, kLocatorMark = 0x07064b50,
                   kEnd64Mark = 0x06064b50, kEntryMark = 0x02014b50,
                   kLocalMark = 0x04034b50;
constexpr uint64_t kIn64 = 0xffffffff; // the number is in the 64-bit form

/// Little-endian numbers; 0 beyond the end.
class Bytes {
public:
  explicit Bytes(std::string_view file) : file(file) {}

  uint64_t read(uint64_t at, unsigned size) const {
    uint64_t value = 0;
    for (unsigned i = 0; i < size && has(at, size); ++i)
      value |= uint64_t(uint8_t(file[at + i])) << (8 * i);
    return value;
  }
  bool has(uint64_t at, uint64_t size) const {
    return at <= file.size() && size <= file.size() - at;
  }

private:
  std::string_view file;
};

/// Takes what is too large for an entry from its 64-bit field.
void widen(const Bytes &bytes, uint64_t at, uint64_t length, uint64_t &size,
           uint64_t &packed, uint64_t &local) {
  constexpr uint64_t kField64 = 1;
  for (uint64_t end = at + length; at + 4 <= end;) {
    uint64_t kind = bytes.read(at, 2),
             fieldEnd = at + 4 + bytes.read(at + 2, 2);
    at += 4;
    if (kind == kField64)
      for (uint64_t *number : {&size, &packed, &local})
        if (*number == kIn64 && at + 8 <= fieldEnd) {
          *number = bytes.read(at, 8);
          at += 8;
        }
    at = fieldEnd;
  }
}

} // namespace

bool penstock::runtime::readZip(std::string_view file,
                                std::vector<ZipMember> &members) {
  Bytes bytes(file);

  // 1. The end of the directory, behind which may be a comment.
  constexpr uint64_t kMostComment = 0xffff;
  if (file.size() < kEndSize)
    return false;
  uint64_t end = file.size() - kEndSize;
  uint64_t least = end - std::min(end, kMostComment);
  while (bytes.read(end, 4) != kEndMark)
    if (end-- == least)
      return false;
  uint64_t count = bytes.read(end + 10, 2), at = bytes.read(end + 16, 4);
  if (end >= kLocatorSize &&
      bytes.read(end - kLocatorSize, 4) == kLocatorMark) {
    uint64_t end64 = bytes.read(end - kLocatorSize + 8, 8);
    if (!bytes.has(end64, kEnd64Size) || bytes.read(end64, 4) != kEnd64Mark)
      return false;
    count = bytes.read(end64 + 32, 8);
    at = bytes.read(end64 + 48, 8);
  }

  // 2. Its entries, and where the bytes of each begin.
  for (; count > 0; --count) {
    if (!bytes.has(at, kEntrySize) || bytes.read(at, 4) != kEntryMark)
      return false;
    uint64_t nameLength = bytes.read(at + 28, 2);
    uint64_t extraLength = bytes.read(at + 30, 2);
    uint64_t packed = bytes.read(at + 20, 4), size = bytes.read(at + 24, 4);
    uint64_t local = bytes.read(at + 42, 4);
    if (!bytes.has(at + kEntrySize, nameLength + extraLength))
      return false;
    widen(bytes, at + kEntrySize + nameLength, extraLength, size, packed,
          local);
    ZipMember member;
    member.name = file.substr(at + kEntrySize, nameLength);
    constexpr uint64_t kEncrypted = 1;
    member.isStored = bytes.read(at + 10, 2) == 0 && size == packed &&
                      !(bytes.read(at + 8, 2) & kEncrypted);
    if (!bytes.has(local, kLocalSize) || bytes.read(local, 4) != kLocalMark)
      return false;
    member.offset = local + kLocalSize + bytes.read(local + 26, 2) +
                    bytes.read(local + 28, 2);
    member.size = packed;
    if (!bytes.has(member.offset, member.size))
      return false;
    members.push_back(std::move(member));
    at += kEntrySize + nameLength + extraLength + bytes.read(at + 32, 2);
  }
  return true;
}
