//===- WorkerTest.cpp - Where a device's threads run ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members of a team must not meet on one core while another one is free.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Device.h"
#include "runtime/device/cpu/OpenMP.h"

#include <gtest/gtest.h>
#include <sched.h>

using namespace penstock::runtime;

namespace {

struct Seen {
  cpu_set_t cores[2];
  int members = 0;
};

void look(void *data) {
  Seen &seen = *static_cast<Seen *>(data);
  int member = omp_get_thread_num();
  if (member == 0)
    seen.members = omp_get_num_threads();
  sched_getaffinity(0, sizeof(cpu_set_t), &seen.cores[member]);
}

Seen lookFrom(const cpu_set_t &cores) {
  Seen seen;
  Worker worker(cores, 2);
  worker.start([&] { GOMP_parallel(look, &seen, 2, 0); });
  worker.wait(-1);
  return seen;
}

TEST(Worker, DividesItsCoresAmongItsTeam) {
  cpu_set_t allowed, both;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) < 2)
    GTEST_SKIP() << "needs two cores";
  Seen seen = lookFrom(allowed);
  ASSERT_EQ(seen.members, 2);
  CPU_AND(&both, &seen.cores[0], &seen.cores[1]);
  EXPECT_EQ(CPU_COUNT(&both), 0);
  CPU_OR(&both, &seen.cores[0], &seen.cores[1]);
  EXPECT_TRUE(CPU_EQUAL(&both, &allowed));
}

TEST(Worker, LeavesATeamWithoutCoresOfItsOwnToTheSystem) {
  cpu_set_t allowed, none;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  CPU_ZERO(&none);
  Seen seen = lookFrom(none);
  ASSERT_EQ(seen.members, 2);
  EXPECT_TRUE(CPU_EQUAL(&seen.cores[0], &allowed));
  EXPECT_TRUE(CPU_EQUAL(&seen.cores[1], &allowed));
}

} // namespace
