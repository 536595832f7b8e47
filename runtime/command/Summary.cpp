//===- Summary.cpp - The table that ends a run ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Speed, how busy each device was, and what the plan had said. A device is busy
// when it does not wait for a message.
//===----------------------------------------------------------------------===//

#include "runtime/command/Summary.h"

#include "penstock/one_line.h"

#include <algorithm>
#include <sys/resource.h>

using namespace penstock::runtime;

/// "0, 2": the stages that run on a device.
static std::string stagesOf(const penstock_program &program, uint32_t device) {
  std::vector<uint32_t> stages;
  for (uint32_t i = 0; i < program.task_count; ++i)
    if (program.tasks[i].device == device)
      stages.push_back(program.tasks[i].stage);
  // A task says where its stage is first; replicas have its variables.
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    for (uint32_t j = 0; j < variable.placement_count; ++j)
      if (variable.placements[j].device == device)
        stages.push_back(variable.stage);
  }
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  std::string text;
  for (uint32_t stage : stages)
    text += format(text.empty() ? "%u" : ", %u", stage);
  return text;
}

static std::string sizeText(uint64_t bytes) {
  if (bytes < 1 << 20)
    return format("%.1f KiB", double(bytes) / (1 << 10));
  return format("%.1f MiB", double(bytes) / (1 << 20));
}

std::string penstock::runtime::summarize(const penstock_run &run) {
  const penstock_program &program = run.program;
  const penstock_schedule *schedule =
      findSchedule(run.program, PENSTOCK_SCHEDULE_TRAIN);
  int64_t updates = run.updatesDone - run.resumedAt;
  if (!schedule || updates == 0)
    return "";
  double samples = double(updates) * schedule->microbatches *
                   double(program.microbatch_size);
  std::string text =
      format("%lld updates of %u x %lld samples in %.3f s: %.0f samples/s\n",
             (long long)updates, schedule->microbatches,
             (long long)program.microbatch_size, run.trainSeconds,
             samples / run.trainSeconds);
  const Job &job = run.getPeers().getJob();
  text += format("%-8s%-14s%8s%16s%16s%s\n", "device", "stages", "busy",
                 "arena", "planned", job.isAlone() ? "" : "  cores     rank");
  double busySum = 0;
  uint64_t arenas = 0;
  for (auto [i, arena] : run.arenas) {
    double busy =
        std::clamp(1 - run.waitSeconds[i] / run.trainSeconds, 0.0, 1.0);
    busySum += busy;
    arenas += arena;
    text += format("%-8u%-14s%6.1f %%%16s%16s", i, stagesOf(program, i).c_str(),
                   100 * busy, sizeText(arena).c_str(),
                   sizeText(program.devices[i].arena_bytes).c_str());
    int rank = job.rankOfDevice[i];
    text += job.isAlone() ? "\n"
                          : format("  %-10s%d %s\n", run.cores[i].c_str(), rank,
                                   job.hosts[rank].c_str());
  }
  text += format("bubble: %.1f %% measured, %.1f %% predicted%s\n",
                 100 * (1 - busySum / program.device_count),
                 100 * schedule->predicted_bubble,
                 run.getInstance().isOversubscribed()
                     ? " (devices share cores: busy includes their waiting "
                       "for one)"
                     : "");
  for (const penstock_device *device : run.getInstance().devices())
    if (Statistics counts = device->statistics(); counts.launches)
      text += format("device %u: %.1f launches per update, %llu graphs\n",
                     device->index,
                     double(counts.launches) / double(run.updatesDone),
                     (unsigned long long)counts.graphs);
  const Checkpoints &checkpoints = run.checkpoints;
  if (checkpoints.isOpen()) {
    const auto &[count, bytes, seconds] = checkpoints.getStatistics();
    text += format(
        "%lld checkpoints in '%s': %s in %.3f s, in %.3f s of which "
        "training stood still\n",
        (long long)count, penstock::toOneLine(checkpoints.getFolder()).c_str(),
        sizeText(bytes).c_str(), seconds, checkpoints.getPauseSeconds());
  }
  if (!job.isAlone()) {
    uint64_t sum = 0, most = 0;
    for (uint64_t bytes : run.peakBytes) {
      sum += bytes;
      most = std::max(most, bytes);
    }
    return text + format("peak memory of %d processes: %s, of the largest %s, "
                         "arenas %s\n",
                         job.size, sizeText(sum).c_str(),
                         sizeText(most).c_str(), sizeText(arenas).c_str());
  }
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    text += format("peak memory of the process: %s, arenas %s\n",
                   sizeText(uint64_t(usage.ru_maxrss) << 10).c_str(),
                   sizeText(arenas).c_str());
  return text;
}
