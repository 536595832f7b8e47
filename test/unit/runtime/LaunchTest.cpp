//===- LaunchTest.cpp - What launchers say --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variables as the launchers set them, and as they should not.
//===----------------------------------------------------------------------===//

#include "runtime/job/Launch.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

using namespace penstock::runtime;

namespace {

std::map<std::string, std::string> environment;

char *get(const char *name) {
  auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.data();
}

LaunchFacts read(std::map<std::string, std::string> variables) {
  environment = std::move(variables);
  LaunchFacts facts;
  Error error = readEnvironment(facts, get);
  EXPECT_FALSE(error) << error.text;
  return facts;
}

std::string fail(std::map<std::string, std::string> variables) {
  environment = std::move(variables);
  LaunchFacts facts;
  Error error = readEnvironment(facts, get);
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  return error.text;
}

TEST(Launch, KnowsLaunchers) {
  LaunchFacts none = read({});
  EXPECT_EQ(none.launcher, Launcher::None);
  EXPECT_EQ(none.size, 1);

  LaunchFacts open = read({{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"RANK", "7"},
                           {"WORLD_SIZE", "8"}});
  EXPECT_EQ(open.launcher, Launcher::OpenMpi);
  EXPECT_EQ(open.rank, 2);
  EXPECT_EQ(open.size, 4);
  EXPECT_EQ(open.localRank, 0);
  EXPECT_EQ(open.localSize, 2);

  LaunchFacts hydra = read({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}});
  EXPECT_EQ(hydra.launcher, Launcher::Hydra);
  EXPECT_EQ(hydra.localSize, -1);

  LaunchFacts torch = read({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(torch.launcher, Launcher::Torchrun);
  EXPECT_EQ(torch.size, 2);
}

// A script of sbatch has a number of tasks, too, but is no step.
TEST(Launch, TakesStepsOfSlurmOnly) {
  EXPECT_EQ(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).size, 1);
  LaunchFacts step = read({{"SLURM_PROCID", "5"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_STEP_NUM_TASKS", "8"},
                           {"SLURM_LOCALID", "1"}});
  EXPECT_EQ(step.launcher, Launcher::Slurm);
  EXPECT_EQ(step.rank, 5);
  EXPECT_EQ(step.localRank, 1);
}

TEST(Launch, RefusesContradictions) {
  EXPECT_EQ(fail({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "RANK is 2, but WORLD_SIZE is 2");
  EXPECT_EQ(fail({{"PMI_RANK", "x"}, {"PMI_SIZE", "2"}}),
            "PMI_RANK is 'x', which is not a whole number of at least 0");
  EXPECT_EQ(fail({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}),
            "PMI_SIZE is '0', which is not a whole number of at least 1");
  environment = {};
  LaunchFacts facts;
  EXPECT_EQ(readTorchrun(facts, get).text, "WORLD_SIZE is not set");
}

} // namespace
