//===- Log.cpp - One JSON object per weight update ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formatting happens on the observing thread. Nine digits tell any two f32
// values apart, so logs of equal runs are equal text but for `seconds`. A lock
// on the file keeps the lines of two runs apart.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Log.h"
#include "runtime/observe/JsonText.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace penstock::runtime;

Log::~Log() {
  if (stream)
    std::fclose(stream);
}

/// Where the lines of the first updates end. What is behind them, a run that
/// ended wrote after its last checkpoint: it comes again, and perhaps in other
/// lines.
static off_t findEnd(int descriptor, int64_t updates) {
  int copy = dup(descriptor);
  FILE *stream = copy < 0 ? nullptr : fdopen(copy, "r");
  if (!stream)
    return 0;
  char *line = nullptr;
  size_t room = 0;
  off_t end = 0;
  while (true) {
    ssize_t length = getline(&line, &room, stream);
    long long step = 0;
    if (length <= 0 || line[length - 1] != '\n' ||
        std::sscanf(line, "{\"step\": %lld", &step) != 1 || step > updates)
      break;
    end += length;
  }
  std::free(line);
  std::fclose(stream);
  return end;
}

Error Log::open(const std::string &name, std::optional<int64_t> updates) {
  path = name;
  auto failed = [&] {
    return userError("--log: cannot create '%s': %s", path.c_str(),
                     std::strerror(errno));
  };
  int descriptor = ::open(
      path.c_str(), (updates ? O_RDWR : O_WRONLY) | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return failed();
  stream = fdopen(descriptor, "w");
  if (!stream) {
    Error error = failed();
    ::close(descriptor);
    return error;
  }
  struct stat info;
  if (fstat(descriptor, &info) != 0)
    return failed();
  // A device or a pipe may have several writers.
  if (!S_ISREG(info.st_mode))
    return {};
  // Emptied only by the one that holds it. File systems without locks let all.
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return userError("--log: another run is writing '%s'; choose another name",
                     path.c_str());
  off_t end = updates ? findEnd(descriptor, *updates) : 0;
  if (ftruncate(descriptor, end) != 0 || lseek(descriptor, end, SEEK_SET) < 0)
    return failed();
  isResumed = updates.has_value();
  return {};
}

Error Log::writeLine(const std::string &line) {
  if (!stream)
    return {};
  if (std::fprintf(stream, "%s\n", line.c_str()) < 0 ||
      std::fflush(stream) != 0)
    return userError("--log: cannot write '%s': %s", path.c_str(),
                     std::strerror(errno));
  return {};
}

Error Log::write(int64_t step, double loss, double rate, double seconds) {
  if (!stream)
    return {};
  return writeLine(
      format("{\"step\": %lld, \"loss\": %s, \"lr\": %.9g, "
             "\"seconds\": %.6f%s}",
             (long long)step, jsonNumber(loss).c_str(), rate, seconds,
             std::exchange(isResumed, false) ? ", \"resumed\": true" : ""));
}

Error Log::writeEvaluation(
    int64_t step, const std::vector<std::pair<std::string, double>> &values) {
  std::string text;
  for (const auto &[name, value] : values)
    text += format("%s\"%s\": %s", text.empty() ? "" : ", ", name.c_str(),
                   jsonNumber(value).c_str());
  return writeLine(format("{\"step\": %lld, \"eval\": {%s}}", (long long)step,
                          text.c_str()));
}
