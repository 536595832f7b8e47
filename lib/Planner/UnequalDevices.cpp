//===- UnequalDevices.cpp - Lines of devices of different speed -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dynamic program of PipeDream without replicas (SOSP 2019, section 3.1),
// over prefixes of the layers and over what has been used of each kind of
// device: a stage takes its compute divided by the speed of its device, a cut
// the transfer of its activation and of the gradient of that.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/UnequalDevices.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

using namespace llvm;
using namespace penstock;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr int64_t kMostDevices = 64;

std::optional<std::vector<DeviceKind>>
penstock::parseDeviceKinds(StringRef text, std::string &error) {
  std::vector<DeviceKind> devices;
  SmallVector<StringRef> hosts, speeds;
  text.split(hosts, ';');
  for (auto [host, list] : enumerate(hosts)) {
    speeds.clear();
    list.split(speeds, ',');
    for (StringRef part : speeds) {
      double speed;
      if (part.trim().getAsDouble(speed) || !(speed > 0) || speed > 1e6 ||
          speed < 1e-6) {
        error = "'" + part.str() +
                "' is no speed: a number from 1e-6 to 1e6, "
                "1 for the device that layers were "
                "measured on";
        return std::nullopt;
      }
      devices.push_back({static_cast<int64_t>(host), speed});
    }
  }
  if (devices.size() > kMostDevices) {
    error = "at most " + std::to_string(kMostDevices) + " devices, not " +
            std::to_string(devices.size());
    return std::nullopt;
  }
  return devices;
}

namespace {

/// Devices of one host and speed, and how many of them there are.
struct DeviceClass {
  DeviceKind kind;
  int64_t count = 0;
};

} // namespace

/// Returns the classes of devices by host, the fastest first.
static std::vector<DeviceClass> classify(ArrayRef<DeviceKind> devices) {
  std::vector<DeviceClass> classes;
  for (const DeviceKind &device : devices) {
    auto known = find_if(classes, [&](const DeviceClass &other) {
      return other.kind == device;
    });
    if (known == classes.end())
      classes.push_back({device, 1});
    else
      ++known->count;
  }
  llvm::sort(classes, [](const DeviceClass &a, const DeviceClass &b) {
    return std::pair(a.kind.host, -a.kind.speed) <
           std::pair(b.kind.host, -b.kind.speed);
  });
  return classes;
}

//===----------------------------------------------------------------------===//
// Devices of workers
//===----------------------------------------------------------------------===//

namespace {

/// Shares out classes of devices, equally many for every worker. Workers are
/// alike, so that each takes no more of the first class in which they differ
/// than the one before it.
class HybridSearch {
public:
  HybridSearch(std::vector<DeviceClass> classes, int64_t workers, int64_t each)
      : classes(std::move(classes)), workers(workers), each(each) {
    for (const DeviceClass &known : this->classes)
      left.push_back(known.count);
  }

  /// False if there are too many assignments to compare.
  bool search() {
    choose(std::vector<int64_t>(classes.size()), 0, each);
    return steps < kMostSteps;
  }
  std::vector<std::vector<DeviceKind>> getBest() const;

private:
  static constexpr int64_t kMostSteps = int64_t(1) << 22;

  void choose(std::vector<int64_t> taken, size_t index, int64_t more);
  void finish();
  /// The first one may take anything.
  bool mayFollow(const std::vector<int64_t> &taken) const {
    return chosen.empty() || taken <= chosen.back();
  }

  std::vector<DeviceClass> classes;
  int64_t workers, each;
  std::vector<int64_t> left;
  std::vector<std::vector<int64_t>> chosen, best;
  double bestSpread = kInfinity;
  int64_t fewestHosts = 0, steps = 0;
};

} // namespace

void HybridSearch::choose(std::vector<int64_t> taken, size_t index,
                          int64_t more) {
  if (++steps >= kMostSteps)
    return;
  if (index < classes.size()) {
    for (int64_t count = std::min(left[index], more); count >= 0; --count) {
      taken[index] = count;
      choose(taken, index + 1, more - count);
    }
    return;
  }
  if (more > 0 || !mayFollow(taken))
    return;
  chosen.push_back(taken);
  for (auto [rest, count] : zip_equal(left, taken))
    rest -= count;
  if (static_cast<int64_t>(chosen.size()) == workers)
    finish();
  else
    choose(std::vector<int64_t>(classes.size()), 0, each);
  for (auto [rest, count] : zip_equal(left, taken))
    rest += count;
  chosen.pop_back();
}

void HybridSearch::finish() {
  double most = 0, least = kInfinity;
  int64_t hosts = 0;
  for (const std::vector<int64_t> &taken : chosen) {
    double speed = 0;
    std::vector<int64_t> own;
    for (auto [known, count] : zip_equal(classes, taken)) {
      speed += static_cast<double>(count) * known.kind.speed;
      if (count > 0 && !is_contained(own, known.kind.host))
        own.push_back(known.kind.host);
    }
    most = std::max(most, speed);
    least = std::min(least, speed);
    hosts += static_cast<int64_t>(own.size());
  }
  // Sums of speeds are not exact.
  double spread = std::round((most - least) * 1e9) / 1e9;
  if (spread > bestSpread || (spread == bestSpread && hosts >= fewestHosts))
    return;
  bestSpread = spread;
  fewestHosts = hosts;
  best = chosen;
}

std::vector<std::vector<DeviceKind>> HybridSearch::getBest() const {
  std::vector<std::vector<DeviceKind>> result;
  for (const std::vector<int64_t> &taken : best) {
    result.emplace_back();
    for (auto [known, count] : zip_equal(classes, taken))
      result.back().insert(result.back().end(), count, known.kind);
  }
  return result;
}

static std::string describeNumber(double number) {
  return formatv("{0}", number).str();
}

std::optional<std::vector<std::vector<DeviceKind>>>
penstock::assignDevices(ArrayRef<DeviceKind> devices, int64_t workers,
                        WorkerPolicy policy, std::string &error) {
  auto total = static_cast<int64_t>(devices.size());
  if (workers < 1 || total % workers != 0) {
    error = std::to_string(total) +
            " devices cannot be shared out evenly "
            "among " +
            std::to_string(workers) +
            " workers; use a number of workers that "
            "divides " +
            std::to_string(total);
    return std::nullopt;
  }
  int64_t each = total / workers;
  std::vector<std::vector<DeviceKind>> result(workers);
  switch (policy) {
  case WorkerPolicy::Node: {
    std::map<int64_t, std::vector<DeviceKind>> hosts;
    for (const DeviceKind &device : devices)
      hosts[device.host].push_back(device);
    if (static_cast<int64_t>(hosts.size()) != workers ||
        any_of(hosts, [&](const auto &host) {
          return static_cast<int64_t>(host.second.size()) != each;
        })) {
      error = "a worker per host needs as many hosts as workers, " +
              std::to_string(workers) + ", of " + std::to_string(each) +
              (each == 1 ? " device" : " devices") +
              " each; separate hosts by ';' in --device-speeds, or use "
              "--policy=hybrid";
      return std::nullopt;
    }
    for (auto [worker, host] : zip_equal(result, hosts))
      worker = host.second;
    return result;
  }
  case WorkerPolicy::Equal: {
    std::map<double, std::vector<DeviceKind>, std::greater<>> speeds;
    for (const DeviceKind &device : devices)
      speeds[device.speed].push_back(device);
    for (const auto &[speed, known] : speeds) {
      auto count = static_cast<int64_t>(known.size());
      if (count % workers != 0) {
        error = std::to_string(count) + " devices of speed " +
                describeNumber(speed) + " cannot be shared out evenly among " +
                std::to_string(workers) + " workers; use --policy=hybrid";
        return std::nullopt;
      }
      for (auto [index, device] : enumerate(known))
        result[static_cast<int64_t>(index) / (count / workers)].push_back(
            device);
    }
    return result;
  }
  case WorkerPolicy::Hybrid: {
    HybridSearch search(classify(devices), workers, each);
    if (!search.search()) {
      error = "there are too many ways to share out these devices; use "
              "--policy=node or --policy=equal";
      return std::nullopt;
    }
    return search.getBest();
  }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The cuts of a worker
//===----------------------------------------------------------------------===//

namespace {

class WorkerSearch {
public:
  WorkerSearch(const std::vector<PlanState> &states,
               ArrayRef<DeviceKind> devices, const UnequalOptions &options,
               int64_t wave)
      : states(states), classes(classify(devices)), options(options),
        wave(wave), depth(static_cast<int64_t>(devices.size())),
        count(static_cast<int64_t>(states.size())) {
    for (const DeviceClass &known : classes) {
      radix.push_back(used);
      used *= known.count + 1;
    }
  }

  std::optional<WorkerPlan> search();

private:
  /// The best of lines that end with a device of this class, and where its last
  /// stage begins.
  struct Entry {
    double value = kInfinity;
    int64_t begin = 0;
    int previous = -1;
  };
  using Extend =
      function_ref<double(double before, double compute, double input)>;

  void solve(Extend extend);
  double getSeconds(int64_t begin, int64_t end, int kind) const;
  double getInputSeconds(int64_t begin, int previous, int kind) const;
  double getBytes(int64_t stage, int64_t begin, int64_t end) const;
  Entry &at(int64_t state, int kind, int64_t end) {
    return table[(state * static_cast<int64_t>(classes.size()) + kind) *
                     (count + 1) +
                 end];
  }
  int64_t countUsed(int64_t state, int kind) const {
    return state / radix[kind] % (classes[kind].count + 1);
  }
  WorkerPlan read();

  const std::vector<PlanState> &states;
  std::vector<DeviceClass> classes;
  const UnequalOptions &options;
  int64_t wave, depth, count;
  /// States count how many of each class are used, in mixed radix.
  std::vector<int64_t> radix;
  int64_t used = 1;
  std::vector<Entry> table;
};

} // namespace

double WorkerSearch::getSeconds(int64_t begin, int64_t end, int kind) const {
  double before = begin > 0 ? states[begin - 1].seconds : 0;
  return (states[end - 1].seconds - before) / classes[kind].kind.speed;
}

/// The activation one way and its gradient the other.
double WorkerSearch::getInputSeconds(int64_t begin, int previous,
                                     int kind) const {
  if (begin == 0)
    return 0;
  bool isInside = classes[previous].kind.host == classes[kind].kind.host;
  return 2 *
         (states[begin - 1].cutBytes /
              (isInside ? options.bandwidthInside : options.bandwidthBetween) +
          options.latencySeconds);
}

double WorkerSearch::getBytes(int64_t stage, int64_t begin, int64_t end) const {
  auto of = [&](double PlanState::*field) {
    return states[end - 1].*field - (begin > 0 ? states[begin - 1].*field : 0);
  };
  StageSizes sizes;
  sizes.weights = of(&PlanState::weightBytes);
  sizes.activations = of(&PlanState::activationBytes);
  sizes.input = begin > 0 ? states[begin - 1].cutBytes : 0;
  sizes.output = end < count ? states[end - 1].cutBytes : 0;
  StageCounts counts;
  counts.inFlight = std::min(wave, depth - stage);
  counts.inputs = counts.inputGradients = begin > 0;
  counts.outputs = counts.outputGradients = end < count;
  // Alone, PipeDream; with others, vertical sync in the worker, the global
  // weights, what a wave began with, the own changes and those that move.
  counts.versions = counts.inFlight;
  double copies = options.memory.weightCopies;
  if (options.workers > 1) {
    int64_t distance = options.distance;
    counts.versions = wave;
    copies += static_cast<double>((2 * distance + 2) * (options.workers - 1) +
                                  (distance > 0 ? distance + 1 + 2 : 2));
  }
  return getStageBytes(sizes, counts, copies);
}

/// In the order of how many devices are used: each state after those that it
/// extends.
void WorkerSearch::solve(Extend extend) {
  auto kinds = static_cast<int>(classes.size());
  table.assign(used * kinds * (count + 1), Entry());
  for (int64_t state = 1; state < used; ++state) {
    int64_t stage = -1;
    for (int kind = 0; kind < kinds; ++kind)
      stage += countUsed(state, kind);
    for (int kind = 0; kind < kinds; ++kind) {
      if (countUsed(state, kind) == 0)
        continue;
      int64_t before = state - radix[kind];
      for (int64_t end = stage + 1; end <= count; ++end) {
        Entry &entry = at(state, kind, end);
        for (int64_t begin = stage; begin < end; ++begin) {
          if ((begin == 0) != (stage == 0) ||
              (options.memory.limit > 0 &&
               getBytes(stage, begin, end) > options.memory.limit))
            continue;
          double compute = getSeconds(begin, end, kind);
          if (stage == 0) {
            double value = extend(0, compute, 0);
            if (value < entry.value)
              entry = {value, begin, -1};
            continue;
          }
          for (int previous = 0; previous < kinds; ++previous) {
            double value = at(before, previous, begin).value;
            if (value == kInfinity)
              continue;
            value =
                extend(value, compute, getInputSeconds(begin, previous, kind));
            if (value < entry.value)
              entry = {value, begin, previous};
          }
        }
      }
    }
  }
}

/// The line that the table ends with.
WorkerPlan WorkerSearch::read() {
  WorkerPlan plan;
  plan.wave = wave;
  int64_t state = used - 1, end = count;
  int kind = 0;
  for (int other = 1; other < static_cast<int>(classes.size()); ++other)
    if (at(state, other, end).value < at(state, kind, end).value)
      kind = other;
  while (state > 0) {
    Entry entry = at(state, kind, end);
    UnequalStage stage;
    stage.device = classes[kind].kind;
    stage.first = entry.begin;
    stage.last = end - 1;
    stage.computeSeconds = getSeconds(entry.begin, end, kind);
    stage.inputSeconds = getInputSeconds(entry.begin, entry.previous, kind);
    plan.stages.push_back(stage);
    state -= radix[kind];
    end = entry.begin;
    kind = entry.previous;
  }
  std::reverse(plan.stages.begin(), plan.stages.end());
  for (auto [index, stage] : enumerate(plan.stages)) {
    stage.memoryBytes =
        getBytes(static_cast<int64_t>(index), stage.first, stage.last + 1);
    plan.slowestSeconds = std::max(
        {plan.slowestSeconds, stage.computeSeconds, stage.inputSeconds});
    plan.latencySeconds += stage.computeSeconds + stage.inputSeconds;
  }
  return plan;
}

std::optional<WorkerPlan> WorkerSearch::search() {
  if (depth > count)
    return std::nullopt;
  // First the slowest stage or transfer, then, within that, the least latency.
  solve([](double before, double compute, double input) {
    return std::max({before, compute, input});
  });
  double slowest = kInfinity;
  for (int kind = 0; kind < static_cast<int>(classes.size()); ++kind)
    slowest = std::min(slowest, at(used - 1, kind, count).value);
  if (slowest == kInfinity)
    return std::nullopt;
  solve([&](double before, double compute, double input) {
    return std::max(compute, input) > slowest ? kInfinity
                                              : before + compute + input;
  });
  return read();
}

std::optional<WorkerPlan>
penstock::planWorker(const std::vector<PlanState> &states,
                     ArrayRef<DeviceKind> devices,
                     const UnequalOptions &options) {
  if (options.wave > 0)
    return WorkerSearch(states, devices, options, options.wave).search();
  for (auto wave = static_cast<int64_t>(devices.size()); wave > 0; --wave)
    if (auto plan = WorkerSearch(states, devices, options, wave).search())
      return plan;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Clocks
//===----------------------------------------------------------------------===//

ClockSimulation penstock::simulateClocks(ArrayRef<WorkerPlan> workers,
                                         int64_t distance) {
  constexpr int64_t kWaves = 128;
  // 1. When each worker begins and ends each microbatch of as many waves.
  struct Clock {
    std::vector<double> begins, ends, waits;
    double getEnd(int64_t k) const { return k < 0 ? 0 : ends[k]; }
  };
  std::vector<Clock> clocks(workers.size());
  int64_t longest = 0;
  for (const WorkerPlan &worker : workers)
    longest = std::max(longest, worker.wave);
  for (int64_t wave = 0; wave < kWaves; ++wave)
    for (int64_t in = 0; in < longest; ++in)
      for (auto [index, worker] : enumerate(workers)) {
        if (in >= worker.wave)
          continue;
        Clock &clock = clocks[index];
        int64_t k = wave * worker.wave + in;
        // Its own updates but the last N - 1, and whole waves of the others.
        int64_t own = std::max<int64_t>(0, k - (worker.wave - 1));
        int64_t whole = std::max<int64_t>(0, own / worker.wave - distance);
        double begin = clock.getEnd(own - 1);
        if (k > 0)
          begin = std::max(begin, clock.begins[k - 1] + worker.slowestSeconds);
        double due = 0;
        for (auto [other, known] : enumerate(workers))
          if (other != index && whole > 0)
            due = std::max(due, clocks[other].ends[whole * known.wave - 1]);
        clock.waits.push_back(std::max(0.0, due - begin));
        begin = std::max(begin, due);
        clock.begins.push_back(begin);
        clock.ends.push_back(std::max(begin + worker.latencySeconds,
                                      clock.getEnd(k - 1) +
                                          (k > 0 ? worker.slowestSeconds : 0)));
      }

  // 2. The second half of it is the steady state.
  ClockSimulation result;
  std::vector<std::pair<double, size_t>> waves;
  for (auto [index, worker] : enumerate(workers)) {
    const Clock &clock = clocks[index];
    auto all = static_cast<int64_t>(clock.ends.size());
    int64_t from = all / 2;
    double seconds = clock.ends[all - 1] - clock.ends[from - 1], waited = 0;
    for (int64_t k = from; k < all; ++k)
      waited += clock.waits[k];
    result.microbatchesPerSecond += static_cast<double>(all - from) / seconds;
    result.waitingShare.push_back(waited / seconds);
    for (int64_t k = worker.wave - 1; k < all; k += worker.wave)
      waves.emplace_back(clock.ends[k], index);
  }

  // 3. How far one is ahead of another, until the first has come to its end.
  llvm::sort(waves);
  std::vector<int64_t> done(workers.size());
  for (const auto &[end, index] : waves) {
    if (++done[index] == kWaves)
      break;
    result.largestDistance = std::max(result.largestDistance,
                                      done[index] - *llvm::min_element(done));
  }
  return result;
}

std::optional<UnequalPlan>
penstock::planUnequal(const std::vector<PlanState> &states,
                      ArrayRef<DeviceKind> devices,
                      const UnequalOptions &options, std::string &error) {
  std::optional<std::vector<std::vector<DeviceKind>>> assigned =
      assignDevices(devices, options.workers, options.policy, error);
  if (!assigned)
    return std::nullopt;
  auto depth = static_cast<int64_t>(assigned->front().size());
  if (depth > static_cast<int64_t>(states.size())) {
    error = formatv("a worker has {0} devices, but there are only {1} layers",
                    depth, states.size());
    return std::nullopt;
  }
  // All exchange waves of as many updates.
  UnequalOptions common = options;
  UnequalPlan plan;
  for (bool isEqual = false; !isEqual;) {
    plan.workers.clear();
    isEqual = true;
    for (ArrayRef<DeviceKind> own : *assigned) {
      std::optional<WorkerPlan> worker = planWorker(states, own, common);
      if (!worker) {
        error = "no plan fits";
        return std::nullopt;
      }
      isEqual &=
          plan.workers.empty() || worker->wave == plan.workers.front().wave;
      plan.workers.push_back(std::move(*worker));
    }
    for (const WorkerPlan &worker : plan.workers)
      common.wave =
          common.wave > 0 ? std::min(common.wave, worker.wave) : worker.wave;
  }
  plan.clocks = simulateClocks(plan.workers, options.distance);
  return plan;
}
