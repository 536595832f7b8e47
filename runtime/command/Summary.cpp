//===- Summary.cpp - The table that ends a run ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Speed, losses, how busy each device was, and what the plan had said. A device
// is busy when it does not wait for a message.
//===----------------------------------------------------------------------===//

#include "runtime/command/Summary.h"

#include "penstock/one_line.h"
#include "runtime/io/File.h"
#include "runtime/observe/JsonText.h"

#include <algorithm>
#include <sys/resource.h>

using namespace penstock::runtime;

/// The stages that run on a device.
static std::vector<uint32_t> getStages(const penstock_program &program,
                                       uint32_t device) {
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
  return stages;
}

/// "0, 2".
static std::string listText(const std::vector<uint32_t> &numbers) {
  std::string text;
  for (uint32_t number : numbers)
    text += format(text.empty() ? "%u" : ", %u", number);
  return text;
}

static std::string sizeText(uint64_t bytes) {
  if (bytes < 1 << 20)
    return format("%.1f KiB", double(bytes) / (1 << 10));
  return format("%.1f MiB", double(bytes) / (1 << 20));
}

namespace {
/// The use of a device.
struct DeviceUse {
  uint32_t device;
  std::vector<uint32_t> stages;
  double busy; // of the time of training
  uint64_t arena, planned;
};

struct Use {
  std::vector<DeviceUse> devices;
  double bubble = 0;
  uint64_t arenas = 0;
  int64_t peakBytes = 0; // of all processes; 0: not known
  double samples = 0;

  Use(const penstock_run &run, const penstock_schedule &schedule) {
    const penstock_program &program = run.program;
    double busySum = 0;
    for (auto [i, arena] : run.arenas) {
      double busy =
          run.trainSeconds > 0
              ? std::clamp(1 - run.waitSeconds[i] / run.trainSeconds, 0.0, 1.0)
              : 0;
      busySum += busy;
      arenas += arena;
      devices.push_back({i, getStages(program, i), busy, arena,
                         program.devices[i].arena_bytes});
    }
    bubble = 1 - busySum / program.device_count;
    rusage usage;
    if (!run.peakBytes.empty())
      for (uint64_t bytes : run.peakBytes)
        peakBytes += int64_t(bytes);
    else if (getrusage(RUSAGE_SELF, &usage) == 0)
      peakBytes = int64_t(usage.ru_maxrss) << 10;
    samples = double(run.updatesDone - run.resumedAt) * schedule.microbatches *
              double(program.microbatch_size);
  }
};
} // namespace

std::string penstock::runtime::summarize(const penstock_run &run,
                                         const Evaluation &evaluation) {
  const penstock_program &program = run.program;
  const penstock_schedule *schedule =
      findSchedule(run.program, PENSTOCK_SCHEDULE_TRAIN);
  int64_t updates = run.updatesDone - run.resumedAt;
  if (!schedule || updates == 0)
    return "";
  Use use(run, *schedule);
  std::string text =
      format("%lld updates of %u x %lld samples in %.3f s: %.0f samples/s\n",
             (long long)updates, schedule->microbatches,
             (long long)program.microbatch_size, run.trainSeconds,
             use.samples / run.trainSeconds);
  text += format("loss: %.6g at the end, %.6g at best (step %lld)\n",
                 run.lastLoss, run.bestLoss, (long long)run.bestStep);
  if (run.options.evalEvery && evaluation.getBest().bestStep >= 0)
    text += format("best evaluation: %s\n", evaluation.describeBest().c_str());
  const Job &job = run.getPeers().getJob();
  text += format("%-8s%-14s%8s%16s%16s%s\n", "device", "stages", "busy",
                 "arena", "planned", job.isAlone() ? "" : "  cores     rank");
  for (const DeviceUse &device : use.devices) {
    uint32_t i = device.device;
    text +=
        format("%-8u%-14s%6.1f %%%16s%16s", i, listText(device.stages).c_str(),
               100 * device.busy, sizeText(device.arena).c_str(),
               sizeText(device.planned).c_str());
    int rank = job.rankOfDevice[i];
    text += job.isAlone() ? "\n"
                          : format("  %-10s%d %s\n", run.cores[i].c_str(), rank,
                                   job.hosts[rank].c_str());
  }
  text += format("bubble: %.1f %% measured, %.1f %% predicted%s\n",
                 100 * use.bubble, 100 * schedule->predicted_bubble,
                 run.getInstance().isOversubscribed()
                     ? " (devices share cores; busy includes waiting for "
                       "one)"
                     : "");
  for (const penstock_device *device : run.getInstance().devices())
    if (Statistics counts = device->statistics(); counts.launches) {
      text += format("device %u: %.1f launches per update, %llu graphs",
                     device->index,
                     double(counts.launches) / double(run.updatesDone),
                     (unsigned long long)counts.graphs);
      if (counts.epilogues)
        text += format(", %llu of %llu epilogues",
                       (unsigned long long)counts.appliedEpilogues,
                       (unsigned long long)counts.epilogues);
      text += "\n";
    }
  const Checkpoints &checkpoints = run.checkpoints;
  if (checkpoints.isOpen()) {
    const auto &[count, bytes, seconds] = checkpoints.getStatistics();
    text += format(
        "%lld checkpoints in '%s': %s in %.3f s, in %.3f s of which "
        "training stood still",
        (long long)count, penstock::toOneLine(checkpoints.getFolder()).c_str(),
        sizeText(bytes).c_str(), seconds, checkpoints.getPauseSeconds());
    if (int64_t skipped = checkpoints.countSkipped())
      text += format("; %lld more were due while one was being written",
                     (long long)skipped);
    text += "\n";
  }
  if (!job.isAlone()) {
    uint64_t most = 0;
    for (uint64_t bytes : run.peakBytes)
      most = std::max(most, bytes);
    return text + format("peak memory of %d processes: %s, of the largest %s, "
                         "arenas %s\n",
                         job.size, sizeText(uint64_t(use.peakBytes)).c_str(),
                         sizeText(most).c_str(), sizeText(use.arenas).c_str());
  }
  if (use.peakBytes)
    text += format("peak memory of the process: %s, arenas %s\n",
                   sizeText(uint64_t(use.peakBytes)).c_str(),
                   sizeText(use.arenas).c_str());
  return text;
}

static std::string metricsJson(const std::vector<Metric> &metrics) {
  std::string text;
  for (const Metric &metric : metrics)
    text += format("%s\"%s\": %s", text.empty() ? "" : ", ",
                   metric.kind->name.c_str(), jsonNumber(metric.value).c_str());
  return "{" + text + "}";
}

Error penstock::runtime::writeSummary(const penstock_run &run,
                                      const Evaluation &evaluation) {
  const Options &options = run.options;
  if (options.summaryJson.empty())
    return {};
  const penstock_schedule *schedule =
      findSchedule(run.program, PENSTOCK_SCHEDULE_TRAIN);
  Use use(run, *schedule);

  // 1. What was trained.
  std::string text = format("{\n  \"updates\": %lld,\n  \"samples\": %.0f,\n"
                            "  \"seconds\": %.6f,\n",
                            (long long)(run.updatesDone - run.resumedAt),
                            use.samples, run.trainSeconds);
  if (run.updatesDone > run.resumedAt)
    text +=
        format("  \"samples_per_second\": %.6g,\n  \"loss\": %s,\n"
               "  \"best_loss\": {\"step\": %lld, \"loss\": %s},\n",
               use.samples / run.trainSeconds, jsonNumber(run.lastLoss).c_str(),
               (long long)run.bestStep, jsonNumber(run.bestLoss).c_str());

  // 2. What was evaluated.
  if (!run.metrics.empty())
    text += format("  \"eval\": %s,\n", metricsJson(run.metrics).c_str());
  if (const ManifestEvaluation &best = evaluation.getBest(); best.bestStep >= 0)
    text += format("  \"best_eval\": {\"step\": %lld, \"%s\": %s},\n",
                   (long long)best.bestStep, best.metric.c_str(),
                   jsonNumber(best.best).c_str());

  // 3. On what.
  text += "  \"devices\": [";
  for (const DeviceUse &device : use.devices)
    text += format("%s\n    {\"device\": %u, \"stages\": [%s], \"busy\": %.4f, "
                   "\"arena_bytes\": %llu, \"planned_bytes\": %llu}",
                   &device == use.devices.data() ? "" : ",", device.device,
                   listText(device.stages).c_str(), device.busy,
                   (unsigned long long)device.arena,
                   (unsigned long long)device.planned);
  text += format("\n  ],\n  \"bubble\": {\"measured\": %.4f, \"predicted\": "
                 "%.4f},\n  \"devices_share_cores\": %s,\n"
                 "  \"peak_memory_bytes\": %lld\n}\n",
                 use.bubble, schedule->predicted_bubble,
                 run.getInstance().isOversubscribed() ? "true" : "false",
                 (long long)use.peakBytes);
  OutputFile file;
  if (Error error = file.create(options.summaryJson))
    return error;
  if (Error error = file.append(text))
    return error;
  return file.commit();
}
