//===- DeviceSpeeds.cpp - Lines of devices of unlike speed ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See DeviceSpeeds.h. Devices are in the order in which they are listed, as it
// is the user who knows which is which.
//===----------------------------------------------------------------------===//

#include "DeviceSpeeds.h"

#include "penstock/Methods/Method.h"
#include "penstock/Planner/UnequalDevices.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace penstock;

static int64_t countWorkers(const CompileOptions &options) {
  auto waves = options.method.getMethod().getWaves(options.method);
  return waves ? waves->workers : 1;
}

bool penstock::adoptDeviceSpeeds(StringRef text, CompileOptions &options,
                                 bool saysStages, std::string &error) {
  std::optional<std::vector<DeviceKind>> devices =
      parseDeviceKinds(text, error);
  if (!devices)
    return false;
  std::vector<std::vector<double>> lines(1);
  for (const DeviceKind &device : *devices) {
    lines.resize(device.host + 1);
    lines.back().push_back(device.speed);
  }
  auto count = static_cast<int64_t>(lines.front().size());
  int64_t workers = countWorkers(options);

  // 1. A line has a device for each of its stages.
  if (options.choosesStages || options.choosesReplicas ||
      !options.replicas.empty())
    error = "says the speed of a line, a device for each stage; leave "
            "--stages=auto and --replicas out";
  else if (!options.scheduleFile.empty() ||
           (!options.infer && (options.generator.chunks() > 1 ||
                               options.generator.replicas() > 1)))
    error = "says the speed of a line, a device for each stage, and the "
            "schedule has others";
  else if (lines.size() > 1 && workers == 1)
    error = "has several lines, which are workers of --method=hetpipe";
  else if (lines.size() > 1 && static_cast<int64_t>(lines.size()) != workers)
    error = "has lines of " + std::to_string(lines.size()) +
            " workers, and there are " + std::to_string(workers);
  else if (options.devices != 0 && options.devices != count)
    error = "has " + std::to_string(count) +
            " devices, and --devices=" + std::to_string(options.devices);
  else if (saysStages && any_of(lines, [&](const std::vector<double> &line) {
             return static_cast<int64_t>(line.size()) != options.stages;
           }))
    error = "has " + std::to_string(count) + " devices in a line, and " +
            "--stages=" + std::to_string(options.stages);
  if (!error.empty())
    return false;
  // Cuts of one line are those of all.
  if (lines.size() > 1 && options.workerCuts.empty())
    options.workerCuts.assign(workers - 1, options.splitAt);
  for (auto [worker, line] : enumerate(lines)) {
    const std::vector<std::string> &cuts =
        worker == 0 ? options.splitAt : options.workerCuts[worker - 1];
    if (!cuts.empty() && cuts.size() + 1 != line.size()) {
      error = "has " + std::to_string(line.size()) +
              " devices in a line, which --split-at cuts into " +
              std::to_string(cuts.size() + 1) + " stages";
      return false;
    }
  }

  // 2. As many stages.
  if (options.splitAt.empty())
    options.stages = count;
  options.deviceSpeeds = std::move(lines);
  // One for all workers.
  if (options.deviceSpeeds.size() == 1 && !options.workerCuts.empty())
    options.deviceSpeeds.resize(workers, options.deviceSpeeds.front());
  return true;
}

std::vector<double> penstock::listDeviceSpeeds(const CompileOptions &options) {
  std::vector<double> speeds;
  if (options.deviceSpeeds.empty())
    return speeds;
  int64_t workers = countWorkers(options);
  for (int64_t worker = 0; worker < workers; ++worker)
    append_range(speeds, options.deviceSpeeds.size() == 1
                             ? options.deviceSpeeds.front()
                             : options.deviceSpeeds[worker]);
  return speeds;
}
