//===- LayerGraph.h - Layers with their costs, and how to cut them -*- C++
//-*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a planner knows of a model: layers with times and bytes, the edges
// between them, and the states, which are the sets of layers that can stand
// before a cut.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_LAYERGRAPH_H
#define PENSTOCK_PLANNER_LAYERGRAPH_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

struct Layer {
  std::string name, description;
  double forwardSeconds = 0, backwardSeconds = 0;
  double outputBytes = 0; ///< Of what it hands on, and of the gradient of that.
  double weightBytes = 0;
  llvm::SmallVector<unsigned> predecessors, successors;

  double getSeconds() const { return forwardSeconds + backwardSeconds; }
};

struct LayerGraph {
  std::vector<Layer> layers;

  void addEdge(unsigned from, unsigned to);
  /// Takes layers out for which `drop` holds. With `bridge`, what came before
  /// them then leads to what came after them.
  void removeLayers(const llvm::BitVector &drop, bool bridge);
  /// An order in which every layer follows its predecessors, the given one as
  /// far as it can be; nothing if there is a cycle.
  std::optional<std::vector<unsigned>> getTopologicalOrder() const;
};

/// Reads a profile in the text format of PipeDream's profiler:
///
///     node2 -- Conv2d(..) -- forward_compute_time=22.3 [ms], ..
///     <tab>node1 -- node2
///
/// Input nodes are left out, as the first stage has them anyway, and so are
/// `__getitem__` nodes that nothing follows. On a mistake returns nothing and
/// says in `error` what is wrong, with the line.
std::optional<LayerGraph> parseProfile(llvm::StringRef text,
                                       std::string &error);

/// A set of layers that is closed under predecessors, and its totals.
struct PlanState {
  llvm::BitVector layers;
  /// States that this one contains, in increasing order.
  llvm::SmallVector<unsigned> ancestors;
  double seconds = 0, activationBytes = 0, weightBytes = 0;
  /// Bytes that later layers read of it: carried by a cut here.
  double cutBytes = 0;
  /// The same as PipeDream's planner adds it up: the outputs of the frontier,
  /// and of what it has edges to that lead beyond one of the frontier's
  /// members.
  double frontierBytes = 0;
};

/// The states of a graph in a topological order: for a chain of layers, one for
/// each of them. A graph with more than `limit` states is taken as the chain of
/// its topological order, with true bytes over every cut; then `isLinear` is
/// set. The graph must be acyclic and not empty.
struct PlanStates {
  std::vector<PlanState> states;
  bool isLinear = false;
};
PlanStates buildStates(const LayerGraph &graph, unsigned limit = 2000);

} // namespace penstock

#endif // PENSTOCK_PLANNER_LAYERGRAPH_H
