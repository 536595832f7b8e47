//===- stage_action.cpp - What one action of a stage costs ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains a program of empty stages under 1F1B, so that all of the time is
// overhead: mark, transfers, waiting, the loss. An action is one forward,
// backward or update of one stage. Target: under 5 us.
//===----------------------------------------------------------------------===//

#include "penstock/abi.h"

#include <benchmark/benchmark.h>
#include <cstdio>
#include <vector>

namespace {

constexpr int64_t kMicrobatches = 8;
constexpr int64_t kShape[] = {16, 32};
constexpr uint64_t kBytes = 16 * 32 * 4;
constexpr uint64_t kSlots = 16;

/// Channel ids: i joins stage i and i + 1 forwards, p - 1 + i backwards; the
/// last one is the loss.
struct Shape {
  uint32_t stages;
  uint32_t index;
  uint32_t forwardIn() const { return index - 1; }
  uint32_t forwardOut() const { return index; }
  uint32_t backwardIn() const { return stages - 1 + index; }
  uint32_t backwardOut() const { return stages - 1 + index - 1; }
  uint32_t loss() const { return 2 * stages - 2; }
  bool isFirst() const { return index == 0; }
  bool isLast() const { return index == stages - 1; }
};

/// One stage of 1F1B, as the compiler would write it with empty kernels.
template <uint32_t Stages, uint32_t Index>
void trainStage(penstock_device *device, int64_t first, int64_t updates,
                int64_t) {
  constexpr Shape stage = {Stages, Index};
  constexpr int64_t ahead = Stages - 1 - Index;
  char *arena = static_cast<char *>(penstock_arena(device));
  // Regions of the arena: forward in and out, backward in and out.
  auto slot = [&](int region, int64_t k) {
    return arena + (region * kSlots + uint64_t(k) % kSlots) * kBytes;
  };
  for (int64_t t = first; t < first + updates; ++t) {
    int64_t k0 = t * kMicrobatches;
    for (int64_t j = -ahead - 1; j < kMicrobatches; ++j) {
      int64_t receive = j + ahead + 1, forward = j + ahead;
      if (!stage.isFirst() && receive < kMicrobatches) {
        int64_t k = k0 + receive;
        penstock_recv(device, stage.forwardIn(), k, slot(0, k));
      }
      if (forward >= 0 && forward < kMicrobatches) {
        int64_t k = k0 + forward;
        if (!stage.isFirst())
          penstock_await(device, stage.forwardIn(), k);
        penstock_mark(device, 3 * Index, k);
        if (!stage.isLast())
          penstock_send(device, stage.forwardOut(), k, slot(1, k));
        else
          penstock_send(device, stage.loss(), k, slot(1, k));
      }
      if (j < 0)
        continue;
      int64_t k = k0 + j;
      if (!stage.isLast()) {
        penstock_recv(device, stage.backwardIn(), k, slot(2, k));
        penstock_await(device, stage.backwardIn(), k);
      }
      penstock_mark(device, 3 * Index + 1, k);
      if (!stage.isFirst())
        penstock_send(device, stage.backwardOut(), k, slot(3, k));
    }
    penstock_mark(device, 3 * Index + 2, t);
  }
}

template <uint32_t Stages, uint32_t... Index>
constexpr void fillFunctions(penstock_device_function *functions,
                             std::integer_sequence<uint32_t, Index...>) {
  ((functions[Index] = trainStage<Stages, Index>), ...);
}

template <uint32_t Stages> void stageAction(benchmark::State &state) {
  penstock_tensor activation = {PENSTOCK_F32, 2, kShape, kBytes};
  penstock_tensor scalar = {PENSTOCK_F32, 0, nullptr, 4};
  std::vector<penstock_channel> channels;
  for (uint32_t i = 0; i + 1 < Stages; ++i)
    channels.push_back({"forward", PENSTOCK_CHANNEL_TRANSFER, nullptr,
                        activation, int32_t(i), int32_t(i + 1), kSlots, 0, 1, 0,
                        0, int32_t(i)});
  for (uint32_t i = 0; i + 1 < Stages; ++i)
    channels.push_back({"backward", PENSTOCK_CHANNEL_TRANSFER, nullptr,
                        activation, int32_t(i + 1), int32_t(i), kSlots, 0, 1, 0,
                        0, -1});
  channels.push_back({"loss", PENSTOCK_CHANNEL_LOSS, nullptr, scalar,
                      int32_t(Stages - 1), -1, 0, 1, 1, 0, 0,
                      int32_t(Stages - 1)});
  std::vector<penstock_task> tasks;
  for (uint32_t i = 0; i < Stages; ++i)
    for (uint32_t letter : {'F', 'B', 'U'})
      tasks.push_back({"task", letter, i, i});
  std::vector<penstock_device_descriptor> devices(
      Stages, {4 * kSlots * kBytes, 64, 1, "cpu", "any", ""});
  penstock_device_function functions[Stages];
  fillFunctions<Stages>(functions,
                        std::make_integer_sequence<uint32_t, Stages>());
  penstock_schedule schedule = {PENSTOCK_SCHEDULE_TRAIN, kMicrobatches, 0,
                                functions};

  penstock_program program = {};
  program.abi_version = PENSTOCK_ABI_VERSION;
  program.stage_count = Stages;
  program.microbatch_size = 1;
  program.device_count = Stages;
  program.devices = devices.data();
  program.channel_count = uint32_t(channels.size());
  program.channels = channels.data();
  program.task_count = uint32_t(tasks.size());
  program.tasks = tasks.data();
  program.schedule_count = 1;
  program.schedules = &schedule;

  penstock_run *run = nullptr;
  if (penstock_open(&program, nullptr, &run) != PENSTOCK_DONE) {
    state.SkipWithError(penstock_error(run));
    penstock_close(run);
    return;
  }
  constexpr int64_t kUpdates = 2000;
  for (auto unused : state)
    if (penstock_train(run, kUpdates) != PENSTOCK_DONE)
      state.SkipWithError(penstock_error(run));
  penstock_close(run);
  // Stages work side by side: what counts is the time per action of one.
  int64_t actions = kUpdates * (2 * kMicrobatches + 1);
  state.counters["action"] = benchmark::Counter(
      double(actions) * double(state.iterations()),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(stageAction<1>)->UseRealTime();
BENCHMARK(stageAction<2>)->UseRealTime();
BENCHMARK(stageAction<4>)->UseRealTime();

} // namespace

BENCHMARK_MAIN();
