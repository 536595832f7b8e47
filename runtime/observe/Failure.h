//===- Failure.h - The end of a run that cannot go on -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A failure in the steady state: the first one is printed with every device's
// position, and the process ends at once with its exit code. Other threads may
// be blocked, so nothing is unwound; output files are still temporary then.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_FAILURE_H
#define PENSTOCK_RUNTIME_OBSERVE_FAILURE_H

#include "runtime/observe/Position.h"

#include <string>

namespace penstock::runtime {

[[noreturn, gnu::format(printf, 3, 4)]] void
fail(const Positions &positions, int code, const char *pattern, ...);

/// Ends the process in other ways, where it is one of several. Returns where
/// that is not possible.
class FailureHandler {
public:
  virtual ~FailureHandler() = default;
  virtual void fail(int code, const char *sentence) = 0;
};

/// Null: the process is alone.
void setFailureHandler(FailureHandler *handler);

/// Returns one line per device: what it runs and what it waits for.
std::string describe(const Positions &positions);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_FAILURE_H
