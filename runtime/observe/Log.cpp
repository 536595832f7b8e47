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

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace penstock::runtime;

Log::~Log() {
  if (stream)
    std::fclose(stream);
}

Error Log::open(const std::string &name) {
  path = name;
  auto failed = [&] {
    return userError("--log: cannot create '%s': %s", path.c_str(),
                     std::strerror(errno));
  };
  int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
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
  if (ftruncate(descriptor, 0) != 0)
    return failed();
  return {};
}

Error Log::write(int64_t step, double loss, double rate, double seconds) {
  if (!stream)
    return {};
  std::string text =
      std::isfinite(loss) ? format("%.9g", loss) : std::string("null");
  if (std::fprintf(stream,
                   "{\"step\": %lld, \"loss\": %s, \"lr\": %.9g, "
                   "\"seconds\": %.6f}\n",
                   (long long)step, text.c_str(), rate, seconds) < 0 ||
      std::fflush(stream) != 0)
    return userError("--log: cannot write '%s': %s", path.c_str(),
                     std::strerror(errno));
  return {};
}
