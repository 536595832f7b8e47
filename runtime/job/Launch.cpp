//===- Launch.cpp - Who started this process ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table of variables by launcher. Slurm's are those of a step: a script of
// sbatch has the others, too, and is one process.
//===----------------------------------------------------------------------===//

#include "runtime/job/Launch.h"

#include <charconv>
#include <cstring>

using namespace penstock::runtime;

namespace {

struct Variables {
  Launcher launcher;
  const char *rank, *size, *localRank, *localSize;
};

constexpr Variables kTorchrun = {Launcher::Torchrun, "RANK", "WORLD_SIZE",
                                 "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Variables kLaunchers[] = {
    {Launcher::OpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::Hydra, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS"},
    {Launcher::Slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
     nullptr},
    kTorchrun};

Error readNumber(GetVariable get, const char *name, int least, int &value) {
  const char *text = get(name);
  if (!text)
    return userError("%s is not set", name);
  const char *end = text + std::strlen(text);
  auto [stop, status] = std::from_chars(text, end, value);
  if (status != std::errc() || stop != end || value < least)
    return userError("%s is '%s', which is not a whole number of at least %d",
                     name, text, least);
  return {};
}

Error read(const Variables &names, LaunchFacts &facts, GetVariable get) {
  facts = {names.launcher};
  if (Error error = readNumber(get, names.size, 1, facts.size))
    return error;
  if (Error error = readNumber(get, names.rank, 0, facts.rank))
    return error;
  if (names.localSize && get(names.localSize))
    if (Error error = readNumber(get, names.localSize, 1, facts.localSize))
      return error;
  if (names.localRank && get(names.localRank))
    if (Error error = readNumber(get, names.localRank, 0, facts.localRank))
      return error;
  if (facts.rank >= facts.size)
    return userError("%s is %d, but %s is %d", names.rank, facts.rank,
                     names.size, facts.size);
  return {};
}

} // namespace

const char *penstock::runtime::getName(Launcher launcher) {
  switch (launcher) {
  case Launcher::None:
    return "no launcher";
  case Launcher::OpenMpi:
    return "mpirun of Open MPI";
  case Launcher::Hydra:
    return "mpiexec of MPICH";
  case Launcher::Slurm:
    return "srun";
  case Launcher::Torchrun:
    return "torchrun";
  }
  return "";
}

Error penstock::runtime::readEnvironment(LaunchFacts &facts, GetVariable get) {
  facts = {};
  for (const Variables &names : kLaunchers)
    if (get(names.rank) && get(names.size))
      return read(names, facts, get);
  return {};
}

Error penstock::runtime::readTorchrun(LaunchFacts &facts, GetVariable get) {
  return read(kTorchrun, facts, get);
}
