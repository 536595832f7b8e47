//===- LoopBackMpi.cpp - An MPI within one process ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A receive gets its bytes when a test finds it matched; both sides are done
// some tests later.
//===----------------------------------------------------------------------===//

#include "LoopBackMpi.h"

#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <random>
#include <tuple>

namespace penstock::test {

namespace {

struct Operation {
  uint64_t id;
  void *bytes;
  uint64_t size;
};

struct World {
  std::mutex mutex;
  std::mt19937 random;
  uint64_t next = 1;
  std::map<std::tuple<int, int, int>, std::deque<Operation>> sends, receives;
  /// The number of tests that still fail, by matched request.
  std::map<uint64_t, int> delays;
  uint64_t looks[kMostRanks] = {};
  bool arrivesAlone = false;
  bool isBroken[kMostRanks] = {};
};

World world;

void match(const std::tuple<int, int, int> &line) {
  auto &sends = world.sends[line], &receives = world.receives[line];
  while (!sends.empty() && !receives.empty()) {
    EXPECT_EQ(sends.front().size, receives.front().size);
    std::memcpy(receives.front().bytes, sends.front().bytes,
                sends.front().size);
    world.delays[sends.front().id] = int(world.random() % 4);
    world.delays[receives.front().id] = int(world.random() % 4);
    sends.pop_front();
    receives.pop_front();
  }
}

int start(bool sends, int from, int to, int tag, void *bytes, uint64_t size,
          penstock_mpi_request *request, int caller) {
  std::lock_guard<std::mutex> lock(world.mutex);
  if (world.isBroken[caller])
    return 17;
  std::tuple<int, int, int> line = {from, to, tag};
  request->words[0] = world.next++;
  (sends ? world.sends : world.receives)[line].push_back(
      {request->words[0], bytes, size});
  match(line);
  return 0;
}

template <int Rank> struct Functions {
  static int send(const void *bytes, uint64_t size, int peer, int tag,
                  penstock_mpi_request *request) {
    return start(true, Rank, peer, tag, const_cast<void *>(bytes), size,
                 request, Rank);
  }
  static int receive(void *bytes, uint64_t size, int peer, int tag,
                     penstock_mpi_request *request) {
    return start(false, peer, Rank, tag, bytes, size, request, Rank);
  }
  static int test(penstock_mpi_request *request, int *isDone) {
    std::lock_guard<std::mutex> lock(world.mutex);
    if (world.isBroken[Rank])
      return 17;
    ++world.looks[Rank];
    auto found = world.delays.find(request->words[0]);
    *isDone = found != world.delays.end() && found->second-- <= 0;
    if (*isDone)
      world.delays.erase(found);
    return 0;
  }
  static int arrivesAlone(int) {
    std::lock_guard<std::mutex> lock(world.mutex);
    return world.arrivesAlone;
  }
  static const char *describe(int) { return "the wire is cut"; }
  static const char *library() { return "loop-back"; }

  static constexpr penstock_mpi functions = {
      PENSTOCK_MPI_VERSION, nullptr, send,     receive, test,
      arrivesAlone,         nullptr, describe, library, nullptr};
};

} // namespace

void resetLoopBackMpi(uint32_t seed) {
  std::lock_guard<std::mutex> lock(world.mutex);
  world.random.seed(seed);
  world.sends.clear();
  world.receives.clear();
  world.delays.clear();
  for (bool &isBroken : world.isBroken)
    isBroken = false;
}

uint64_t countUnmatched() {
  std::lock_guard<std::mutex> lock(world.mutex);
  uint64_t count = world.delays.size();
  for (auto *lines : {&world.sends, &world.receives})
    for (auto &[line, operations] : *lines)
      count += operations.size();
  return count;
}

void setArrivesAlone(bool value) {
  std::lock_guard<std::mutex> lock(world.mutex);
  world.arrivesAlone = value;
}

uint64_t countLooks(int rank) {
  std::lock_guard<std::mutex> lock(world.mutex);
  return world.looks[rank];
}

void breakLoopBackMpi(int rank) {
  std::lock_guard<std::mutex> lock(world.mutex);
  world.isBroken[rank] = true;
}

const penstock_mpi &getLoopBackMpi(int rank) {
  static const penstock_mpi *all[kMostRanks] = {
      &Functions<0>::functions, &Functions<1>::functions,
      &Functions<2>::functions, &Functions<3>::functions};
  return *all[rank];
}

} // namespace penstock::test
