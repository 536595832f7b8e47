//===- States.cpp - The sets of layers that can stand before a cut --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PipeDream's planner walks antichains: a set of layers none of which precedes
// another stands for itself and everything before it. From one antichain it
// reaches the next by moving one of its members, or a layer behind them that
// still has somewhere to go, one edge forward.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/LayerGraph.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace llvm;
using namespace penstock;

namespace {
using Antichain = SmallVector<unsigned>; ///< Sorted.

class StateBuilder {
public:
  StateBuilder(const LayerGraph &graph, unsigned limit)
      : graph(graph), limit(limit), size(graph.layers.size()) {}
  PlanStates build();

private:
  void closeRelation();
  /// The antichain and the layers behind it with an edge that leads past it.
  SmallVector<unsigned> augment(ArrayRef<unsigned> antichain) const;
  SmallVector<Antichain> getNext(ArrayRef<unsigned> antichain) const;
  /// False when there are more than `limit`.
  bool enumerate();
  std::vector<unsigned> sortStates() const;
  PlanState makeState(const BitVector &layers) const;
  PlanStates buildLinear() const;

  const LayerGraph &graph;
  unsigned limit, size;
  std::vector<unsigned> order;
  std::vector<BitVector> before, after; ///< Transitive.
  std::vector<Antichain> antichains;
  std::vector<SmallVector<unsigned>> next; ///< Edges between antichains.
};
} // namespace

void StateBuilder::closeRelation() {
  before.assign(size, BitVector(size));
  after.assign(size, BitVector(size));
  for (unsigned layer : order)
    for (unsigned from : graph.layers[layer].predecessors) {
      before[layer] |= before[from];
      before[layer].set(from);
    }
  for (unsigned layer : reverse(order))
    for (unsigned to : graph.layers[layer].successors) {
      after[layer] |= after[to];
      after[layer].set(to);
    }
}

SmallVector<unsigned>
StateBuilder::augment(ArrayRef<unsigned> antichain) const {
  BitVector extra(size);
  for (unsigned member : antichain)
    for (unsigned from : before[member].set_bits())
      for (unsigned to : graph.layers[from].successors)
        if (to != member && !before[member].test(to))
          extra.set(from);
  SmallVector<unsigned> augmented(extra.set_bits_begin(), extra.set_bits_end());
  append_range(augmented, antichain);
  return augmented;
}

SmallVector<Antichain>
StateBuilder::getNext(ArrayRef<unsigned> antichain) const {
  SmallVector<Antichain> result;
  SmallVector<unsigned> augmented = augment(antichain);
  for (unsigned from : augmented) {
    for (unsigned to : graph.layers[from].successors) {
      if (is_contained(antichain, to) ||
          any_of(augmented,
                 [&](unsigned member) { return after[to].test(member); }))
        continue;
      SmallVector<unsigned> moved;
      for (unsigned member : augmented)
        moved.push_back(member == from ? to : member);
      Antichain reached;
      for (unsigned member : moved)
        if (none_of(moved,
                    [&](unsigned other) { return after[member].test(other); }))
          reached.push_back(member);
      llvm::sort(reached);
      reached.erase(llvm::unique(reached), reached.end());
      result.push_back(std::move(reached));
    }
  }
  return result;
}

bool StateBuilder::enumerate() {
  unsigned source = 0;
  while (!graph.layers[source].predecessors.empty())
    ++source;
  std::map<Antichain, unsigned> numbers;
  auto number = [&](const Antichain &antichain) {
    auto [it, isNew] = numbers.try_emplace(antichain, antichains.size());
    if (isNew) {
      antichains.push_back(antichain);
      next.emplace_back();
    }
    return it->second;
  };
  number({source});
  for (unsigned current = 0; current < antichains.size(); ++current) {
    for (const Antichain &reached : getNext(Antichain(antichains[current]))) {
      unsigned to = number(reached);
      if (!is_contained(next[current], to))
        next[current].push_back(to);
    }
    if (antichains.size() > limit)
      return false;
  }
  return true;
}

/// Reverse postorder of a depth-first walk from the source.
std::vector<unsigned> StateBuilder::sortStates() const {
  std::vector<unsigned> sorted;
  BitVector seen(antichains.size());
  SmallVector<std::pair<unsigned, size_t>> stack{{0, 0}};
  seen.set(0);
  while (!stack.empty()) {
    auto &[state, edge] = stack.back();
    if (edge == next[state].size()) {
      sorted.push_back(state);
      stack.pop_back();
      continue;
    }
    unsigned to = next[state][edge++];
    if (!seen.test(to)) {
      seen.set(to);
      stack.push_back({to, 0});
    }
  }
  std::reverse(sorted.begin(), sorted.end());
  return sorted;
}

PlanState StateBuilder::makeState(const BitVector &layers) const {
  PlanState state;
  state.layers = layers;
  // In the order of the graph, so that sums of equal states are equal.
  for (unsigned index : order) {
    if (!layers.test(index))
      continue;
    const Layer &layer = graph.layers[index];
    state.seconds += layer.getSeconds();
    state.activationBytes += layer.outputBytes;
    state.weightBytes += layer.weightBytes;
    if (any_of(layer.successors, [&](unsigned to) { return !layers.test(to); }))
      state.cutBytes += layer.outputBytes;
  }
  return state;
}

PlanStates StateBuilder::buildLinear() const {
  PlanStates result;
  result.isLinear = true;
  BitVector layers(size);
  for (unsigned layer : order) {
    layers.set(layer);
    PlanState state = makeState(layers);
    state.frontierBytes = state.cutBytes;
    append_range(state.ancestors, llvm::seq<unsigned>(result.states.size()));
    result.states.push_back(std::move(state));
  }
  return result;
}

PlanStates StateBuilder::build() {
  order = *graph.getTopologicalOrder();
  closeRelation();
  if (!enumerate())
    return buildLinear();
  std::vector<unsigned> sorted = sortStates();
  std::vector<unsigned> place(sorted.size());
  for (auto [index, state] : llvm::enumerate(sorted))
    place[state] = index;

  PlanStates result;
  std::vector<BitVector> contains(sorted.size(), BitVector(sorted.size()));
  for (auto [index, number] : llvm::enumerate(sorted)) {
    BitVector layers(size);
    for (unsigned member : antichains[number]) {
      layers |= before[member];
      layers.set(member);
    }
    PlanState state = makeState(layers);
    for (unsigned member : augment(antichains[number]))
      state.frontierBytes += graph.layers[member].outputBytes;
    append_range(state.ancestors, contains[index].set_bits());
    for (unsigned to : next[number]) {
      contains[place[to]] |= contains[index];
      contains[place[to]].set(index);
    }
    result.states.push_back(std::move(state));
  }
  // A source that nothing of the first one's successors reads is in no state.
  return result.states.back().layers.all() ? result : buildLinear();
}

PlanStates penstock::buildStates(const LayerGraph &graph, unsigned limit) {
  return StateBuilder(graph, limit).build();
}
