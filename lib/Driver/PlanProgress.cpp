//===- PlanProgress.cpp - How far a search for plans is -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanProgress.h. How many plans there will be, nobody knows.
//===----------------------------------------------------------------------===//

#include "PlanProgress.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdint>

using namespace penstock;

PlanProgress::PlanProgress() {
  using Clock = std::chrono::steady_clock;
  constexpr double kQuietSeconds = 2;
  static const Clock::time_point begin = Clock::now();
  static int64_t compiled = 0;
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (seconds >= kQuietSeconds && llvm::errs().is_displayed()) {
    llvm::errs() << llvm::formatv("\rplanning: {0} plans compiled, {1:F0} s",
                                  compiled, seconds);
    llvm::errs().flush();
    isShown = true;
  }
  ++compiled;
}

PlanProgress::~PlanProgress() {
  if (isShown)
    llvm::errs() << "\r\033[K";
}
