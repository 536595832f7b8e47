//===- WorkerTest.cpp - Where a device's threads run ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members of a team must not meet on one core while another one is free, and
// compute alike.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Worker.h"
#include "runtime/device/cpu/OpenMP.h"

#include <atomic>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

using namespace penstock::runtime;

namespace {

struct Seen {
  cpu_set_t cores[2];
  char names[2][16];
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
  pthread_getname_np(pthread_self(), seen.names[member], 16);
  seen.order.fetch_add(1, std::memory_order_release);
}

void lookFrom(const cpu_set_t &cores, Seen &seen) {
  Worker worker(/*device=*/7, cores, 2);
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

TEST(Worker, NamesItsThreads) {
  cpu_set_t none;
  CPU_ZERO(&none);
  Seen seen;
  lookFrom(none, seen);
  ASSERT_EQ(seen.members, 2);
  EXPECT_STREQ(seen.names[0], "device 7");
  EXPECT_STREQ(seen.names[1], "device 7");
}

struct Products {
  // Below the smallest normal number, from normal and from other operands.
  volatile float small = 1e-20f, subnormal = 1e-40f, large = 1e20f;
  float ofNormal[2] = {1, 1}, ofSubnormal[2] = {1, 1};
  std::atomic<int> order{0};
};

void multiply(void *data) {
  Products &products = *static_cast<Products *>(data);
  products.order.load(std::memory_order_acquire);
  int member = omp_get_thread_num();
  products.ofNormal[member] = products.small * products.small;
  products.ofSubnormal[member] = products.subnormal * products.large;
  products.order.fetch_add(1, std::memory_order_release);
}

TEST(Worker, ComputesWithoutSubnormals) {
#if defined(__SSE2__)
  cpu_set_t anywhere;
  CPU_ZERO(&anywhere);
  Products products;
  {
    Worker worker(/*device=*/0, anywhere, 2);
    worker.start([&] {
      products.order.store(1, std::memory_order_release);
      GOMP_parallel(multiply, &products, 2, 0);
      products.order.load(std::memory_order_acquire);
    });
    worker.wait(-1);
  }
  for (int member : {0, 1}) {
    EXPECT_EQ(products.ofNormal[member], 0);
    EXPECT_EQ(products.ofSubnormal[member], 0);
  }
  // The thread of a program that embeds a pipeline is its own.
  EXPECT_GT(products.small * products.small, 0);
#else
  GTEST_SKIP() << "not for this processor";
#endif
}

} // namespace
