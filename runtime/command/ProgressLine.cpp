//===- ProgressLine.cpp - How far a training is, on a terminal ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// At most ten times a second: a terminal is slower than some models.
//===----------------------------------------------------------------------===//

#include "runtime/command/ProgressLine.h"

#include "runtime/support/Wait.h"

#include <cstdio>
#include <unistd.h>

using namespace penstock::runtime;

ProgressLine::ProgressLine() : isTerminal(isatty(STDERR_FILENO)) {}

void ProgressLine::begin(int64_t updates) {
  total = updates;
  last = 0;
}

void ProgressLine::show(int64_t updates, double loss, double samplesPerSecond) {
  int64_t now = nanoseconds();
  if (!isTerminal || now - last < 100000000)
    return;
  last = now;
  isShown = true;
  std::fprintf(stderr, "\r\033[Kstep %lld of %lld, loss %.6g, %.0f samples/s",
               (long long)updates, (long long)total, loss, samplesPerSecond);
}

void ProgressLine::clear() {
  if (isShown)
    std::fprintf(stderr, "\r\033[K");
  isShown = false;
}
