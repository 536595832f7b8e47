//===- Chains.h - Random chains of layers -----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What planners are tried on, against trying every plan.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_PLANNER_CHAINS_H
#define PENSTOCK_TEST_UNIT_PLANNER_CHAINS_H

#include "penstock/Planner/LayerGraph.h"

#include <random>
#include <string>

namespace penstock {

/// In round numbers.
inline LayerGraph makeChain(std::mt19937 &random, unsigned size) {
  std::uniform_int_distribution<int> number(1, 50);
  LayerGraph graph;
  for (unsigned index = 0; index < size; ++index) {
    Layer layer;
    layer.name = "layer" + std::to_string(index);
    layer.forwardSeconds = number(random);
    layer.backwardSeconds = 2 * number(random);
    layer.outputBytes = number(random);
    layer.weightBytes = number(random);
    graph.layers.push_back(layer);
    if (index > 0)
      graph.addEdge(index - 1, index);
  }
  return graph;
}

} // namespace penstock

#endif // PENSTOCK_TEST_UNIT_PLANNER_CHAINS_H
