//===- Bind.cpp - Generated orders for the tasks of a model ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A generator knows one stage per chunk, with one task of each kind. A model
// may have several stages in a chunk, which run like one: forward in order,
// backward in reverse; and halves of a backward or the whole, or none.
//===----------------------------------------------------------------------===//

#include "Generators/Families.h"
#include "Unblock.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>

using namespace llvm;

namespace penstock::schedule {

int chunkOfStage(int stage, int stages, int chunks) {
  int share = stages / chunks, longer = stages % chunks;
  int split = longer * (share + 1);
  return stage < split ? stage / (share + 1) : longer + (stage - split) / share;
}

namespace {

/// The tasks of one chunk on one device, by letter, in the order they run.
struct ChunkTasks {
  SmallVector<int, 2> forward, whole, input, weight, update, evaluate;
  SmallVector<int, 2> push, fold;

  ArrayRef<int> of(char letter) const {
    switch (letter) {
    case 'F':
      return forward;
    case 'B':
      return whole;
    case 'I':
      return input;
    case 'W':
      return weight;
    default:
      return update;
    }
  }
};

/// The devices of a line of groups of stages: one group per place and chunk.
struct Layout {
  /// The position among the problem's devices, or -1, by device of the model.
  std::vector<int> places;
  int devices = 0;
  /// The chunk of each stage.
  std::vector<int> chunks;
};

} // namespace

static ChunkTasks getChunkTasks(const Model &model, ArrayRef<int> stages) {
  ChunkTasks result;
  SmallVector<int, 2> norms;
  for (int stage : stages) {
    std::map<char, SmallVector<int, 2>> tasks;
    for (auto [id, task] : llvm::enumerate(model.tasks))
      if (task.stage == stage)
        tasks[task.letter].push_back(id);
    llvm::append_range(result.forward, tasks['F']);
    llvm::append_range(result.evaluate, tasks['E']);
    llvm::append_range(norms, tasks['G']);
    llvm::append_range(result.update, tasks['U']);
    llvm::append_range(result.push, tasks['P']);
    llvm::append_range(result.fold, tasks['S']);
    auto prepend = [](SmallVector<int, 2> &to, ArrayRef<int> from) {
      to.insert(to.begin(), from.begin(), from.end());
    };
    // A whole backward stands where the half does that others wait for.
    SmallVector<int, 2> whole = tasks['B'];
    SmallVector<int, 2> input = whole;
    llvm::append_range(input, tasks['I']);
    llvm::append_range(whole, tasks['I']);
    llvm::append_range(whole, tasks['W']);
    prepend(result.whole, whole);
    prepend(result.input, input);
    prepend(result.weight, tasks['W']);
  }
  // An update may need the norms of all stages.
  result.update.insert(result.update.begin(), norms.begin(), norms.end());
  return result;
}

/// In a line, stages of the same devices are one, wherever they stand.
static Layout layOutLine(const Model &model) {
  Layout layout;
  layout.places.assign(model.devices, -1);
  std::vector<int> firstStages;
  for (auto [index, stage] : llvm::enumerate(model.stages))
    for (int device : stage.devices) {
      if (layout.places[device] >= 0)
        continue;
      if (!llvm::is_contained(firstStages, int(index)))
        firstStages.push_back(index);
      layout.places[device] =
          llvm::find(firstStages, int(index)) - firstStages.begin();
    }
  layout.devices = firstStages.size();
  for (const Stage &stage : model.stages)
    layout.chunks.push_back(
        stage.devices.empty() ? 0 : layout.places[stage.devices.front()]);
  return layout;
}

/// Elsewhere, stages must lie where the schedule puts its chunks.
static std::optional<Layout>
layOutChunks(const Model &model, const ScheduleSpec &spec, std::string &error) {
  Layout layout = layOutLine(model);
  // Directions meet on all devices, each of which has a place of its own.
  if (spec.replicas() > 1)
    layout.devices = model.devices - llvm::count(layout.places, -1);
  int chunks = layout.devices * spec.chunks();
  int stages = model.stages.size();
  std::string wants = "schedule " + spec.name().str() + " on " +
                      std::to_string(layout.devices) + " devices ";
  if (stages < chunks) {
    error = wants + "needs " + std::to_string(chunks) + " stages, " +
            std::to_string(spec.chunks()) + " per device; there are " +
            std::to_string(stages);
    return std::nullopt;
  }
  std::vector<int> places(model.devices, -1);
  for (auto [index, stage] : llvm::enumerate(model.stages)) {
    layout.chunks[index] = chunkOfStage(index, stages, chunks);
    if (int(stage.devices.size()) % spec.replicas() != 0) {
      error = wants + "needs " + std::to_string(spec.replicas()) +
              " replicas of every stage";
      return std::nullopt;
    }
    for (auto [replica, device] : llvm::enumerate(stage.devices)) {
      int place = spec.getDevice(layout.chunks[index], layout.devices,
                                 replica % spec.replicas());
      if (places[device] >= 0 && places[device] != place) {
        error = wants + "needs its stages placed for it: stage " +
                std::to_string(index) + " is not where it belongs";
        return std::nullopt;
      }
      places[device] = place;
    }
  }
  layout.places = std::move(places);
  return layout;
}

/// An update may need the norms of all chunks: those that stand together run in
/// the order G, U.
static void putNormsFirst(const Model &model, Loop &loop) {
  auto letter = [&](const Item &item) {
    return item.loop < 0 && item.kind == EventKind::Run
               ? model.tasks[item.id].letter
               : ' ';
  };
  auto isLate = [&](const Item &item) {
    return letter(item) == 'G' || letter(item) == 'U';
  };
  for (auto from = loop.items.begin(); from != loop.items.end();) {
    from = std::find_if(from, loop.items.end(), isLate);
    auto to = std::find_if_not(from, loop.items.end(), isLate);
    std::vector<Item> norms, updates;
    for (const Item &item : llvm::make_range(from, to))
      (letter(item) == 'G' ? norms : updates).push_back(item);
    from = std::copy(norms.begin(), norms.end(), from);
    from = std::copy(updates.begin(), updates.end(), from);
  }
}

static Order bindOrder(const Model &model, const Problem &problem,
                       const Order &order, int device,
                       const std::map<int, ChunkTasks> &tasks) {
  Order result = order;
  result.device = device;
  for (Loop &loop : result.loops) {
    std::vector<Item> items;
    for (const Item &item : loop.items) {
      if (item.loop >= 0) {
        items.push_back(item);
        continue;
      }
      auto chunk = tasks.find(problem.getStage(item.id));
      if (chunk == tasks.end())
        continue;
      for (int task : chunk->second.of(problem.getLetter(item.id))) {
        items.push_back(item);
        items.back().id = task;
      }
    }
    loop.items = std::move(items);
    putNormsFirst(model, loop);
  }
  return result;
}

/// Returns the summed times of the stages of each chunk.
static std::vector<Times> addUpTimes(const Model &model, const Layout &layout,
                                     int chunks, const Times &times,
                                     ArrayRef<double> taskTimes) {
  Times nothing = {0, 0, 0, times.transfer};
  std::vector<Times> result(taskTimes.empty() ? 0 : chunks, nothing);
  for (auto [id, seconds] : llvm::enumerate(taskTimes)) {
    const Task &task = model.tasks[id];
    Times &chunk = result[layout.chunks[task.stage]];
    if (task.letter == 'F')
      chunk.forward += seconds;
    else if (task.letter == 'I' || task.letter == 'B')
      chunk.backward += seconds;
    else if (task.letter == 'W')
      chunk.weight += seconds;
  }
  return result;
}

std::optional<std::vector<Order>>
generate(const Model &model, const ScheduleSpec &spec, const Times &times,
         std::string &error, ArrayRef<double> taskTimes) {
  Layout layout;
  if (spec.placement() == Placement::Line) {
    layout = layOutLine(model);
  } else {
    std::optional<Layout> chunks = layOutChunks(model, spec, error);
    if (!chunks)
      return std::nullopt;
    layout = std::move(*chunks);
  }

  // Devices of different width count different numbers of microbatches.
  std::map<int64_t, std::pair<Problem, std::vector<Order>>> problems;
  std::vector<Order> orders;
  std::vector<int> byPlace(model.devices);
  for (int device = 0; device < model.devices; ++device)
    byPlace[device] = device;
  llvm::sort(byPlace, [&](int a, int b) {
    return std::pair(layout.places[a], a) < std::pair(layout.places[b], b);
  });
  for (int device : byPlace) {
    if (layout.places[device] < 0)
      continue;
    int64_t count =
        microbatchesPerUpdate(model, device) * int64_t(spec.replicas());
    auto known = problems.find(count);
    if (known == problems.end()) {
      Problem problem(spec, layout.devices, count, times);
      problem.stageTimes =
          addUpTimes(model, layout, problem.stages, times, taskTimes);
      error = checkProblem(problem);
      if (!error.empty())
        return std::nullopt;
      std::vector<Order> generated = generate(problem);
      known = problems
                  .emplace(count, std::make_pair(std::move(problem),
                                                 std::move(generated)))
                  .first;
    }
    auto &[problem, generated] = known->second;
    std::map<int, SmallVector<int, 2>> stages;
    for (auto [index, stage] : llvm::enumerate(model.stages))
      if (llvm::is_contained(stage.devices, device))
        stages[layout.chunks[index]].push_back(index);
    std::map<int, ChunkTasks> tasks;
    for (auto &[chunk, members] : stages)
      tasks[chunk] = getChunkTasks(model, members);
    orders.push_back(bindOrder(model, problem, generated[layout.places[device]],
                               device, tasks));
  }
  // Those of one width are proved as they are. A loop over all updates may run
  // further ahead on a wide stage than its neighbors do; they wait.
  if (problems.size() > 1 && spec.flushes()) {
    unblock(model, orders);
    error = refuseInFlight(model, orders,
                           problems.begin()->second.first.memoryLimit);
    if (!error.empty())
      return std::nullopt;
  }
  return orders;
}

std::optional<std::vector<Order>> generate(const Model &model, StringRef text) {
  std::string error;
  std::optional<ScheduleSpec> spec = parseScheduleSpec(text, error);
  if (!spec)
    return std::nullopt;
  return generate(model, *spec, {}, error);
}

//===----------------------------------------------------------------------===//
// Orders of no schedule
//===----------------------------------------------------------------------===//

/// The actions of a device of a line, in one loop over microbatches.
struct LineDevice {
  ChunkTasks tasks;
  /// Devices at its place, and those from there to the end of its line.
  int64_t width, rest;
  /// Its microbatches per update.
  int64_t microbatches;
};

static int getWorker(const Model &model, int device) {
  for (const Stage &stage : model.stages)
    if (llvm::is_contained(stage.devices, device))
      return stage.worker;
  return -1;
}

static std::vector<Order>
generateLoops(const Model &model,
              function_ref<void(const LineDevice &, Loop &)> fill) {
  Layout layout = layOutLine(model);
  std::vector<Order> orders;
  std::vector<int> devices;
  for (const Stage &stage : model.stages)
    for (int device : stage.devices)
      if (!llvm::is_contained(devices, device))
        devices.push_back(device);
  for (int device : devices) {
    SmallVector<int, 2> stages;
    for (auto [index, stage] : llvm::enumerate(model.stages))
      if (llvm::is_contained(stage.devices, device))
        stages.push_back(index);
    int place = layout.places[device];
    int64_t width = llvm::count(layout.places, place);
    // Another worker's devices are not of this line.
    int64_t rest = 0;
    for (auto [other, at] : llvm::enumerate(layout.places))
      rest += at >= place && getWorker(model, static_cast<int>(other)) ==
                                 getWorker(model, device);
    Order order = openOrder(device, LoopKind::Microbatches);
    fill({getChunkTasks(model, stages), width, rest,
          microbatchesPerUpdate(model, device)},
         order.loops.front());
    orders.push_back(std::move(order));
  }
  return orders;
}

// Device i of 3, M = 2, after any number of updates:
//   0: F0 F1 F2 .  .  B0 F3 B1 U F4 B2 F5 B3 U ...
//   1: .  F0 F1 .  B0 F2 B1 U F3 B2 F4 B3 U ...
//   2: .  .  F0 B0 F1 B1 U F2 B2 F3 B3 U ...
//
// Replicas take turns (1F1B-RR, Narayanan et al., SOSP 2019): with w devices
// from a stage of r to the end of the line, each of the r has ceil(w / r)
// microbatches in flight, so that there is one for every device behind them.
std::vector<Order> generateOpen(const Model &model) {
  return generateLoops(model, [](const LineDevice &device, Loop &loop) {
    append(loop, device.tasks.forward,
           llvm::divideCeil(device.rest, device.width) - 1);
    append(loop, device.tasks.whole);
    append(loop, device.tasks.update, 0, device.microbatches);
  });
}

// Device 0 of 2, waves of 2, folded one wave late:
//   F0 F1 B0 U0 F2 B1 U1 P0 F3 B2 U2 F4 B3 U3 P1 S0 F5 B4 U4 F6 B5 U5 P2 S1 ...
std::vector<Order> generateWaves(const Model &model) {
  return generateLoops(model, [&](const LineDevice &device, Loop &loop) {
    append(loop, device.tasks.forward, std::min(device.rest, model.wave) - 1);
    append(loop, device.tasks.whole);
    append(loop, device.tasks.update, 0, device.microbatches);
    append(loop, device.tasks.push, 0, model.wave);
    append(loop, device.tasks.fold, -model.distance * model.wave, model.wave);
  });
}

std::vector<Order> generateEvaluation(const Model &model) {
  return generateLoops(model, [](const LineDevice &device, Loop &loop) {
    append(loop, device.tasks.evaluate);
  });
}

std::vector<Order> generateReplay(const Model &model) {
  return generateLoops(model, [&](const LineDevice &device, Loop &loop) {
    append(loop, device.tasks.forward);
    append(loop, device.tasks.whole);
    append(loop, device.tasks.update, 0, device.microbatches);
    append(loop, device.tasks.push, 0, model.wave);
    append(loop, device.tasks.fold, -model.distance * model.wave, model.wave);
  });
}

/// How far ahead of its loop a stage's forward runs in an order, or 0: in a
/// loop of several microbatches, each entry is ahead by its part of that.
static int64_t forwardAhead(const Model &model, const Order &order, int stage) {
  int64_t most = 0;
  for (const Loop &loop : order.loops) {
    int64_t ahead = 0;
    for (const Item &item : loop.items)
      if (item.loop < 0 && item.kind == EventKind::Run &&
          model.tasks[item.id].stage == stage &&
          model.tasks[item.id].letter == 'F')
        ahead += item.ahead;
    most = std::max(most, ahead);
  }
  return most;
}

std::vector<int64_t> computeForwardLags(const Model &model,
                                        ArrayRef<Order> orders) {
  // As many updates as it takes for all entries of a loop to run.
  int64_t updates = getFillUpdates(model, orders) + 2;
  std::vector<int64_t> lags(model.stages.size());
  auto raise = [&](int stage, int64_t microbatches) {
    int64_t replicas = model.stages[stage].devices.size();
    lags[stage] = std::max(lags[stage], microbatches * replicas);
  };
  std::vector<bool> goesBack(lags.size());
  for (const Task &task : model.tasks)
    if (task.letter == 'B' || task.letter == 'W')
      goesBack[task.stage] = true;
  for (const Order &order : orders) {
    // A stage without a backward is as far ahead of where that would be.
    for (size_t stage = 0; stage < lags.size(); ++stage)
      if (!goesBack[stage])
        raise(stage, forwardAhead(model, order, stage));
    std::vector<int64_t> forward(lags.size()), backward(lags.size());
    int64_t perUpdate = microbatchesPerUpdate(model, order.device);
    std::unique_ptr<EventStream> stream = expand(model, order, updates);
    Event event;
    while (stream->next(event)) {
      if (event.kind != EventKind::Run)
        continue;
      const Task &task = model.tasks[event.id];
      // Version floor((k - lag) / M) is one of those that there are.
      if (task.letter == 'F' && goesBack[task.stage])
        raise(task.stage,
              forward[task.stage]++ + 1 -
                  (backward[task.stage] / perUpdate + 1) * perUpdate);
      else if (task.letter == 'B' || task.letter == 'W')
        ++backward[task.stage];
    }
  }
  return lags;
}

} // namespace penstock::schedule
