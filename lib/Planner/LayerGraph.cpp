//===- LayerGraph.cpp - Layers, their profile and their order -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph itself and PipeDream's text format (msr-fiddle/pipedream,
// profiler/). Its numbers are milliseconds and bytes; a layer with several
// outputs lists their bytes in brackets.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/LayerGraph.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <functional>
#include <queue>

using namespace llvm;
using namespace penstock;

void LayerGraph::addEdge(unsigned from, unsigned to) {
  if (is_contained(layers[from].successors, to))
    return;
  layers[from].successors.push_back(to);
  layers[to].predecessors.push_back(from);
}

void LayerGraph::removeLayers(const BitVector &drop, bool bridge) {
  if (bridge)
    for (unsigned layer : drop.set_bits())
      for (unsigned from : SmallVector<unsigned>(layers[layer].predecessors))
        for (unsigned to : SmallVector<unsigned>(layers[layer].successors))
          addEdge(from, to);
  LayerGraph kept;
  std::vector<unsigned> number(layers.size(), 0);
  for (auto [index, layer] : enumerate(layers)) {
    if (drop.test(index))
      continue;
    number[index] = kept.layers.size();
    kept.layers.push_back(layer);
    kept.layers.back().predecessors.clear();
    kept.layers.back().successors.clear();
  }
  for (auto [index, layer] : enumerate(layers))
    for (unsigned to : layer.successors)
      if (!drop.test(index) && !drop.test(to))
        kept.addEdge(number[index], number[to]);
  *this = std::move(kept);
}

std::optional<std::vector<unsigned>> LayerGraph::getTopologicalOrder() const {
  std::vector<size_t> missing;
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  for (auto [index, layer] : enumerate(layers)) {
    missing.push_back(layer.predecessors.size());
    if (missing.back() == 0)
      ready.push(index);
  }
  std::vector<unsigned> order;
  while (!ready.empty()) {
    unsigned next = ready.top();
    ready.pop();
    order.push_back(next);
    for (unsigned to : layers[next].successors)
      if (--missing[to] == 0)
        ready.push(to);
  }
  if (order.size() != layers.size())
    return std::nullopt;
  return order;
}

namespace {
/// Reads lines; the first mistake ends it.
class ProfileParser {
public:
  explicit ProfileParser(std::string &error) : error(error) {}
  std::optional<LayerGraph> parse(StringRef text);

private:
  bool fail(const Twine &message) {
    error = ("line " + Twine(line) + ": " + message).str();
    return false;
  }
  bool parseLayer(StringRef text);
  bool parseEdge(StringRef text);
  /// `key=12.5` or `key=[1.0; 2.0]`, which counts as the sum.
  bool parseField(StringRef text, StringRef key, double &value);

  std::string &error;
  unsigned line = 0;
  LayerGraph graph;
  StringMap<unsigned> numbers;
};
} // namespace

bool ProfileParser::parseField(StringRef text, StringRef key, double &value) {
  text = text.trim();
  if (!text.consume_front(key) || !text.consume_front("="))
    return fail("expected '" + key + "=...', found '" + text + "'");
  if (text.consume_front("[") && !text.consume_back("]"))
    return fail("'" + key + "' has a bracket that is not closed");
  SmallVector<StringRef> parts;
  text.split(parts, ';');
  value = 0;
  for (StringRef part : parts) {
    double number;
    if (part.trim().getAsDouble(number) || !std::isfinite(number) || number < 0)
      return fail("'" + part.trim() + "' is no number that '" + key +
                  "' can have");
    value += number;
  }
  return true;
}

bool ProfileParser::parseLayer(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, " -- ");
  if (parts.size() < 3)
    return fail("expected 'NODE -- DESCRIPTION -- forward_compute_time=.., "
                "backward_compute_time=.., activation_size=.., "
                "parameter_size=..', or an edge, which starts with a tab");
  Layer layer;
  layer.name = parts[0].trim().str();
  layer.description = parts[1].trim().str();
  SmallVector<StringRef> fields;
  parts[2].split(fields, ", ");
  if (fields.size() != 4)
    return fail("layer '" + layer.name +
                "' must have four numbers: forward_compute_time, "
                "backward_compute_time, activation_size, parameter_size");
  double forward, backward;
  if (!parseField(fields[0], "forward_compute_time", forward) ||
      !parseField(fields[1], "backward_compute_time", backward) ||
      !parseField(fields[2], "activation_size", layer.outputBytes) ||
      !parseField(fields[3], "parameter_size", layer.weightBytes))
    return false;
  layer.forwardSeconds = forward / 1000.0;
  layer.backwardSeconds = backward / 1000.0;
  if (!numbers.try_emplace(layer.name, graph.layers.size()).second)
    return fail("there is a layer '" + layer.name + "' already");
  graph.layers.push_back(std::move(layer));
  return true;
}

bool ProfileParser::parseEdge(StringRef text) {
  auto [from, to] = text.trim().split(" -- ");
  for (StringRef name : {from, to})
    if (!numbers.contains(name.trim()))
      return fail("an edge names '" + name.trim() +
                  "', which is no layer of the lines before");
  graph.addEdge(numbers[from.trim()], numbers[to.trim()]);
  return true;
}

std::optional<LayerGraph> ProfileParser::parse(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef content : lines) {
    ++line;
    content = content.rtrim();
    if (content.trim().empty() || content.starts_with("#"))
      continue;
    if (!(content.starts_with("\t") || content.starts_with(" ")
              ? parseEdge(content)
              : parseLayer(content)))
      return std::nullopt;
  }
  BitVector drop(graph.layers.size());
  for (auto [index, layer] : enumerate(graph.layers))
    if ((layer.predecessors.empty() &&
         StringRef(layer.description).starts_with("Input")) ||
        (layer.successors.empty() &&
         StringRef(layer.description).starts_with("__getitem__")))
      drop.set(index);
  graph.removeLayers(drop, /*bridge=*/false);
  if (graph.layers.empty()) {
    error = "it has no layers";
    return std::nullopt;
  }
  if (!graph.getTopologicalOrder()) {
    error = "its edges form a cycle";
    return std::nullopt;
  }
  return std::move(graph);
}

std::optional<LayerGraph> penstock::parseProfile(StringRef text,
                                                 std::string &error) {
  return ProfileParser(error).parse(text);
}
