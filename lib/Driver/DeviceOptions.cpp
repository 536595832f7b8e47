//===- DeviceOptions.cpp - Options about devices that need not be there ---===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model of a device stands for all of its numbers; flags say one by one what
// differs.
//===----------------------------------------------------------------------===//

#include "OptionChecker.h"

using namespace llvm;
using namespace penstock;

bool OptionChecker::checkDeviceModel() {
  // 1. Where the numbers come from.
  DeviceModel model;
  if (!flags.deviceModel.empty()) {
    std::string error;
    std::optional<DeviceModels> found =
        findDeviceModels(flags.deviceModel, error);
    if (!found)
      return fail("--device-model=" + flags.deviceModel + ": " + error);
    model = found->model;
  }
  bool isSaid = !flags.deviceModel.empty();
  const std::pair<Flags::Text *, double *> rates[] = {
      {&flags.flops, &model.rates.flopsPerSecond},
      {&flags.memoryBandwidth, &model.rates.bytesPerSecond},
      {&flags.link, &model.linkBytesPerSecond}};
  for (auto [flag, rate] : rates) {
    if (flag->empty())
      continue;
    std::optional<double> value = parseRate(*flag);
    if (!value)
      return fail("--" + flag->ArgStr + "=" + flag->getValue() +
                  ": a number of at least 1 is needed, with a unit if wanted: "
                  "67TFLOPS, 3.35TB/s, 8MiB/s");
    *rate = *value;
    isSaid = true;
  }
  if (!flags.latency.empty()) {
    std::optional<double> seconds = parseSeconds(flags.latency);
    if (!seconds)
      return fail("--latency=" + flags.latency +
                  ": a time is needed, such as 5us");
    model.latencySeconds = *seconds;
    isSaid = true;
  }
  if (!isSaid)
    return true;
  if (options.profile)
    return fail("--profile measures this machine; leave it out, or "
                "--device-model, --flops, --memory-bandwidth, --link and "
                "--latency");

  // 2. What is planned with them.
  options.deviceRates = model.rates;
  options.deviceRates->linkBytesPerSecond = model.linkBytesPerSecond;
  options.deviceRates->latencySeconds = model.latencySeconds;
  if (model.memoryBytes > 0 && !options.deviceMemory)
    options.deviceMemory = static_cast<int64_t>(model.memoryBytes);
  return true;
}
