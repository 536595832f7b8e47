//===- StatesTest.cpp - Profiles as text, states of graphs ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The states must be the sets closed under predecessors, found here by trying
// every subset; texts that are no profile must be refused with their line.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/LayerGraph.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace penstock;

namespace {
/// Every closed set that contains the first layer, as bits.
std::set<unsigned> getClosedSets(const LayerGraph &graph) {
  std::set<unsigned> sets;
  for (unsigned bits = 1; bits < 1u << graph.layers.size(); ++bits) {
    bool closed = (bits & 1) != 0;
    for (auto [index, layer] : llvm::enumerate(graph.layers))
      for (unsigned from : layer.predecessors)
        closed &= (bits >> index & 1) <= (bits >> from & 1);
    if (closed)
      sets.insert(bits);
  }
  return sets;
}

unsigned toBits(const llvm::BitVector &layers) {
  unsigned bits = 0;
  for (unsigned layer : layers.set_bits())
    bits |= 1u << layer;
  return bits;
}

std::string refuse(llvm::StringRef text) {
  std::string error;
  EXPECT_FALSE(parseProfile(text, error));
  return error;
}

const std::string kNumbers =
    "forward_compute_time=1.5, backward_compute_time=2.5, "
    "activation_size=8.000, parameter_size=4.000";
} // namespace

TEST(States, AreTheClosedSets) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 30; ++trial) {
    LayerGraph graph;
    graph.layers.resize(7);
    for (unsigned to = 1; to < 7; ++to) {
      graph.layers[to].outputBytes = 1 << to;
      graph.addEdge(random() % to, to);
      graph.addEdge(random() % to, to);
    }
    PlanStates found = buildStates(graph);
    EXPECT_FALSE(found.isLinear);
    std::set<unsigned> sets;
    for (auto [index, state] : llvm::enumerate(found.states)) {
      EXPECT_TRUE(sets.insert(toBits(state.layers)).second);
      for (auto [other, before] : llvm::enumerate(found.states)) {
        unsigned both = toBits(state.layers) & toBits(before.layers);
        bool contained = other != index && both == toBits(before.layers);
        EXPECT_EQ(llvm::is_contained(state.ancestors, other), contained);
        EXPECT_TRUE(!contained || other < index);
      }
    }
    EXPECT_EQ(sets, getClosedSets(graph));
  }
}

TEST(States, CarryWhatLaterLayersRead) {
  LayerGraph graph; // 0 -> 1 -> 2 -> 3, and 0 -> 3 besides.
  graph.layers.resize(4);
  for (unsigned layer = 0; layer < 4; ++layer)
    graph.layers[layer].outputBytes = 10 + layer;
  for (auto [from, to] : {std::pair(0, 1), {1, 2}, {2, 3}, {0, 3}})
    graph.addEdge(from, to);
  PlanStates chain = buildStates(graph);
  ASSERT_EQ(chain.states.size(), 4u);
  EXPECT_EQ(chain.states[0].cutBytes, 10);
  EXPECT_EQ(chain.states[1].cutBytes, 21);
  EXPECT_EQ(chain.states[2].cutBytes, 22);
  EXPECT_EQ(chain.states[3].cutBytes, 0);
}

/// Too many states: the chain of the topological order stands in for them.
TEST(States, OfAWideGraphAreLinear) {
  LayerGraph graph;
  graph.layers.resize(14);
  for (unsigned branch = 1; branch < 13; ++branch) {
    graph.layers[branch].outputBytes = 1;
    graph.addEdge(0, branch);
    graph.addEdge(branch, 13);
  }
  PlanStates found = buildStates(graph, 100);
  EXPECT_TRUE(found.isLinear);
  ASSERT_EQ(found.states.size(), 14u);
  EXPECT_EQ(found.states[5].cutBytes, 5);
}

TEST(Profile, ReadsWhatTheProfilerWrites) {
  std::string error;
  std::optional<LayerGraph> graph = parseProfile(
      "node2 -- Conv2d(3, 64) -- " + kNumbers + "\n" + "node1 -- Input0 -- " +
          kNumbers + "\n" +
          "node3 -- LSTM -- forward_compute_time=3.0, backward_compute_time=0, "
          "activation_size=[6.0; 7.0; 8.0], parameter_size=1e3 -- "
          "stage_id=1\n" +
          "node4 -- __getitem__(0) -- " + kNumbers + "\n" +
          "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n",
      error);
  ASSERT_TRUE(graph) << error;
  ASSERT_EQ(graph->layers.size(), 2u);
  EXPECT_EQ(graph->layers[0].name, "node2");
  EXPECT_DOUBLE_EQ(graph->layers[0].getSeconds(), 0.004);
  EXPECT_EQ(graph->layers[1].outputBytes, 21);
  EXPECT_EQ(graph->layers[1].weightBytes, 1000);
  EXPECT_EQ(graph->layers[1].predecessors.size(), 1u);
}

TEST(Profile, RefusesWhatIsNone) {
  EXPECT_EQ(refuse(""), "it has no layers");
  EXPECT_NE(refuse("hello").find("line 1: expected 'NODE -- DESCRIPTION"),
            std::string::npos);
  EXPECT_EQ(refuse("a -- A -- " + kNumbers + "\n\ta -- b\n"),
            "line 2: an edge names 'b', which is no layer of the lines before");
  EXPECT_EQ(refuse("a -- A -- " + kNumbers + "\na -- B -- " + kNumbers),
            "line 2: there is a layer 'a' already");
  EXPECT_EQ(refuse("a -- A -- " + kNumbers + "\nb -- B -- " + kNumbers +
                   "\n\ta -- b\n\tb -- a\n"),
            "its edges form a cycle");
  EXPECT_EQ(refuse("a -- A -- forward_compute_time=x, "
                   "backward_compute_time=0, activation_size=0, "
                   "parameter_size=0"),
            "line 1: 'x' is no number that 'forward_compute_time' can have");
  EXPECT_EQ(refuse("a -- A -- forward_compute_time=-1, "
                   "backward_compute_time=0, activation_size=0, "
                   "parameter_size=0"),
            "line 1: '-1' is no number that 'forward_compute_time' can have");
}
