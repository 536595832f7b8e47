//===- Log.cpp - One JSON object per weight update ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formatting happens on the observing thread. Nine digits tell any two f32
// values apart, so logs of equal runs are equal text but for `seconds`.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Log.h"

#include <cerrno>
#include <cmath>
#include <cstring>

using namespace penstock::runtime;

Log::~Log() {
  if (stream)
    std::fclose(stream);
}

Error Log::open(const std::string &name) {
  path = name;
  stream = std::fopen(path.c_str(), "we");
  if (!stream)
    return userError("--log: cannot create '%s': %s", path.c_str(),
                     std::strerror(errno));
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
