//===- ProgressLine.cpp - How far a training is ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// At most ten times a second: a terminal is slower than some models. A file or
// a pipe gets a line every ten seconds.
//===----------------------------------------------------------------------===//

#include "runtime/command/ProgressLine.h"

#include "runtime/support/Error.h"
#include "runtime/support/Wait.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace penstock::runtime;

static constexpr double kTerminalSeconds = 0.1, kLineSeconds = 10;

std::string penstock::runtime::durationText(double seconds) {
  // Of a run without an end in sight.
  constexpr double kMost = 1e9;
  if (!(seconds < kMost))
    return "?";
  auto whole = (long long)std::llround(std::max(seconds, 0.0));
  constexpr long long kMinute = 60, kHour = 3600;
  if (whole < kHour)
    return format("%lld:%02lld", whole / kMinute, whole % kMinute);
  return format("%lld:%02lld:%02lld", whole / kHour, whole % kHour / kMinute,
                whole % kMinute);
}

ProgressLine::ProgressLine() : isTerminal(isatty(STDERR_FILENO)) {}

void ProgressLine::begin(const Plan &next) {
  plan = next;
  // The first line of a file has something to say.
  if (!hasBegun && !isTerminal)
    last = nanoseconds();
  hasBegun = true;
}

std::string ProgressLine::describe() const {
  std::string text =
      format("step %lld of %lld", (long long)updates, (long long)plan.updates);
  if (plan.passUpdates > 0)
    text += format(", epoch %.*f",
                   plan.passUpdates > 1 && updates % plan.passUpdates ? 2 : 0,
                   double(updates) / double(plan.passUpdates));
  text += format(", loss %.6g, %.0f samples/s", loss, samplesPerSecond);
  if (updates < plan.updates)
    text += ", " +
            durationText(double(plan.updates - updates) *
                         double(plan.updateSamples) / samplesPerSecond) +
            " left";
  return text;
}

/// A line that is longer than the terminal is wide would not go away.
void ProgressLine::rewrite() {
  constexpr int64_t kBar = 20;
  int64_t done = plan.updates ? kBar * updates / plan.updates : kBar;
  std::string text = "[" + std::string(done, '#') +
                     std::string(kBar - done, '.') + "] " + describe();
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
    text.resize(std::min<size_t>(text.size(), size.ws_col - 1));
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  isShown = true;
}

void ProgressLine::show(int64_t done, double lossOfLast, double rate) {
  updates = done;
  loss = lossOfLast;
  samplesPerSecond = rate;
  if (plan.isOff)
    return;
  double seconds =
      plan.seconds.value_or(isTerminal ? kTerminalSeconds : kLineSeconds);
  int64_t now = nanoseconds();
  if (double(now - last) < seconds * 1e9)
    return;
  last = now;
  if (isTerminal)
    rewrite();
  else
    std::fprintf(stderr, "%s\n", describe().c_str());
}

void ProgressLine::clear() {
  if (isShown)
    std::fprintf(stderr, "\r\033[K");
  isShown = false;
}

void ProgressLine::finish() {
  if (!isTerminal || plan.isOff || updates == 0)
    return;
  rewrite();
  std::fprintf(stderr, "\n");
  isShown = false;
}
