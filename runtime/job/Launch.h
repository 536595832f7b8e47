//===- Launch.h - Who started this process ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the environment says, before anyone is asked: mpirun, srun and torchrun
// set variables.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_LAUNCH_H
#define PENSTOCK_RUNTIME_JOB_LAUNCH_H

#include "runtime/support/Error.h"

namespace penstock::runtime {

enum class Launcher { None, OpenMpi, Hydra, Slurm, Torchrun };

struct LaunchFacts {
  Launcher launcher = Launcher::None;
  int rank = 0, size = 1;
  /// On this host; -1 where the launcher does not say.
  int localRank = -1, localSize = -1;
};

/// The name of a launcher as users know it, "mpirun of Open MPI".
const char *getName(Launcher launcher);

using GetVariable = char *(*)(const char *name);

/// Reads the variables of the launchers, those of MPI first. Fails where they
/// contradict each other. `get` is getenv but in tests.
Error readEnvironment(LaunchFacts &facts, GetVariable get);
/// Reads RANK and its relatives alone, as torchrun sets them.
Error readTorchrun(LaunchFacts &facts, GetVariable get);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_LAUNCH_H
