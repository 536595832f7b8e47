//===- ProgressLine.h - How far a training is -------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On a terminal, a line on stderr that is rewritten and stays in the end;
// elsewhere a line from time to time.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_COMMAND_PROGRESSLINE_H
#define PENSTOCK_RUNTIME_COMMAND_PROGRESSLINE_H

#include "runtime/run/Progress.h"

#include <string>

namespace penstock::runtime {

class ProgressLine : public Progress {
public:
  ProgressLine();
  void begin(const Plan &plan) override;
  void show(int64_t updates, double loss, double samplesPerSecond) override;
  void clear() override;
  void finish() override;

private:
  std::string describe() const;
  void rewrite();

  const bool isTerminal;
  bool isShown = false, hasBegun = false;
  Plan plan = {};
  int64_t last = 0; // when a line was written, in nanoseconds
  int64_t updates = 0;
  double loss = 0, samplesPerSecond = 0;
};

/// 75 as "1:15", 7265 as "2:01:05".
std::string durationText(double seconds);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_COMMAND_PROGRESSLINE_H
