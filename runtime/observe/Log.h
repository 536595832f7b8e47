//===- Log.h - One JSON object per weight update ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stream behind --log. Each line is flushed, so that a reader can follow a
// run and loses nothing when it ends early.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_LOG_H
#define PENSTOCK_RUNTIME_OBSERVE_LOG_H

#include "runtime/support/Error.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::runtime {

class Log {
public:
  Log() = default;
  Log(const Log &) = delete;
  ~Log();

  /// Empties the file, or goes on behind what it says of the first
  /// `updates` updates of a run that ended.
  Error open(const std::string &path,
             std::optional<int64_t> updates = std::nullopt);
  bool isOpen() const { return stream; }
  /// `step` counts from 1. A loss that is not finite is written as null: JSON
  /// has no other word for it.
  Error write(int64_t step, double loss, double rate, double seconds);
  /// An evaluation after so many updates, as pairs of names and values.
  Error
  writeEvaluation(int64_t step,
                  const std::vector<std::pair<std::string, double>> &values);

private:
  Error writeLine(const std::string &line);

  std::string path;
  FILE *stream = nullptr;
  bool isResumed = false;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_LOG_H
