//===- WorkerTest.cpp - Where a device's threads run ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members of a team must not meet on one core while another one is free.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Device.h"
#include "runtime/device/cpu/OpenMP.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sched.h>

using namespace penstock::runtime;

namespace {

struct Seen {
  cpu_set_t cores[2];
  int members = 0;
  // The thread sanitizer does not see the team's own barriers.
  std::atomic<int> order{0};
};

void look(void *data) {
  Seen &seen = *static_cast<Seen *>(data);
  seen.order.load(std::memory_order_acquire);
  int member = omp_get_thread_num();
  if (member == 0)
    seen.members = omp_get_num_threads();
  sched_getaffinity(0, sizeof(cpu_set_t), &seen.cores[member]);
  seen.order.fetch_add(1, std::memory_order_release);
}

void lookFrom(const cpu_set_t &cores, Seen &seen) {
  Worker worker(cores, 2);
  worker.start([&] {
    seen.order.store(1, std::memory_order_release);
    GOMP_parallel(look, &seen, 2, 0);
    seen.order.load(std::memory_order_acquire);
  });
  worker.wait(-1);
}

TEST(Worker, DividesItsCoresAmongItsTeam) {
  cpu_set_t allowed, both;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) < 2)
    GTEST_SKIP() << "needs two cores";
  Seen seen;
  lookFrom(allowed, seen);
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
  Seen seen;
  lookFrom(none, seen);
  ASSERT_EQ(seen.members, 2);
  EXPECT_TRUE(CPU_EQUAL(&seen.cores[0], &allowed));
  EXPECT_TRUE(CPU_EQUAL(&seen.cores[1], &allowed));
}

} // namespace
