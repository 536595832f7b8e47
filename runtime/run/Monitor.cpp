//===- Monitor.cpp - A run as other programs see it -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every value comes from what the run keeps anyway: positions, beats, counts.
//===----------------------------------------------------------------------===//

#include "runtime/run/Monitor.h"

#include "runtime/run/Run.h"

#include <algorithm>
#include <chrono>
#include <set>

using namespace penstock::runtime;

static double getWallTime() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Error Monitor::open(const Options &options) {
  if (options.metricsPort)
    if (Error error =
            server.open(options.metricsAddress.empty() ? "127.0.0.1"
                                                       : options.metricsAddress,
                        *options.metricsPort))
      return error;
  return options.tensorboard.empty() ? Error()
                                     : events.open(options.tensorboard);
}

void Monitor::begin(int64_t now) {
  published = now;
  for (auto &[channel, counts] : moved)
    counts.second += std::exchange(counts.first, 0);
}

Error Monitor::addUpdate(int64_t step, double value, double learningRate) {
  loss = value;
  rate = learningRate;
  hasLoss = true;
  if (!events.isOpen())
    return {};
  Scalar scalars[] = {{"loss", float(loss)}, {"learning_rate", float(rate)}};
  return events.add(step, getWallTime(), scalars);
}

Error Monitor::addEvaluation(
    int64_t step, const std::vector<std::pair<std::string, double>> &values) {
  evaluation = values;
  if (!events.isOpen())
    return {};
  std::vector<Scalar> scalars;
  for (const auto &[name, value] : values)
    scalars.push_back({"eval/" + name, float(value)});
  return events.add(step, getWallTime(), scalars);
}

/// "0,2". No task names further replicas: theirs is the stage that they are in.
std::string Monitor::listStages(const PositionRecord &position) const {
  std::set<uint32_t> stages;
  for (uint32_t i = 0; i < program.task_count; ++i)
    if (program.tasks[i].device == position.device)
      stages.insert(program.tasks[i].stage);
  if (stages.empty() && position.task < program.task_count)
    stages.insert(program.tasks[position.task].stage);
  std::string list;
  for (uint32_t stage : stages)
    list += (list.empty() ? "" : ",") + std::to_string(stage);
  return list;
}

void Monitor::addDevices(const Snapshot &snapshot, const Job &job,
                         std::vector<Scalar> &scalars) {
  std::vector<std::pair<MetricText::Labels, int64_t>> waits;
  double passed = double(std::max<int64_t>(snapshot.time - published, 1));
  for (const ProcessState &state : snapshot.states)
    for (const PositionRecord &position : state.positions) {
      uint32_t device = position.device;
      if (device >= program.device_count)
        continue;
      MetricText::Labels labels = {
          {"device", std::to_string(device)},
          {"stages", listStages(position)},
          {"rank", std::to_string(job.rankOfDevice[device])}};
      int64_t before = std::exchange(waited[device], position.waited);
      double busy =
          std::clamp(1 - double(position.waited - before) / passed, 0.0, 1.0);
      text.add(Measure::DeviceBusy, busy, labels);
      waits.emplace_back(std::move(labels), position.waited);
      scalars.push_back({format("device %u/busy", device), float(busy)});
    }
  for (const auto &[labels, nanoseconds] : waits)
    text.add(Measure::DeviceWait, double(nanoseconds) * 1e-9, labels);
}

/// A message counts where it arrives.
void Monitor::addTransfers(const Snapshot &snapshot, const Job &job) {
  for (size_t rank = 0; rank < snapshot.states.size(); ++rank)
    for (const TransferCount &count : snapshot.states[rank].counts) {
      if (count.id >= program.channel_count)
        continue;
      const penstock_channel &channel = program.channels[count.id];
      if (channel.sender < 0 || channel.receiver < 0 ||
          job.rankOfDevice[channel.receiver] != int(rank))
        continue;
      auto &[now, before] = moved[count.id];
      now = std::max(now, count.done);
      text.add(Measure::TransferBytes,
               double(now + before) * double(channel.type.bytes),
               {{"channel", channel.name},
                {"from", std::to_string(job.rankOfDevice[channel.sender])},
                {"to", std::to_string(rank)}});
    }
}

Error Monitor::publish(const Snapshot &snapshot, const Job &job) {
  // 1. Training.
  std::vector<Scalar> scalars;
  double passed = double(std::max<int64_t>(snapshot.time - published, 1));
  text.add(Measure::Step, double(snapshot.step));
  if (hasLoss) {
    text.add(Measure::Loss, loss);
    text.add(Measure::LearningRate, rate);
  }
  text.add(Measure::Samples, double(snapshot.samples));
  double speed =
      double(snapshot.samples - std::exchange(samples, snapshot.samples)) /
      passed * 1e9;
  text.add(Measure::SamplesPerSecond, speed);
  scalars.push_back({"samples_per_second", float(speed)});
  for (const auto &[name, value] : evaluation)
    text.add(Measure::Evaluation, value, {{"metric", name}});

  // 2. Devices, and what is between them.
  addDevices(snapshot, job, scalars);
  addTransfers(snapshot, job);
  if (snapshot.checkpointStep >= 0) {
    text.add(Measure::CheckpointStep, double(snapshot.checkpointStep));
    text.add(Measure::CheckpointAge,
             double(snapshot.time - snapshot.checkpointTime) * 1e-9);
    text.add(Measure::CheckpointSeconds, snapshot.checkpointSeconds);
  }
  for (size_t rank = 0; rank < snapshot.silences.size(); ++rank)
    text.add(Measure::RankSilence, double(snapshot.silences[rank]) * 1e-9,
             {{"rank", std::to_string(rank)}, {"host", job.hosts[rank]}});
  for (auto [kind, bytes] : {std::pair("arena", snapshot.arenaBytes),
                             {"transport", snapshot.transportBytes},
                             {"checkpoint", snapshot.stagedBytes}})
    text.add(Measure::MemoryBytes, double(bytes), {{"kind", kind}});

  // 3. Whoever asks.
  published = snapshot.time;
  std::string all = text.take();
  if (server.isOpen())
    server.publish(std::move(all));
  if (!events.isOpen())
    return {};
  if (Error error = events.add(snapshot.step, getWallTime(), scalars))
    return error;
  return events.flush();
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

/// On rank 0, from time to time, or now.
void penstock_run::publish(bool isNow) {
  int64_t now = nanoseconds();
  if (!monitor.isOpen() || (!isNow && !monitor.isDue(now)))
    return;
  Monitor::Snapshot snapshot;
  snapshot.time = now;
  snapshot.step = loggedUpdates;
  snapshot.samples =
      (loggedUpdates - resumedAt) * program.microbatch_size *
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN)->microbatches;
  if (peers.isAlone()) {
    snapshot.states = {{record(instance->positions()), {}}};
  } else {
    bool isFresh = false;
    snapshot.states = peers.getStates(isFresh);
    for (int rank = 0; rank < peers.getJob().size; ++rank)
      snapshot.silences.push_back(peers.getSilence(rank));
  }
  if (checkpoints.isOpen()) {
    snapshot.checkpointStep = checkpoints.newest();
    snapshot.checkpointTime = checkpoints.getNewestTime();
    snapshot.checkpointSeconds = checkpoints.getPauseSeconds();
  }
  for (const ArenaBytes &arena : arenas)
    snapshot.arenaBytes += arena.bytes;
  for (uint64_t bytes : transportBytes)
    snapshot.transportBytes += bytes;
  snapshot.stagedBytes = stagedBytes;
  Error error = monitor.publish(snapshot, peers.getJob());
  if (!logError)
    logError = std::move(error);
}
