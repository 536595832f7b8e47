//===- PlanOptions.cpp - Options about stages, schedule and method --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which combinations of them there are is said before anything is imported.
//===----------------------------------------------------------------------===//

#include "OptionChecker.h"

#include "DeviceSpeeds.h"
#include "penstock/Methods/Method.h"

#include <cmath>

using namespace llvm;
using mlir::failed;
using mlir::FailureOr;
using namespace penstock;

/// 'a,b|c' are cuts of two workers. Without workers, a name may have a bar.
static bool splitCuts(CompileOptions &options, bool saysStages,
                      std::string &error) {
  auto waves = options.method.getMethod().getWaves(options.method);
  if (!waves || waves->workers == 1)
    return true;
  std::vector<std::vector<std::string>> lists(1);
  for (const std::string &text : options.splitAt) {
    SmallVector<StringRef> parts;
    StringRef(text).split(parts, '|');
    for (auto [index, name] : enumerate(parts)) {
      if (index > 0)
        lists.emplace_back();
      if (!name.empty())
        lists.back().push_back(name.str());
    }
  }
  if (lists.size() == 1)
    return true;
  if (static_cast<int64_t>(lists.size()) != waves->workers) {
    error = "has cuts of " + std::to_string(lists.size()) +
            " workers, and --method=hetpipe:workers=" +
            std::to_string(waves->workers) + " has " +
            std::to_string(waves->workers);
    return false;
  }
  if (saysStages) {
    error = "says how many stages each worker has; leave --stages out";
    return false;
  }
  options.stages = 0;
  options.splitAt = lists.front();
  options.workerCuts.assign(lists.begin() + 1, lists.end());
  return true;
}

/// Lines of stages are cut and placed as one is, one behind the other.
static bool checkWorkers(const CompileOptions &options, std::string &error) {
  auto waves = options.method.getMethod().getWaves(options.method);
  if (!waves)
    return true;
  if (options.devices != 0)
    error = "every stage of every worker has a device, which are workers times "
            "stages; leave --devices out";
  else if (options.choosesStages)
    error = "--stages=auto plans for one line; say --stages=N, of each worker";
  return error.empty();
}

bool OptionChecker::checkPlan() {
  StringRef stages = flags.stages;
  options.splitAt.assign(flags.splitAt.begin(), flags.splitAt.end());
  options.choosesStages = stages == "auto";
  if (options.choosesStages) {
    if (!options.splitAt.empty())
      return fail("--stages=auto contradicts --split-at, which says where to "
                  "cut; leave one of them out");
    if (!flags.devices.getNumOccurrences())
      return fail("--stages=auto needs --devices=N, the devices to use");
  } else if (!stages.empty() &&
             (stages.getAsInteger(10, options.stages) || options.stages < 1)) {
    return fail("--stages=" + stages + ": a positive number or auto is needed");
  }
  if (flags.devices.getNumOccurrences()) {
    if (!positive("devices", flags.devices))
      return false;
    options.devices = flags.devices;
  }
  if (!checkReplicas())
    return false;
  if (options.choosesStages && !options.replicas.empty() && options.infer)
    return fail("--replicas=" + flags.replicas +
                ": --stages=auto plans replicas by what training takes; with "
                "--mode=infer, say --stages=N");
  options.threads = flags.threads;
  if (!positive("threads", options.threads))
    return false;
  constexpr int64_t kMostThreads = 1024;
  if (options.threads > kMostThreads)
    return fail("--threads=" + Twine(options.threads) + ": at most " +
                Twine(kMostThreads) + " per device");
  constexpr StringRef kRecompute =
      "none, full, auto or a regular expression of node names";
  if (options.recompute.empty())
    return fail("--recompute=: " + kRecompute + " is needed");
  if (!checkRegex("recompute", options.recompute, kRecompute))
    return false;
  if (!checkSchedule())
    return false;
  std::string error;
  FailureOr<MethodSpec> method = parseMethodSpec(flags.method, error);
  if (failed(method))
    return fail("--method=" + flags.method + ": " + error);
  options.method = *method;
  if (options.scheduleFile.empty()) {
    if (!flags.schedule.getNumOccurrences() && options.method.isAsynchronous())
      options.setSchedule(options.method.getMethod().getSchedule(*method));
    if (failed(checkMethodSchedule(*method, options.generator, error)))
      return fail("--schedule=" + options.schedule + ": " + error);
  }
  auto batchNorm = pipeline::symbolizeBatchNorm(flags.batchNorm);
  if (!batchNorm)
    return fail("--batch-norm=" + flags.batchNorm +
                ": there are train and frozen");
  options.batchNorm = *batchNorm;
  if (options.convolution != "fastest" && options.convolution != "direct")
    return fail("--convolution=" + options.convolution +
                ": there are fastest and direct");
  if (options.prepack != "auto" && options.prepack != "none" &&
      options.prepack != "all")
    return fail("--prepack=" + options.prepack +
                ": there are auto, none and all");
  if (StringRef clip = flags.clip;
      !clip.empty() &&
      (clip.getAsDouble(options.clipGradNorm) || !(options.clipGradNorm > 0) ||
       !std::isfinite(options.clipGradNorm)))
    return fail("--clip-grad-norm=" + clip + ": a positive number is needed");
  if (!checkWorkers(options, error))
    return fail("--method=" + flags.method + ": " + error);
  bool saysStages = flags.stages.getNumOccurrences() > 0;
  if (!splitCuts(options, saysStages, error))
    return fail("--split-at=" + join(flags.splitAt, ",") + ": " + error);
  if (!flags.deviceSpeeds.empty() &&
      !adoptDeviceSpeeds(flags.deviceSpeeds, options, saysStages, error))
    return fail("--device-speeds=" + flags.deviceSpeeds + ": " + error);
  if (!checkDeviceGroups(saysStages))
    return false;
  FailureOr<OptimizerSpec> optimizer =
      parseOptimizerSpec(flags.optimizer, error);
  if (failed(optimizer))
    return fail("--optimizer=" + flags.optimizer + ": " + error);
  options.optimizer = *optimizer;
  if (!checkAverage())
    return false;
  FailureOr<RateSchedule> rates = parseRateSchedule(flags.rateSchedule, error);
  if (failed(rates))
    return fail("--lr-schedule=" + flags.rateSchedule + ": " + error);
  options.rateSchedule = *rates;
  if (!flags.deviceMemory.empty()) {
    options.deviceMemory = parseBytes(flags.deviceMemory);
    if (!options.deviceMemory)
      return fail("--device-memory=" + flags.deviceMemory +
                  ": expected a size such as 16GiB or 512MiB");
  }
  return true;
}

/// A model of a device stands for all of its numbers; flags say one by one what
/// differs.
bool OptionChecker::checkDeviceModel() {
  DeviceModelFlags said = {flags.deviceModel, flags.flops,
                           flags.memoryBandwidth, flags.link, flags.latency};
  std::string error;
  std::optional<DeviceModel> model = readDeviceModel(said, error);
  if (!model)
    return fail(error);
  if (said.areEmpty())
    return true;
  if (options.profile)
    return fail("--profile measures this machine; leave it out, or "
                "--device-model, --flops, --memory-bandwidth, --link and "
                "--latency");
  options.deviceRates = model->rates;
  options.deviceRates->linkBytesPerSecond = model->linkBytesPerSecond;
  options.deviceRates->latencySeconds = model->latencySeconds;
  if (model->memoryBytes > 0 && !options.deviceMemory)
    options.deviceMemory = static_cast<int64_t>(model->memoryBytes);
  return true;
}

/// Models of devices say how many there are, and how fast each is.
bool OptionChecker::checkDeviceGroups(bool saysStages) {
  std::string error, flag = "--device-model=" + flags.deviceModel;
  std::optional<DeviceModels> found =
      findDeviceModels(flags.deviceModel, error);
  // What is no model is said with all that is of models.
  if (!found || found->count == 0)
    return true;
  if (!flags.deviceSpeeds.empty())
    return fail(Twine(flag) + ": says how fast each device is; leave "
                              "--device-speeds out");
  if (!found->speeds.empty())
    return adoptDeviceSpeeds(found->speeds, options, saysStages, error) ||
           fail(Twine(flag) + ": " + error);
  if (options.devices != 0 && options.devices != found->count)
    return fail(Twine(flag) + ": has " + Twine(found->count) +
                " devices, and --devices=" + Twine(options.devices));
  if (options.devices != 0)
    return true;
  options.devices = found->count;
  bool isOpen = !saysStages && options.splitAt.empty();
  if (isOpen && options.replicas.empty() && options.scheduleFile.empty())
    options.stages = options.devices * options.generator.chunks();
  return true;
}

/// The decay is one of the numbers of the optimizer, which says what updates
/// do.
bool OptionChecker::checkAverage() {
  StringRef text = flags.average;
  if (text.empty())
    return true;
  double decay;
  if (text.getAsDouble(decay) || !(decay > 0 && decay < 1))
    return fail("--ema=" + text +
                ": a decay above 0 and below 1 is needed, as in --ema=0.999");
  if (options.optimizer.isGiven("ema") &&
      options.optimizer.getAverageDecay() != decay)
    return fail("--ema=" + text + ": --optimizer=" +
                options.optimizer.getText() + " has another one");
  options.optimizer.setAverageDecay(decay);
  return true;
}

/// Checks the requirements of replicas before anything is imported.
bool OptionChecker::checkReplicas() {
  if (flags.replicas == "auto")
    return checkPlannedReplicas();
  std::string flag = "--replicas=" + flags.replicas.getValue();
  SmallVector<StringRef> parts;
  StringRef(flags.replicas).split(parts, ',');
  constexpr int64_t kMost = 1024;
  for (StringRef part : parts) {
    int64_t width;
    if (part.getAsInteger(10, width) || width < 1 || width > kMost)
      return fail(Twine(flag) +
                  ": a number of replicas is needed, or one per stage "
                  "with commas");
    options.replicas.push_back(width);
  }
  if (llvm::all_of(options.replicas,
                   [](int64_t width) { return width == 1; })) {
    // Who says one per stage says how many stages there are.
    if (options.replicas.size() == 1)
      options.replicas.clear();
  }
  if (options.replicas.empty())
    return true;
  // A table says how many microbatches there are.
  for (int64_t width : options.replicas)
    if (flags.scheduleFile.empty() && !options.infer &&
        options.microbatches % width != 0)
      return fail(Twine(flag) +
                  ": --microbatches=" + Twine(options.microbatches) +
                  " is not a multiple of " + Twine(width));
  int64_t stages = options.replicas.size(), sum = 0;
  for (int64_t width : options.replicas)
    sum += width;
  if (stages == 1) {
    if (options.devices % options.replicas.front() != 0)
      return fail(Twine(flag) + ": --devices=" + Twine(options.devices) +
                  " counts all replicas, and is not a multiple of " +
                  Twine(options.replicas.front()));
    return true;
  }
  if (options.stages == 0 && options.splitAt.empty())
    options.stages = stages;
  int64_t given = options.splitAt.empty() ? options.stages
                                          : int64_t(options.splitAt.size()) + 1;
  if (given != stages)
    return fail(Twine(flag) + ": " + Twine(stages) +
                " numbers, and there are " + Twine(given) + " stages");
  if (options.devices != 0 && options.devices != sum)
    return fail(Twine(flag) + ": needs " + Twine(sum) +
                " devices, --devices=" + Twine(options.devices));
  return true;
}

/// Widths that nobody has said may differ.
bool OptionChecker::checkPlannedReplicas() {
  if (!options.choosesStages)
    return fail("--replicas=auto plans stages and replicas together; it needs "
                "--stages=auto --devices=N");
  if (options.infer)
    return fail("--replicas=auto plans by what training takes; with "
                "--mode=infer, say --stages=N --replicas=R");
  if (!flags.scheduleFile.empty())
    return fail("--replicas=auto: a table says how many devices a stage has; "
                "say so by --replicas, or leave --schedule-file out");
  options.choosesReplicas = true;
  return true;
}

/// Checks schedules that have replicas by themselves.
bool OptionChecker::checkMirror(const schedule::ScheduleSpec &spec) {
  std::string runs = "--schedule=" + options.schedule + " runs " +
                     std::to_string(spec.replicas()) +
                     " replicas of every stage";
  if (!options.replicas.empty() || options.choosesReplicas)
    return fail((options.choosesReplicas ? "--replicas=auto: " : "") +
                Twine(runs) + " by itself; leave --replicas out");
  if (options.infer)
    return fail(Twine(runs) + ", in two directions, of which --mode=infer has "
                              "one; say --replicas=2");
  return true;
}

bool OptionChecker::checkSchedule() {
  options.schedule = flags.schedule;
  StringRef format = flags.emitScheduleFormat;
  if (format != "compute_only" && format != "compute_comms")
    return fail("--emit-schedule-format=" + format +
                ": a table has compute_only or compute_comms");
  if (flags.emitScheduleFormat.getNumOccurrences() &&
      options.emitSchedule.empty())
    return fail("--emit-schedule-format=" + format +
                ": no table is written; say where by --emit-schedule=FILE");
  options.emitTransfers = format == "compute_comms";
  if (!options.scheduleFile.empty()) {
    if (flags.schedule.getNumOccurrences())
      return fail("--schedule=" + options.schedule +
                  ": --schedule-file says it already");
    return true;
  }
  std::string error;
  std::optional<schedule::ScheduleSpec> spec =
      schedule::parseScheduleSpec(options.schedule, error);
  if (!spec)
    return fail("--schedule=" + options.schedule + ": " + error);
  options.generator = *spec;
  if (spec->replicas() > 1 && !checkMirror(*spec))
    return false;
  if (options.stages == 0 && options.splitAt.empty()) {
    int64_t places = options.getPlaces();
    if (places == 0 && options.replicas.empty())
      places = static_cast<int64_t>(flags.deviceTargets.size());
    options.stages = std::max<int64_t>(places, 1) * spec->chunks();
  }
  return true;
}
