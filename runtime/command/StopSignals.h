//===- StopSignals.h - Signals that a training obeys ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first SIGINT or SIGTERM is a request to end, the second one ends the
// process. SIGUSR1 is a request for a checkpoint.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_COMMAND_STOPSIGNALS_H
#define PENSTOCK_RUNTIME_COMMAND_STOPSIGNALS_H

namespace penstock::runtime {

/// From now on, such a signal is a request. One that is ignored stays so.
void catchStopSignals();

/// The signal that came, or 0.
int getStopSignal();

/// From now on, SIGUSR1 asks for a checkpoint.
void catchCheckpointSignal();

/// Whether it came since this was asked.
bool takeCheckpointSignal();

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_COMMAND_STOPSIGNALS_H
