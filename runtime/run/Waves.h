//===- Waves.h - Programs whose updates are waves ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of --method=hetpipe: an update of the runtime is several of each worker,
// whose optimizers have state of their own.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_WAVES_H
#define PENSTOCK_RUNTIME_RUN_WAVES_H

#include "penstock/abi.h"
#include "runtime/support/Error.h"

#include <algorithm>

namespace penstock::runtime {

/// Whether workers of the program exchange waves.
inline bool hasWorkers(const penstock_program &program) {
  return std::any_of(
      program.channels, program.channels + program.channel_count,
      [](const penstock_channel &channel) { return channel.own_queue != 0; });
}

/// Refuses to write or read a checkpoint: what counts updates of a worker, and
/// what workers but the first have, is in none.
inline Error refuseCheckpoints(const penstock_program &program,
                               const char *what) {
  bool hasWaves =
      std::any_of(program.variables, program.variables + program.variable_count,
                  [](const penstock_variable &variable) {
                    return variable.version_step > 1;
                  });
  if (!hasWaves && !hasWorkers(program))
    return {};
  return userError("%s: runs of --method=%s write and read no checkpoints; use "
                   "--save, and go on from that model",
                   what, program.method);
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_WAVES_H
