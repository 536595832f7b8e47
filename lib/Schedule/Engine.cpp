//===- Engine.cpp - All segments from a few -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the update from which on an execution repeats itself, then proves the
// longest segment that is short enough to be different from the longer ones.
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

EventStream::~EventStream() = default;

bool EventList::next(Event &event) {
  if (position == events.size())
    return false;
  event = events[position++];
  return true;
}

int Model::addChannel(std::string name, int producer, int consumer) {
  auto id = static_cast<int>(channels.size());
  Channel channel;
  channel.name = std::move(name);
  channel.producer = producer;
  channel.consumer = consumer;
  channel.local = producer >= 0 && consumer >= 0 &&
                  stages[tasks[producer].stage].devices ==
                      stages[tasks[consumer].stage].devices;
  if (producer >= 0) {
    tasks[producer].puts.push_back(id);
    if (!channel.local)
      channel.stagingUsers.sends.push_back(id);
  }
  if (consumer >= 0) {
    tasks[consumer].takes.push_back(id);
    channel.slotUsers.tasks.push_back(consumer);
  }
  channels.push_back(std::move(channel));
  return id;
}

void Needs::include(const Needs &other) {
  auto raise = [](std::vector<int64_t> &to, ArrayRef<int64_t> from) {
    to.resize(std::max(to.size(), from.size()));
    for (auto [mine, theirs] : llvm::zip(to, from))
      mine = std::max(mine, theirs);
  };
  raise(slots, other.slots);
  raise(staging, other.staging);
  raise(versions, other.versions);
}

/// Walks and executes one segment.
static bool prove(const Model &model, StreamMaker streams, int64_t updates,
                  Awaits awaits, Proof &proof) {
  for (int device = 0; device < model.devices; ++device) {
    std::unique_ptr<EventStream> stream = streams(device, updates);
    proof.violation = walkDevice(model, device, *stream, updates, awaits,
                                 proof.needs, proof.steps);
    if (proof.violation)
      return false;
  }
  Execution execution = execute(model, streams, updates, awaits);
  proof.steps += execution.steps;
  proof.violation = std::move(execution.violation);
  proof.segments = updates;
  return !proof.violation;
}

/// Beside fill and one per device, no schedule that is of use takes longer to
/// settle.
static constexpr int64_t kLongest = 64;

/// The update from which on every update looks like the one before.
static std::optional<int64_t> findSteadyState(const Model &model,
                                              StreamMaker streams, int64_t fill,
                                              Awaits awaits, int64_t &steps) {
  // More than `fill` updates from the end, nothing is known of the end.
  int64_t longest = llvm::alignTo(kLongest + fill + model.devices, model.wave);
  Executor executor(model, streams,
                    longest + llvm::alignTo(fill + 2, model.wave), awaits, {},
                    /*timed=*/false);
  std::vector<int64_t> former;
  std::optional<int64_t> result;
  for (int64_t update = model.wave - 1; update < longest && !result;
       update += model.wave) {
    executor.advance(update);
    std::vector<int64_t> snapshot = executor.snapshot(update);
    if (update > fill && snapshot == former)
      result = update - model.wave;
    former = std::move(snapshot);
  }
  steps += executor.steps;
  return result;
}

Proof verifyAll(const Model &model, StreamMaker streams, int64_t fill,
                Awaits awaits, bool flushes) {
  Proof proof;
  proof.needs.slots.resize(model.channels.size());
  proof.needs.staging.resize(model.channels.size());
  proof.needs.versions.resize(model.variables.size());

  // 1. A flushed update leaves every queue and channel empty (S6, S7), as it
  // found them.
  int64_t wave = model.wave;
  if (flushes) {
    prove(model, streams, wave, awaits, proof);
    return proof;
  }

  // 2. A shorter segment is a longer one without its last events. No event
  // relies on one of a later update, so that what holds in the longer one holds
  // in it. Only the last folds of a segment depend on where it ends.
  bool longestIsAll = llvm::none_of(
      model.tasks, [](const Task &task) { return task.perWave(); });
  int64_t proved = 0;
  auto proveUpTo = [&](int64_t longest) {
    if (longestIsAll && prove(model, streams, longest, awaits, proof))
      return true;
    // The shortest one that breaks a rule shows best what is wrong.
    while (proved + wave <= longest)
      if (!prove(model, streams, proved += wave, awaits, proof))
        return false;
    return !proof.violation;
  };
  if (!proveUpTo(fill + wave))
    return proof;

  // 3. From where on does it repeat?
  std::optional<int64_t> steady =
      findSteadyState(model, streams, fill, awaits, proof.steps);
  if (!steady) {
    // The reason, if it is a deadlock, lies in one of these.
    if (!proveUpTo(kLongest + fill))
      return proof;
    proof.violation = Violation{
        7,
        "the execution does not settle within " +
            std::to_string(kLongest + fill + model.devices) + " updates",
        {},
        -1,
        -1};
    return proof;
  }
  proof.steadyFrom = *steady;

  // 4. Every segment that a longer one does not merely repeat.
  proveUpTo(*steady + fill + wave);
  return proof;
}

} // namespace penstock::schedule
