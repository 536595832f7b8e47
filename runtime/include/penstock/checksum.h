//===- checksum.h - XXH3 of 128 bits ----------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds errors of disks and networks at the speed of a copy. It keeps no one
// from changing a file on purpose.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_CHECKSUM_H
#define PENSTOCK_CHECKSUM_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace penstock::runtime {

class Checksum {
public:
  /// In the order in which they are printed.
  using Bytes = std::array<uint8_t, 16>;

  Checksum();
  ~Checksum();
  void add(const void *data, uint64_t size);
  Bytes getBytes() const;
  /// 32 hexadecimal digits, as `xxhsum -H2` prints them.
  std::string getText() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

Checksum::Bytes getChecksum(const void *data, uint64_t size);
std::string getChecksumText(const void *data, uint64_t size);

} // namespace penstock::runtime

#endif // PENSTOCK_CHECKSUM_H
