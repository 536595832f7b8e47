//===- MinimumCut.cpp - The cheapest cut of a network ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See MinimumCut.h. The highest node goes first, and heights are counted anew
// from time to time. Excess that cannot reach the sink stays where it is: for
// the cut it need not go back to the source.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/MinimumCut.h"

#include <algorithm>

using namespace penstock;

void MinimumCut::addEdge(unsigned from, unsigned to, double capacity) {
  edgesOf[from].push_back(static_cast<unsigned>(edges.size()));
  edges.push_back({to, capacity});
  edgesOf[to].push_back(static_cast<unsigned>(edges.size()));
  edges.push_back({from, 0});
}

/// Makes every height the true number of steps.
void MinimumCut::relabelAll(unsigned source, unsigned sink) {
  auto never = static_cast<unsigned>(edgesOf.size());
  heights.assign(never, never);
  next.assign(never, 0);
  active.assign(never, {});
  highest = 0;
  heights[sink] = 0;
  std::vector<unsigned> queue = {sink};
  for (size_t first = 0; first < queue.size(); ++first) {
    unsigned node = queue[first];
    if (node != sink)
      activate(node);
    for (unsigned index : edgesOf[node]) {
      ++work;
      unsigned before = edges[index].to;
      if (edges[index ^ 1].left > 0 && heights[before] == never &&
          before != source) {
        heights[before] = heights[node] + 1;
        queue.push_back(before);
      }
    }
  }
}

void MinimumCut::activate(unsigned node) {
  unsigned height = heights[node];
  if (excess[node] > 0 && height < active.size()) {
    active[height].push_back(node);
    highest = std::max(highest, height);
  }
}

void MinimumCut::push(unsigned node, unsigned index) {
  Edge &edge = edges[index];
  double flow = std::min(excess[node], edge.left);
  edge.left -= flow;
  edges[index ^ 1].left += flow;
  excess[node] -= flow;
  bool wasIdle = excess[edge.to] <= 0;
  excess[edge.to] += flow;
  if (wasIdle && heights[edge.to] > 0)
    activate(edge.to);
}

void MinimumCut::discharge(unsigned node) {
  auto never = static_cast<unsigned>(edgesOf.size());
  while (excess[node] > 0) {
    if (next[node] == edgesOf[node].size()) {
      unsigned lowest = never;
      for (unsigned index : edgesOf[node])
        if (edges[index].left > 0)
          lowest = std::min(lowest, heights[edges[index].to] + 1);
      work += static_cast<int64_t>(edgesOf[node].size());
      heights[node] = std::min(lowest, never);
      next[node] = 0;
      // Others are higher now, perhaps.
      activate(node);
      return;
    }
    unsigned index = edgesOf[node][next[node]];
    ++work;
    if (edges[index].left > 0 && heights[node] == heights[edges[index].to] + 1)
      push(node, index);
    if (excess[node] > 0)
      ++next[node];
  }
}

std::vector<bool> MinimumCut::solve(unsigned source, unsigned sink) {
  auto never = static_cast<unsigned>(edgesOf.size());
  excess.assign(never, 0);
  for (unsigned index : edgesOf[source]) {
    Edge &edge = edges[index];
    excess[edge.to] += edge.left;
    edges[index ^ 1].left += edge.left;
    edge.left = 0;
  }
  relabelAll(source, sink);
  // As much work between two counts as a count takes a few times.
  int64_t counted = work;
  int64_t often = 4 * static_cast<int64_t>(edges.size());
  while (true) {
    while (highest > 0 && active[highest].empty())
      --highest;
    if (highest == 0)
      break;
    unsigned node = active[highest].back();
    active[highest].pop_back();
    if (heights[node] == highest)
      discharge(node);
    if (work - counted > often) {
      relabelAll(source, sink);
      counted = work;
    }
  }
  relabelAll(source, sink);
  std::vector<bool> side(never);
  for (unsigned node = 0; node < never; ++node)
    side[node] = heights[node] == never;
  return side;
}
