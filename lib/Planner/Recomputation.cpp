//===- Recomputation.cpp - What to store and what to run again ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Recomputation.h.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/Recomputation.h"

#include "penstock/Planner/MinimumCut.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>

using namespace llvm;
using namespace penstock;

namespace {

/// Differences below this part of what is compared are rounding.
constexpr double kRounding = 1e-10;

/// A decision about an op before the others.
enum class Decision : signed char { Open, Runs, Rests };

/// A part of all choices, by the ops that are decided.
struct Part {
  std::vector<Decision> decisions;
  double least = 0;      ///< Seconds that any choice of the part takes.
  double multiplier = 0; ///< Seconds per byte that gave this bound.
  int branch = -1;       ///< The op to decide next.
  unsigned number = 0;
};

struct LeastFirst {
  bool operator()(const Part &left, const Part &right) const {
    return std::pair(left.least, left.number) >
           std::pair(right.least, right.number);
  }
};

/// A choice that is changed op by op; what nobody needs any more rests, too.
class Changer {
public:
  /// The difference that it makes if an op is stored rather than recomputed.
  struct Change {
    bool isPossible = true;
    int64_t bytes = 0;  ///< That are stored in addition.
    double seconds = 0; ///< That are saved.
    int64_t work = 1;
  };
  /// All ops of `runs` are needed.
  Changer(const RecomputationGraph &graph, const std::vector<bool> &runs)
      : graph(graph), runs(runs), readers(graph.values.size()),
        needed(graph.ops.size()), valuesOf(graph.ops.size()) {
    for (auto [index, value] : enumerate(graph.values)) {
      readers[index] = value.isNeeded;
      if (value.op >= 0)
        valuesOf[value.op].push_back(index);
    }
    for (auto [op, doesRun] : enumerate(runs))
      if (doesRun)
        for (unsigned value : graph.ops[op].uses)
          ++readers[value];
    for (auto [index, value] : enumerate(graph.values))
      if (value.op >= 0 && readers[index] > 0)
        ++needed[value.op];
  }

  const std::vector<bool> &getRuns() const { return runs; }
  /// Stores what the op makes.
  Change rest(unsigned op) {
    Change change;
    stoppedNow.clear();
    if (!runs[op]) {
      change.isPossible = false;
      return change;
    }
    for (unsigned value : valuesOf[op])
      if (readers[value] > 0) {
        change.isPossible &= graph.values[value].mayStore;
        change.bytes += graph.values[value].bytes;
      }
    stop(op, change);
    return change;
  }
  Change tryRest(unsigned op) {
    Change change = rest(op);
    for (unsigned stopped : reverse(stoppedNow)) {
      runs[stopped] = true;
      for (unsigned value : graph.ops[stopped].uses)
        if (readers[value]++ == 0 && graph.values[value].op >= 0)
          ++needed[graph.values[value].op];
    }
    return change;
  }

private:
  void stop(unsigned first, Change &change) {
    stoppedNow.push_back(first);
    for (size_t next = 0; next < stoppedNow.size(); ++next) {
      unsigned op = stoppedNow[next];
      runs[op] = false;
      change.seconds += graph.ops[op].seconds;
      for (unsigned index : graph.ops[op].uses) {
        ++change.work;
        if (--readers[index] > 0)
          continue;
        const RecomputationGraph::Value &value = graph.values[index];
        if (value.op >= 0)
          --needed[value.op];
        if (value.op < 0 || !runs[value.op])
          change.bytes -= value.bytes;
        else if (needed[value.op] == 0)
          stoppedNow.push_back(value.op);
      }
    }
  }

  const RecomputationGraph &graph;
  std::vector<bool> runs;
  std::vector<int> readers; ///< Per value: who needs it.
  std::vector<int> needed;  ///< Per op: its values that are needed.
  std::vector<SmallVector<unsigned, 1>> valuesOf;
  std::vector<unsigned> stoppedNow; ///< By the last change.
};

class Search {
public:
  Search(const RecomputationGraph &graph, int64_t budget, int64_t effort)
      : graph(graph), budget(budget), effort(effort) {
    for (const RecomputationGraph::Op &op : graph.ops)
      allSeconds += op.seconds;
    for (const RecomputationGraph::Value &value : graph.values)
      allBytes += value.bytes;
  }
  RecomputationChoice run();

private:
  using Choice = RecomputationChoice;

  /// Returns the choice that runs, of these ops, those that are needed and
  /// those that are decided to run; nothing if a value can neither be stored
  /// nor computed.
  std::optional<Choice> evaluate(const std::vector<bool> &mayRun,
                                 ArrayRef<Decision> decisions = {}) const;
  /// The choice that takes the least seconds, bytes weighed by a multiplier.
  std::optional<Choice> solve(ArrayRef<Decision> decisions, double multiplier);
  /// Bounds a part and finds choices in it. Whether it can have better ones.
  bool bound(Part &part);
  void improve(const Choice &choice);
  void offer(const Choice &choice) {
    if (choice.bytes <= budget && (!best || choice.seconds < best->seconds))
      best = choice;
  }
  bool isWorse(double seconds) const {
    return best && seconds >= best->seconds * (1 - kRounding);
  }
  /// A byte costs more than all ops together.
  double getHighestMultiplier() const { return 2 * allSeconds + 1e-12; }

  const RecomputationGraph &graph;
  int64_t budget, effort;
  double allSeconds = 0;
  int64_t allBytes = 0;
  std::optional<Choice> best;
};

} // namespace

std::optional<RecomputationChoice>
Search::evaluate(const std::vector<bool> &mayRun,
                 ArrayRef<Decision> decisions) const {
  Choice choice;
  choice.runs.assign(graph.ops.size(), false);
  for (auto [op, decision] : enumerate(decisions))
    choice.runs[op] = decision == Decision::Runs;
  std::vector<bool> isNeeded(graph.values.size());
  bool isPossible = true;
  auto need = [&](unsigned index) {
    if (isNeeded[index])
      return;
    isNeeded[index] = true;
    const RecomputationGraph::Value &value = graph.values[index];
    if (value.op >= 0 && mayRun[value.op]) {
      choice.runs[value.op] = true;
      return;
    }
    isPossible &= value.mayStore;
    choice.bytes += value.bytes;
  };
  for (auto [index, value] : enumerate(graph.values))
    if (value.isNeeded)
      need(index);
  for (size_t op = graph.ops.size(); op-- > 0;) {
    if (!choice.runs[op])
      continue;
    choice.seconds += graph.ops[op].seconds;
    for (unsigned value : graph.ops[op].uses)
      need(value);
  }
  return isPossible ? std::optional(choice) : std::nullopt;
}

std::optional<RecomputationChoice> Search::solve(ArrayRef<Decision> decisions,
                                                 double multiplier) {
  unsigned ops = graph.ops.size(), values = graph.values.size();
  unsigned source = ops + values, sink = source + 1;
  // More than every cut that a choice is.
  double never =
      2 * (allSeconds + multiplier * static_cast<double>(allBytes)) + 1;
  MinimumCut network(sink + 1);
  for (unsigned op = 0; op < ops; ++op) {
    network.addEdge(op, sink,
                    decisions[op] == Decision::Rests ? never
                                                     : graph.ops[op].seconds);
    if (decisions[op] == Decision::Runs)
      network.addEdge(source, op, never);
    for (unsigned value : graph.ops[op].uses)
      network.addEdge(op, ops + value, never);
  }
  for (auto [index, value] : enumerate(graph.values)) {
    network.addEdge(
        ops + index, value.op < 0 ? sink : value.op,
        value.mayStore ? multiplier * static_cast<double>(value.bytes) : never);
    if (value.isNeeded)
      network.addEdge(source, ops + index, never);
  }
  std::vector<bool> side = network.solve(source, sink);
  effort -= network.getWork();
  std::vector<bool> mayRun(side.begin(), side.begin() + ops);
  for (unsigned op = 0; op < ops; ++op)
    if (mayRun[op] && decisions[op] == Decision::Rests)
      return std::nullopt;
  return evaluate(mayRun, decisions);
}

bool Search::bound(Part &part) {
  // The multiplier that bounded what this is a part of bounds it well, too.
  auto computeValue = [](const Choice &choice, double multiplier) {
    return choice.seconds + multiplier * static_cast<double>(choice.bytes);
  };
  std::optional<Choice> low, high; // Does not fit, and fits.
  auto ask = [&](double multiplier) -> std::optional<Choice> {
    std::optional<Choice> choice = solve(part.decisions, multiplier);
    if (!choice)
      return std::nullopt;
    double least = computeValue(*choice, multiplier) -
                   multiplier * static_cast<double>(budget);
    if (least > part.least) {
      part.least = least;
      part.multiplier = multiplier;
    }
    offer(*choice);
    (choice->bytes <= budget ? high : low) = choice;
    return choice;
  };
  if (!ask(part.multiplier) || isWorse(part.least))
    return false;
  if (!high && (!ask(getHighestMultiplier()) || !high))
    return false;
  if (!low && (!ask(0) || !low))
    return false; // The cheapest of all fits.
  // To the two ends of the edge of the hull over the budget.
  while (!isWorse(part.least)) {
    double multiplier = (high->seconds - low->seconds) /
                        static_cast<double>(low->bytes - high->bytes);
    double before = computeValue(*high, multiplier);
    std::optional<Choice> between = ask(std::max(multiplier, 0.0));
    if (!between ||
        computeValue(*between, multiplier) >= before * (1 - kRounding))
      break;
  }
  improve(*high);
  if (isWorse(part.least))
    return false;
  double most = -1;
  for (unsigned op = 0; op < graph.ops.size(); ++op)
    if (part.decisions[op] == Decision::Open &&
        low->runs[op] != high->runs[op] && graph.ops[op].seconds > most) {
      most = graph.ops[op].seconds;
      part.branch = static_cast<int>(op);
    }
  return part.branch >= 0;
}

/// Lets ops rest while there is room, those first that save the most seconds
/// per byte.
void Search::improve(const Choice &choice) {
  Changer changer(graph, choice.runs);
  int64_t bytes = choice.bytes;
  auto computeGain = [&](unsigned op) -> std::optional<double> {
    Changer::Change change = changer.tryRest(op);
    effort -= change.work;
    if (!change.isPossible || change.seconds <= 0 ||
        bytes + change.bytes > budget)
      return std::nullopt;
    // Where nothing more is stored, any second is worth it.
    return change.seconds /
           static_cast<double>(std::max<int64_t>(change.bytes, 1));
  };
  for (bool changed = true; changed;) {
    changed = false;
    std::priority_queue<std::pair<double, unsigned>> queue;
    for (unsigned op = 0; op < graph.ops.size(); ++op)
      if (std::optional<double> gain = computeGain(op))
        queue.push({*gain, op});
    while (!queue.empty()) {
      unsigned op = queue.top().second;
      queue.pop();
      // Others may rest since it was put there.
      std::optional<double> gain = computeGain(op);
      if (gain && !queue.empty() && *gain < queue.top().first) {
        queue.push({*gain, op});
      } else if (gain) {
        bytes += changer.rest(op).bytes;
        changed = true;
      }
    }
  }
  if (std::optional<Choice> improved = evaluate(changer.getRuns()))
    offer(*improved);
}

RecomputationChoice Search::run() {
  std::optional<Choice> none = evaluate(std::vector<bool>(graph.ops.size()));
  if (none && none->bytes <= budget)
    return *none;
  Part root;
  root.decisions.assign(graph.ops.size(), Decision::Open);
  root.multiplier = getHighestMultiplier();
  Choice fewest = *solve(root.decisions, root.multiplier);
  if (fewest.bytes > budget)
    return fewest;
  std::priority_queue<Part, std::vector<Part>, LeastFirst> parts;
  unsigned made = 0;
  int64_t effortOfParts = effort;
  if (bound(root))
    parts.push(root);
  effort = effortOfParts;
  while (!parts.empty() && effort > 0 && !isWorse(parts.top().least)) {
    Part part = parts.top();
    parts.pop();
    for (Decision decision : {Decision::Runs, Decision::Rests}) {
      Part half = part;
      half.decisions[part.branch] = decision;
      half.branch = -1;
      half.number = ++made;
      if (bound(half))
        parts.push(std::move(half));
    }
  }
  double least = parts.empty() || isWorse(parts.top().least)
                     ? best->seconds
                     : std::max(0.0, parts.top().least);
  // What was found last may leave room.
  improve(*best);
  best->leastSeconds = std::min(least, best->seconds);
  return *best;
}

RecomputationChoice
penstock::chooseRecomputation(const RecomputationGraph &graph, int64_t budget,
                              int64_t effort) {
  return Search(graph, budget, effort).run();
}
