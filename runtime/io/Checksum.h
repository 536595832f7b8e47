//===- Checksum.h - XXH3 of 128 bits ----------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds errors of disks and networks at the speed of a copy. It keeps no one
// from changing a file on purpose.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_CHECKSUM_H
#define PENSTOCK_RUNTIME_IO_CHECKSUM_H

#include <cstdint>
#include <memory>
#include <string>

namespace penstock::runtime {

class Checksum {
public:
  Checksum();
  ~Checksum();
  void add(const void *data, uint64_t size);
  /// 32 hexadecimal digits, as `xxhsum -H2` prints them.
  std::string getText() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

std::string checksumOf(const void *data, uint64_t size);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_CHECKSUM_H
