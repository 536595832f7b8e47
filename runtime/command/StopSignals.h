//===- StopSignals.h - Signals that end a training --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first SIGINT or SIGTERM is a request, the second one ends the process.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_COMMAND_STOPSIGNALS_H
#define PENSTOCK_RUNTIME_COMMAND_STOPSIGNALS_H

namespace penstock::runtime {

/// From now on, such a signal is a request. One that is ignored stays so.
void catchStopSignals();

/// The signal that came, or 0.
int getStopSignal();

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_COMMAND_STOPSIGNALS_H
