//===- ProgressLine.h - How far a training is, on a terminal ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line on stderr that is rewritten, when stderr is a terminal.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_COMMAND_PROGRESSLINE_H
#define PENSTOCK_RUNTIME_COMMAND_PROGRESSLINE_H

#include "runtime/run/Progress.h"

namespace penstock::runtime {

class ProgressLine : public Progress {
public:
  ProgressLine();
  void begin(int64_t total) override;
  void show(int64_t updates, double loss, double samplesPerSecond) override;
  void clear() override;

private:
  const bool isTerminal;
  bool isShown = false;
  int64_t total = 0, last = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_COMMAND_PROGRESSLINE_H
