//===- RecomputationTest.cpp - Choices of deep models ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cuts against all cuts of small networks; and choices of models that are too
// large to try everything, against what must hold of them. Small functions are
// tried out in RecomputePlanTest.cpp.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/Recomputation.h"
#include "penstock/Planner/MinimumCut.h"

#include <gtest/gtest.h>
#include <random>

using namespace penstock;

TEST(MinimumCut, IsTheCheapestOfAllCuts) {
  std::mt19937 random(7);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    unsigned nodes = pick(2, 9);
    struct Edge {
      unsigned from, to;
      double capacity;
    };
    std::vector<Edge> edges;
    MinimumCut network(nodes);
    for (int count = pick(1, 25); count > 0; --count) {
      Edge edge = {unsigned(pick(0, nodes - 1)), unsigned(pick(0, nodes - 1)),
                   double(pick(0, 9))};
      edges.push_back(edge);
      network.addEdge(edge.from, edge.to, edge.capacity);
    }
    auto costOf = [&](auto isBefore) {
      double cost = 0;
      for (const Edge &edge : edges)
        if (isBefore(edge.from) && !isBefore(edge.to))
          cost += edge.capacity;
      return cost;
    };
    // Node 0 is the source, the last one the sink.
    double least = std::numeric_limits<double>::max();
    for (unsigned set = 0; set < 1u << nodes; ++set)
      if ((set & 1) && !(set >> (nodes - 1) & 1))
        least = std::min(
            least, costOf([&](unsigned node) { return set >> node & 1; }));
    std::vector<bool> side = network.solve(0, nodes - 1);
    EXPECT_TRUE(side[0] && !side[nodes - 1]);
    EXPECT_EQ(costOf([&](unsigned node) -> bool { return side[node]; }), least)
        << "round " << round;
  }
}

namespace {

/// Layers as a transformer has them: the sum of the ones before is normalized,
/// multiplied, mapped and multiplied again, and added.
RecomputationGraph buildDeep(int layers) {
  RecomputationGraph graph;
  auto addValue = [&](int64_t bytes, int op, bool isNeeded) {
    graph.values.push_back({bytes, op, /*mayStore=*/true, isNeeded});
    return static_cast<unsigned>(graph.values.size() - 1);
  };
  auto addOp = [&](double seconds, int64_t bytes, bool isNeeded,
                   std::initializer_list<unsigned> uses) {
    graph.ops.push_back({seconds, uses});
    return addValue(bytes, static_cast<int>(graph.ops.size() - 1), isNeeded);
  };
  unsigned sum = addValue(4096, -1, /*isNeeded=*/false);
  for (int layer = 0; layer < layers; ++layer) {
    unsigned norm = addOp(3e-6, 4096, true, {sum});
    unsigned wide = addOp(80e-6, 16384, true, {norm});
    unsigned map = addOp(9e-6, 16384, true, {wide});
    unsigned flags = addOp(1e-6, 512 + layer % 5, true, {wide});
    unsigned narrow = addOp(80e-6, 4096, false, {map, flags});
    sum = addOp(2e-6, 4096, false, {sum, narrow});
  }
  return graph;
}

} // namespace

TEST(Recomputation, OfADeepModelIsNearWhatIsProved) {
  RecomputationGraph graph = buildDeep(480);
  RecomputationChoice fewest = chooseRecomputation(graph, 0);
  // Everything comes from the input.
  EXPECT_EQ(fewest.bytes, 4096);
  int64_t most = 0;
  for (const RecomputationGraph::Value &value : graph.values)
    most += value.isNeeded ? value.bytes : 0;
  for (int percent : {1, 5, 20, 40, 60, 80, 99}) {
    int64_t budget = most * percent / 100;
    RecomputationChoice choice = chooseRecomputation(graph, budget);
    EXPECT_LE(choice.bytes, budget);
    EXPECT_LE(choice.leastSeconds, choice.seconds);
    EXPECT_GE(choice.leastSeconds, choice.seconds * 0.99) << percent << " %";
    // The same again, whatever else the machine does.
    EXPECT_EQ(chooseRecomputation(graph, budget).runs, choice.runs);
  }
  EXPECT_EQ(chooseRecomputation(graph, most).seconds, 0);
}
