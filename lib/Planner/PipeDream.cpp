//===- PipeDream.cpp - Stages with replicas on a hierarchy ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PipeDream.h. Level k solves A(i -> j, m), the least time of the slowest
// part when states i to j run on m components of level k - 1; a stage of level
// k is a whole pipeline of level k - 1.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/PipeDream.h"
#include "penstock/Support/Assert.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

using namespace llvm;
using namespace penstock;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
/// The best way to run one range on some number of components.
struct Cell {
  double seconds = kInfinity;
  int32_t split = -1; ///< The last state before the last stage; -1: one stage.
  int32_t lastReplicas = 1;
};

/// A(i -> j, m) of one level.
class Table {
public:
  Table(int64_t rows, int64_t states, int64_t components)
      : states(states), components(components),
        cells(rows * states * components) {}
  Cell &at(int64_t i, int64_t j, int64_t m) {
    return cells[(i * states + j) * components + m - 1];
  }

private:
  int64_t states, components;
  std::vector<Cell> cells;
};

/// The bound that is assumed of a stage before its neighbors are known: no more
/// than its schedule needs, or no less, with all other devices behind it.
enum class Supposed { Least, Most };

/// First and last state, replicas, and devices behind.
using Shape = std::tuple<int64_t, int64_t, int64_t, int64_t>;

class Solver {
public:
  Solver(const std::vector<PlanState> &states, const PipeDreamOptions &options,
         Supposed supposed, std::set<Shape> &tooLarge)
      : states(states), options(options), count(states.size()),
        supposed(supposed), tooLarge(tooLarge) {
    for (int64_t components : options.devices)
      total *= components;
    contains.assign(count, BitVector(count));
    for (auto [index, state] : enumerate(states))
      for (unsigned ancestor : state.ancestors)
        contains[index].set(ancestor);
  }

  std::optional<Plan> solve();

private:
  double seconds(int64_t i, int64_t j) const {
    return states[j].seconds - (i > 0 ? states[i - 1].seconds : 0);
  }
  double weights(int64_t i, int64_t j) const {
    return states[j].weightBytes - (i > 0 ? states[i - 1].weightBytes : 0);
  }
  double activations(int64_t i, int64_t j) const {
    return states[j].activationBytes -
           (i > 0 ? states[i - 1].activationBytes : 0);
  }
  double cutBytes(int64_t after) const {
    return options.form == PipeDreamForm::Paper ? states[after].cutBytes
                                                : states[after].frontierBytes;
  }
  /// Returns true if states i to j make a range: j contains all that lies
  /// before i.
  bool isRange(int64_t i, int64_t j) const {
    return i <= j && (i == 0 || contains[j].test(i - 1));
  }
  bool isReleased() const { return options.form == PipeDreamForm::Released; }
  bool isTop(size_t level) const { return level + 1 == options.devices.size(); }

  /// A of the level below for all of its components: one component here.
  double below(size_t level, int64_t i, int64_t j) {
    return level == 0
               ? seconds(i, j)
               : tables[level - 1].at(i, j, options.devices[level - 1]).seconds;
  }
  double allReduce(size_t level, int64_t i, int64_t j, int64_t replicas) const;
  double stage(size_t level, int64_t i, int64_t j, int64_t replicas);
  double transfer(size_t level, int64_t after, int64_t replicas) const;
  double combine(size_t level, int64_t i, int64_t split, int64_t j,
                 int64_t components, int64_t replicas);
  bool fits(size_t level, int64_t i, int64_t j, int64_t components,
            int64_t replicas) const;
  double getMemory(int64_t i, int64_t j, const StageCounts &counts) const;
  StageCounts suppose(int64_t i, int64_t j, int64_t replicas,
                      int64_t after) const;
  bool countMemory(Plan &plan);
  void solveLevel(size_t level);
  void solveRange(size_t level, int64_t i, int64_t j, int64_t components);
  void trace(size_t level, int64_t i, int64_t j, PlanStage outer, Plan &plan);
  void describe(PlanStage &stage) const;
  double getDataParallelSeconds() const;

  const std::vector<PlanState> &states;
  const PipeDreamOptions &options;
  int64_t count;
  Supposed supposed;
  std::set<Shape> &tooLarge; ///< Stages that did not fit in a whole plan.
  int64_t total = 1;
  std::vector<BitVector> contains;
  std::vector<Table> tables;
};
} // namespace

/// Seconds of the all-reduce, before it is shared by the replicas.
double Solver::allReduce(size_t level, int64_t i, int64_t j,
                         int64_t replicas) const {
  double moved = static_cast<double>(replicas - 1) * weights(i, j);
  if (isReleased())
    return 4 * moved /
           (options.bandwidths[level] * static_cast<double>(replicas));
  return 2 * moved / options.bandwidths[level];
}

/// T(i -> j, m).
double Solver::stage(size_t level, int64_t i, int64_t j, int64_t replicas) {
  double compute = below(level, i, j),
         reduce = allReduce(level, i, j, replicas);
  return (isReleased() ? compute + reduce : std::max(compute, reduce)) /
         static_cast<double>(replicas);
}

double Solver::transfer(size_t level, int64_t after, int64_t replicas) const {
  double full = 2 * (cutBytes(after) / options.bandwidths[level] +
                     options.latencySeconds);
  if (!isReleased())
    return full;
  if (options.compressionRatio == 0)
    return 0;
  return full / static_cast<double>(replicas) / options.compressionRatio;
}

/// Range i to j with its last stage after `split`.
double Solver::combine(size_t level, int64_t i, int64_t split, int64_t j,
                       int64_t components, int64_t replicas) {
  double time = std::max(
      {tables[level].at(i, split, components - replicas).seconds,
       stage(level, split + 1, j, replicas), transfer(level, split, replicas)});
  // The released planner also counts what the right-hand stage hands on.
  if (isReleased() && j + 1 < count)
    time = std::max(time, transfer(level, j, replicas));
  return time;
}

double Solver::getMemory(int64_t i, int64_t j,
                         const StageCounts &counts) const {
  return getStageBytes({weights(i, j), activations(i, j),
                        i > 0 ? cutBytes(i - 1) : 0,
                        j + 1 < count ? cutBytes(j) : 0},
                       counts, options.memory.weightCopies);
}

/// Without replicas both are what it is.
StageCounts Solver::suppose(int64_t i, int64_t j, int64_t replicas,
                            int64_t after) const {
  bool isMost = supposed == Supposed::Most;
  StageCounts counts;
  counts.inFlight = divideCeilSigned(after + replicas, replicas);
  counts.versions = isMost || options.straight
                        ? counts.inFlight
                        : std::min<int64_t>(counts.inFlight, 2);
  bool differ = isMost && !options.straight;
  if (i > 0) {
    // One replica or more before it, each with its share of all from there on.
    counts.inputs =
        differ ? divideCeilSigned(2 * total - after - replicas, replicas) : 1;
    counts.inputGradients = 1;
  }
  if (j + 1 < count) {
    counts.outputs = 1;
    counts.outputGradients = differ ? counts.inFlight : 1;
  }
  return counts;
}

/// Returns true if there may be a stage that is the last one of `components`.
bool Solver::fits(size_t level, int64_t i, int64_t j, int64_t components,
                  int64_t replicas) const {
  if (options.microbatches % replicas != 0 ||
      (level == 0 && options.allows &&
       !options.allows(i, j, replicas, options.devices[level] - components)))
    return false;
  if (options.memory.limit == 0)
    return true;
  int64_t after = options.devices[level] - components;
  if (isReleased())
    return static_cast<double>(divideCeilSigned(after, replicas)) *
               (activations(i, j) + weights(i, j)) <=
           options.memory.limit;
  if (level > 0)
    return true; // Stages of the lowest level are what a device holds.
  if (isTop(level) && tooLarge.count({i, j, replicas, after}))
    return false;
  // How many devices follow is known exactly on one level only.
  if (supposed == Supposed::Most)
    after = total - components;
  return getMemory(i, j, suppose(i, j, replicas, after)) <=
         options.memory.limit;
}

void Solver::solveRange(size_t level, int64_t i, int64_t j,
                        int64_t components) {
  Cell best;
  if ((components == 1 || !options.straight) &&
      fits(level, i, j, components, components)) {
    best.seconds = stage(level, i, j, components);
    // The released planner divides the all-reduce of an undivided range by the
    // components of the level below.
    if (isReleased() && level > 0)
      best.seconds = (below(level, i, j) +
                      allReduce(level, i, j, components) /
                          static_cast<double>(options.devices[level - 1])) /
                     static_cast<double>(components);
    best.lastReplicas = static_cast<int32_t>(components);
  }
  // Among equals the earliest cut and the fewest replicas after it. (The
  // released planner goes through a hash set of objects there, and sums in its
  // order.)
  for (unsigned split : states[j].ancestors) {
    if (!isRange(i, split))
      continue;
    int64_t most = options.straight ? 1 : components - 1;
    for (int64_t replicas = 1; replicas <= std::min(most, components - 1);
         ++replicas) {
      if (!fits(level, split + 1, j, components, replicas))
        continue;
      double time = combine(level, i, split, j, components, replicas);
      if (time < best.seconds)
        best = {time, static_cast<int32_t>(split),
                static_cast<int32_t>(replicas)};
    }
  }
  tables[level].at(i, j, components) = best;
}

void Solver::solveLevel(size_t level) {
  int64_t rows = isTop(level) ? 1 : count;
  tables.emplace_back(rows, count, options.devices[level]);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t components = 1; components <= options.devices[level];
         ++components)
      for (int64_t j = i; j < count; ++j)
        if (isRange(i, j))
          solveRange(level, i, j, components);
}

/// Adds the stages of range i to j on all components of a level. `outer` has
/// what the levels above say of the range: replicas, all-reduce, transfers.
void Solver::trace(size_t level, int64_t i, int64_t j, PlanStage outer,
                   Plan &plan) {
  struct Part {
    int64_t first, last, replicas;
  };
  std::vector<Part> parts;
  int64_t components = options.devices[level];
  for (int64_t end = j; end >= i;) {
    Cell cell = tables[level].at(i, end, components);
    parts.push_back(
        {cell.split < 0 ? i : cell.split + 1, end, cell.lastReplicas});
    if (cell.split < 0)
      break;
    PlanCut cut{static_cast<int64_t>(level) + 1, cell.split, {}};
    for (int64_t after = cell.split - 1; after <= cell.split + 1; ++after)
      if (after >= i && after < end && contains[end].test(after) &&
          isRange(i, after) &&
          fits(level, after + 1, end, components, cell.lastReplicas)) {
        double seconds =
            combine(level, i, after, end, components, cell.lastReplicas);
        if (seconds < kInfinity)
          cut.alternatives.push_back({after, seconds});
      }
    plan.cuts.push_back(std::move(cut));
    end = cell.split;
    components -= cell.lastReplicas;
  }
  for (const Part &part : reverse(parts)) {
    plan.levels.push_back({static_cast<int64_t>(level) + 1, part.first,
                           part.last, part.replicas});
    PlanStage stage = outer;
    stage.first = part.first;
    stage.last = part.last;
    stage.replicas *= part.replicas;
    double reduce = allReduce(level, part.first, part.last, part.replicas) /
                    static_cast<double>(stage.replicas);
    stage.times.allReduce = isReleased()
                                ? stage.times.allReduce + reduce
                                : std::max(stage.times.allReduce, reduce);
    if (part.first > i)
      stage.times.input = transfer(level, part.first - 1, part.replicas);
    if (part.last < j)
      stage.times.output = transfer(level, part.last, part.replicas);
    if (level > 0) {
      trace(level - 1, part.first, part.last, stage, plan);
      continue;
    }
    describe(stage);
    plan.stages.push_back(stage);
  }
}

void Solver::describe(PlanStage &stage) const {
  stage.times.compute =
      seconds(stage.first, stage.last) / static_cast<double>(stage.replicas);
  stage.weightBytes = weights(stage.first, stage.last);
  stage.activationBytes = activations(stage.first, stage.last);
}

double Solver::getDataParallelSeconds() const {
  double time = seconds(0, count - 1);
  double inner = 1;
  for (size_t level = 0; level < options.devices.size(); ++level) {
    auto components = static_cast<double>(options.devices[level]);
    double reduce = allReduce(level, 0, count - 1, options.devices[level]);
    time = isReleased() ? (time + reduce / inner) / components
                        : std::max(time, reduce) / components;
    inner = components;
  }
  return time;
}

std::optional<Plan> Solver::solve() {
  for (size_t level = 0; level < options.devices.size(); ++level)
    solveLevel(level);
  const Cell &best = tables.back().at(0, count - 1, options.devices.back());
  if (best.seconds == kInfinity)
    return std::nullopt;
  Plan plan;
  plan.slowestSeconds = best.seconds;
  plan.oneDeviceSeconds = seconds(0, count - 1);
  plan.dataParallelSeconds = getDataParallelSeconds();
  trace(options.devices.size() - 1, 0, count - 1, PlanStage(), plan);
  llvm::sort(plan.cuts, [](const PlanCut &a, const PlanCut &b) {
    return a.after < b.after;
  });
  if ((options.countsMemory || options.memory.limit > 0) && !countMemory(plan))
    return std::nullopt;
  return plan;
}

/// In the schedule of the whole plan. Whether it fits; notes what does not.
bool Solver::countMemory(Plan &plan) {
  SmallVector<int64_t> replicas;
  for (const PlanStage &stage : plan.stages)
    replicas.push_back(stage.replicas);
  std::optional<std::vector<StageCounts>> counts =
      countSchedule(replicas, PlannedMethod::Stashing);
  plan.isSchedulable = counts.has_value();
  if (!counts)
    return true; // It is for the caller to say so.
  int64_t after = 0;
  bool fits = true;
  for (auto [stage, found] : reverse(zip_equal(plan.stages, *counts))) {
    stage.inFlight = found.inFlight;
    stage.memoryBytes = getMemory(stage.first, stage.last, found);
    if (!isReleased() && options.memory.limit > 0 &&
        stage.memoryBytes > options.memory.limit) {
      tooLarge.insert({stage.first, stage.last, stage.replicas, after});
      fits = false;
    }
    after += stage.replicas;
  }
  return fits;
}

std::optional<Plan>
penstock::planPipeDream(const std::vector<PlanState> &states,
                        const PipeDreamOptions &options) {
  PENSTOCK_ASSERT(!states.empty() && !options.devices.empty() &&
                      options.devices.size() == options.bandwidths.size(),
                  "nothing to plan");
  // What a stage needs depends on its neighbors, too. A plan that may fit by
  // what is sure of its stages is counted as a whole, and what does not fit
  // there is left out; where that comes to nothing, or there are several
  // levels, the most that a stage might need is supposed.
  std::set<Shape> tooLarge;
  bool isFlat = options.devices.size() == 1;
  constexpr int kMostTrials = 64;
  for (int trial = 0; trial < (isFlat ? kMostTrials : 1); ++trial) {
    size_t known = tooLarge.size();
    if (std::optional<Plan> plan =
            Solver(states, options, Supposed::Least, tooLarge).solve())
      return plan;
    if (tooLarge.size() == known)
      break; // There is none to count.
  }
  if (options.memory.limit == 0 || tooLarge.empty())
    return std::nullopt;
  tooLarge.clear();
  return Solver(states, options, Supposed::Most, tooLarge).solve();
}
