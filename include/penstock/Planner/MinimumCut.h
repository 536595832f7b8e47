//===- MinimumCut.h - The cheapest cut of a network -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goldberg and Tarjan's push-relabel algorithm, with real capacities: a push
// leaves exactly nothing of the edge or of the excess, so that it ends as it
// does with whole numbers, and its work is the same everywhere. Deep networks,
// as models make, take it few waves where augmenting paths are long.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_MINIMUMCUT_H
#define PENSTOCK_PLANNER_MINIMUMCUT_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

class MinimumCut {
public:
  explicit MinimumCut(unsigned nodes) : edgesOf(nodes) {}

  /// Capacities are finite and not negative.
  void addEdge(unsigned from, unsigned to, double capacity);

  /// Which nodes are on the side of the source: the most of all cheapest cuts,
  /// up to rounding. To be called once.
  std::vector<bool> solve(unsigned source, unsigned sink);

  /// How many edges were looked at.
  int64_t getWork() const { return work; }

private:
  struct Edge {
    unsigned to = 0;
    double left = 0;
  };
  void relabelAll(unsigned source, unsigned sink);
  void activate(unsigned node);
  void push(unsigned node, unsigned index);
  /// Pushes what a node has too much, until it has not, or cannot.
  void discharge(unsigned node);

  std::vector<Edge> edges; ///< In pairs, there and back.
  std::vector<std::vector<unsigned>> edgesOf;
  /// A lower bound of the steps to the sink; as many as nodes: never.
  std::vector<unsigned> heights;
  std::vector<double> excess;
  std::vector<std::size_t> next; ///< Per node: the edge to try.
  /// Nodes with excess, by height; a node may stand in several.
  std::vector<std::vector<unsigned>> active;
  unsigned highest = 0;
  int64_t work = 0;
};

} // namespace penstock

#endif // PENSTOCK_PLANNER_MINIMUMCUT_H
