//===- OutputArrays.cpp - What inference writes ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of a file are reserved before it is mapped: a full disk is an
// error here, and not a signal in the middle of a run.
//===----------------------------------------------------------------------===//

#include "runtime/io/OutputArrays.h"
#include "runtime/support/Roles.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace penstock::runtime;

OutputArray::~OutputArray() {
  if (mapped)
    munmap(mapped, length);
}

Error OutputArray::failed(const char *action) {
  return userError("--outputs: cannot %s '%s': %s", action, path.c_str(),
                   std::strerror(errno));
}

Error OutputArray::create(int64_t rows, int64_t batch) {
  // 1. The header.
  const penstock_tensor &type = channel.type;
  shape.assign(type.shape, type.shape + type.rank);
  if (batch)
    shape[0] = rows;
  std::string text;
  if (Error error = npyHeader(type.element, shape, text))
    return error;
  header = text.size();
  length = header + (batch ? type.bytes / batch * rows : type.bytes);

  // 2. The file.
  if (!file.create(path, O_RDWR))
    return failed("create");
  errno = posix_fallocate(file.get(), 0, off_t(length));
  if (errno == 0) {
    void *place = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED,
                       file.get(), 0);
    if (place != MAP_FAILED)
      mapped = static_cast<char *>(place);
  }
  if (!mapped)
    return failed("write");
  std::memcpy(mapped, text.data(), header);
  return {};
}

std::span<char> OutputArray::getRoom(int64_t n) {
  uint64_t bytes = channel.type.bytes;
  uint64_t at = std::min(header + uint64_t(n) * bytes, length);
  return {mapped + at, std::min(bytes, length - at)};
}

Error OutputArray::commit() {
  int status = msync(mapped, length, MS_ASYNC);
  munmap(mapped, length);
  mapped = nullptr;
  if (status != 0 || !file.close())
    return failed("write");
  return file.rename(path) ? Error() : failed("rename to");
}

OutputArrays::~OutputArrays() {
  arrays.clear();
  if (!created.empty())
    rmdir(created.c_str());
}

Error OutputArrays::open(const penstock_program &program,
                         const std::string &folder, const DataSet &data) {
  struct stat info;
  if (stat(folder.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode))
      return userError("--outputs: '%s' is not a folder", folder.c_str());
  } else if (mkdir(folder.c_str(), 0777) != 0) {
    return userError("--outputs: cannot create folder '%s': %s", folder.c_str(),
                     std::strerror(errno));
  } else {
    created = folder;
  }
  return create(program, folder, data);
}

Error OutputArrays::openUnnamed(const penstock_program &program,
                                const DataSet &data) {
  const char *folder = std::getenv("TMPDIR");
  return create(program, folder && *folder ? folder : "/tmp", data);
}

Error OutputArrays::create(const penstock_program &program,
                           const std::string &folder, const DataSet &data) {
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &channel = program.channels[i];
    // A stage with replicas has one per replica.
    if (!isSink(channel) || channel.offset)
      continue;
    // 1. Its name.
    std::string name = channel.endpoint;
    std::replace(name.begin(), name.end(), '/', '_');
    std::string path = folder;
    path.append("/").append(name).append(".npy");
    for (const auto &other : arrays)
      if (other->path == path)
        return userError("--outputs: outputs '%s' and '%s' would both be '%s'",
                         other->channel.endpoint, channel.endpoint,
                         path.c_str());

    // 2. Its size: samples, or one message.
    const penstock_tensor &type = channel.type;
    bool hasSamples = !data.isWhole() && type.rank > 0 &&
                      type.shape[0] == data.microbatchSize();
    bool isOneMessage =
        data.isWhole() || data.sampleCount() == data.microbatchSize();
    if (!hasSamples && !isOneMessage)
      return userError(
          "--outputs: output '%s' has shape %s, one value for a microbatch of "
          "%lld samples and none for each sample; give exactly %lld samples, "
          "not %lld",
          channel.endpoint, shapeText(type.shape, type.rank).c_str(),
          (long long)data.microbatchSize(), (long long)data.microbatchSize(),
          (long long)data.sampleCount());
    arrays.push_back(std::make_unique<OutputArray>(channel, path));
    if (Error error = arrays.back()->create(
            data.sampleCount(), hasSamples ? data.microbatchSize() : 0))
      return error;
  }
  return {};
}

Error OutputArrays::commit() {
  for (const auto &array : arrays) {
    if (Error error = array->commit())
      return error;
    created.clear();
  }
  return {};
}

OutputArray *OutputArrays::find(const penstock_channel &channel) {
  for (const auto &array : arrays)
    if (isSink(channel) &&
        !std::strcmp(array->channel.endpoint, channel.endpoint))
      return array.get();
  return nullptr;
}
