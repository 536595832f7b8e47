//===- Bytes.h - Values in messages -----------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers in the order of this machine's bytes, texts behind their length. A
// reader takes nothing on trust: what is cut or too long makes it fail, and all
// that it reads after that is zero.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_BYTES_H
#define PENSTOCK_RUNTIME_JOB_BYTES_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::runtime {

class ByteWriter {
public:
  template <typename T> ByteWriter &add(const T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
    return *this;
  }
  ByteWriter &addText(std::string_view text) {
    add(uint32_t(text.size()));
    bytes.append(text);
    return *this;
  }

  std::string bytes;
};

class ByteReader {
public:
  explicit ByteReader(std::string_view bytes) : bytes(bytes) {}

  template <typename T> T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (sizeof(T) > bytes.size()) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes.data(), sizeof(T));
    bytes.remove_prefix(sizeof(T));
    return value;
  }
  std::string takeText() {
    uint32_t size = take<uint32_t>();
    if (size > bytes.size()) {
      fail();
      return "";
    }
    std::string text(bytes.substr(0, size));
    bytes.remove_prefix(size);
    return text;
  }
  /// Takes a count of things that have at least `least` bytes each.
  uint32_t takeCount(uint64_t least) {
    uint32_t count = take<uint32_t>();
    if (count * least <= bytes.size())
      return count;
    fail();
    return 0;
  }

  uint64_t left() const { return bytes.size(); }
  /// All was there, and nothing is left.
  bool isComplete() const { return !hasFailed && bytes.empty(); }
  bool isGood() const { return !hasFailed; }

private:
  void fail() {
    hasFailed = true;
    bytes = {};
  }

  std::string_view bytes;
  bool hasFailed = false;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_BYTES_H
