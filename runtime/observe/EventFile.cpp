//===- EventFile.cpp - Scalars that TensorBoard reads ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The format of tensorflow/core/lib/io/record_writer.h and of the messages
// Event and Summary of tensorflow/core.
//===----------------------------------------------------------------------===//

#include "runtime/observe/EventFile.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <unistd.h>

using namespace penstock::runtime;

uint32_t penstock::runtime::crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value & 1 ? value >> 1 ^ 0x82f63b78u : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  uint32_t value = ~0u;
  for (char c : bytes)
    value = value >> 8 ^ kTable[(value ^ uint8_t(c)) & 0xff];
  return ~value;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// The beginning of a field: its number and how its value is written.
enum Wire : uint32_t { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };

static void addVarint(std::string &to, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to += char(value | 0x80);
  to += char(value);
}

static void addKey(std::string &to, uint32_t field, Wire wire) {
  addVarint(to, field << 3 | wire);
}

template <typename T> static void addPlain(std::string &to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}

static void addBytes(std::string &to, uint32_t field, std::string_view bytes) {
  addKey(to, field, kBytes);
  addVarint(to, bytes.size());
  to += bytes;
}

/// Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
static std::string beginEvent(double seconds) {
  std::string event;
  addKey(event, 1, kEight);
  addPlain(event, seconds);
  return event;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

EventFile::~EventFile() {
  if (stream)
    std::fclose(stream);
}

Error EventFile::open(const std::string &folder) {
  std::error_code status;
  std::filesystem::create_directories(folder, status);
  if (!std::filesystem::is_directory(folder))
    return userError("--tensorboard: '%s' is no folder, and cannot become one",
                     folder.c_str());
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  time_t now = time(nullptr);
  path = format("%s/events.out.tfevents.%010lld.%s.%d", folder.c_str(),
                (long long)now, host, int(getpid()));
  stream = std::fopen(path.c_str(), "wbe");
  if (!stream)
    return userError("--tensorboard: cannot create '%s': %s", path.c_str(),
                     std::strerror(errno));
  std::string event = beginEvent(double(now));
  addBytes(event, 3, "brain.Event:2");
  if (Error error = write(event))
    return error;
  return flush();
}

Error EventFile::write(const std::string &event) {
  auto mask = [](std::string_view bytes) {
    uint32_t value = crc32c(bytes);
    return (value >> 15 | value << 17) + 0xa282ead8u;
  };
  std::string record;
  addPlain(record, uint64_t(event.size()));
  addPlain(record, mask(record));
  record += event;
  addPlain(record, mask(event));
  if (std::fwrite(record.data(), record.size(), 1, stream) != 1)
    return userError("--tensorboard: cannot write '%s': %s", path.c_str(),
                     std::strerror(errno));
  return {};
}

/// Summary: value = 1, of tag = 1 and simple_value = 2.
Error EventFile::add(int64_t step, double seconds,
                     std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar &scalar : scalars) {
    std::string value;
    addBytes(value, 1, scalar.tag);
    addKey(value, 2, kFour);
    addPlain(value, scalar.value);
    addBytes(summary, 1, value);
  }
  std::string event = beginEvent(seconds);
  addKey(event, 2, kVarint);
  addVarint(event, uint64_t(step));
  addBytes(event, 5, summary);
  return write(event);
}

Error EventFile::flush() {
  if (std::fflush(stream) == 0)
    return {};
  return userError("--tensorboard: cannot write '%s': %s", path.c_str(),
                   std::strerror(errno));
}
