//===- DeviceModels.cpp - Devices that need not be there ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of GPUs, half of the rates of their data sheets: f32 without tensor cores,
// HBM and NVLink in one direction. Kernels of training reach about that, and
// only the ratio of the rates moves a cut.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/DeviceModels.h"

#include "penstock/nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <vector>

using namespace llvm;
using namespace penstock;

namespace {
struct KnownModel {
  StringLiteral name;
  DeviceModel model;
};
} // namespace

static constexpr KnownModel kModels[] = {
    {"a100-80g", {{9.75e12, 1.0e12}, 150e9, 80e9}},
    {"h100", {{33.5e12, 1.68e12}, 225e9, 80e9}},
    {"h200", {{33.5e12, 2.4e12}, 225e9, 141e9}},
    {"b200", {{40e12, 4.0e12}, 450e9, 180e9}},
    {"cpu-core", {{200e9, 20e9, 80e9}, 10e9, 0}},
};

std::string penstock::listDeviceModels() {
  std::string text;
  for (const KnownModel &known : kModels)
    text += (text.empty() ? "" : ", ") + known.name.str();
  return text;
}

/// Reads "67TFLOPS", "3.35TB/s" or "1e9": a number of at least 1 with a
/// decimal prefix or, of bytes, a binary one, and a unit that may be left out.
static std::optional<double> parseRate(StringRef text) {
  static constexpr std::pair<StringLiteral, double> kPrefixes[] = {
      {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
      {"K", 1e3},     {"k", 1e3},     {"M", 1e6},     {"G", 1e9},
      {"T", 1e12},    {"P", 1e15}};
  text = text.trim();
  for (StringRef unit : {"FLOPS", "FLOP/s", "flops", "B/s", "B"})
    if (text.consume_back(unit))
      break;
  double factor = 1;
  for (auto [prefix, value] : kPrefixes)
    if (text.consume_back(prefix)) {
      factor = value;
      break;
    }
  double number;
  if (text.trim().getAsDouble(number) || !std::isfinite(number * factor) ||
      number * factor < 1)
    return std::nullopt;
  return number * factor;
}

/// Reads "5us", "0.2ms" or "5e-6", which are seconds.
static std::optional<double> parseSeconds(StringRef text) {
  static constexpr std::pair<StringLiteral, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  text = text.trim();
  double factor = 1, number;
  for (auto [unit, value] : kUnits)
    if (text.consume_back(unit)) {
      factor = value;
      break;
    }
  if (text.trim().getAsDouble(number) || !std::isfinite(number) || number < 0)
    return std::nullopt;
  return number * factor;
}

/// A rate as a JSON number, or as a text with a unit.
static std::optional<double> readRate(const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString())
    return parseRate(*text);
  std::optional<double> number = value.getAsNumber();
  return number && std::isfinite(*number) && *number >= 1 ? number
                                                          : std::nullopt;
}

static std::optional<DeviceModel> readModel(StringRef path,
                                            std::string &error) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer) {
    error = buffer.getError().message();
    return std::nullopt;
  }
  Expected<json::Value> parsed = json::parse((*buffer)->getBuffer());
  if (!parsed) {
    error = toString(parsed.takeError());
    return std::nullopt;
  }
  DeviceModel model;
  const std::pair<StringLiteral, double *> fields[] = {
      {"flops", &model.rates.flopsPerSecond},
      {"memory_bandwidth", &model.rates.bytesPerSecond},
      {"link", &model.linkBytesPerSecond},
      {"memory", &model.memoryBytes}};
  const json::Object *object = parsed->getAsObject();
  if (!object) {
    error = "an object with flops, memory_bandwidth, link and memory is needed";
    return std::nullopt;
  }
  for (const auto &[key, value] : *object) {
    if (StringRef(key) == "latency") {
      std::optional<StringRef> text = value.getAsString();
      std::optional<double> seconds =
          text ? parseSeconds(*text) : value.getAsNumber();
      if (!seconds || !std::isfinite(*seconds) || *seconds < 0) {
        error = "'latency' needs seconds or a text as 5us";
        return std::nullopt;
      }
      model.latencySeconds = *seconds;
      continue;
    }
    auto known = llvm::find_if(fields, [&](const auto &field) {
      return field.first == StringRef(key);
    });
    if (known == std::end(fields)) {
      error = "'" + StringRef(key).str() +
              "' is unknown; there are flops, memory_bandwidth, link, memory, "
              "latency";
      return std::nullopt;
    }
    std::optional<double> rate = readRate(value);
    if (!rate) {
      error = "'" + StringRef(key).str() +
              "' needs a number or a text as 67TFLOPS, 3.35TB/s or 80GB";
      return std::nullopt;
    }
    *known->second = *rate;
  }
  for (StringRef needed : {"flops", "memory_bandwidth"})
    if (!object->get(needed)) {
      error = "'" + needed.str() + "' is missing";
      return std::nullopt;
    }
  return model;
}

/// A known model, or the one that a JSON file describes.
static std::optional<DeviceModel> findDeviceModel(StringRef name,
                                                  std::string &error) {
  for (const KnownModel &known : kModels)
    if (name == known.name)
      return known.model;
  if (name.ends_with(".json"))
    return readModel(name, error);
  std::vector<std::string> names;
  for (const KnownModel &known : kModels)
    names.push_back(known.name.str());
  error = "unknown; there are " + listDeviceModels() + ", and FILE.json" +
          suggestNearest(name, names);
  return std::nullopt;
}

/// The least of two numbers that are said.
static double getLeast(double a, double b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

std::optional<DeviceModels> penstock::findDeviceModels(StringRef text,
                                                       std::string &error) {
  constexpr int64_t kMostDevices = 4096;
  DeviceModels result;
  SmallVector<StringRef> hosts;
  text.split(hosts, ';');
  bool differ = hosts.size() > 1;
  for (auto [host, groups] : enumerate(hosts)) {
    SmallVector<StringRef> parts;
    groups.split(parts, ',');
    for (auto [index, part] : enumerate(parts)) {
      auto [name, number] = part.trim().rsplit('*');
      std::optional<DeviceModel> model = findDeviceModel(name.trim(), error);
      if (!model) {
        error = (Twine("'") + name + "': " + error).str();
        return std::nullopt;
      }
      bool isAlone = hosts.size() == 1 && parts.size() == 1;
      int64_t count = 1;
      bool isCounted = part.contains('*');
      if (isCounted && (number.trim().getAsInteger(10, count) || count < 1 ||
                        count > kMostDevices)) {
        error = ("'" + part + "': a number of devices from 1 to " +
                 Twine(kMostDevices) + " is needed, as in h100*4")
                    .str();
        return std::nullopt;
      }
      if (isAlone && !isCounted)
        return DeviceModels{*model, 0, ""};
      if (result.count == 0)
        result.model = *model;
      double base = result.model.rates.flopsPerSecond;
      double speed = model->rates.flopsPerSecond / base;
      differ |=
          model->rates.flopsPerSecond != base ||
          model->rates.bytesPerSecond != result.model.rates.bytesPerSecond;
      result.count += count;
      DeviceModel &all = result.model;
      all.linkBytesPerSecond =
          getLeast(all.linkBytesPerSecond, model->linkBytesPerSecond);
      all.memoryBytes = getLeast(all.memoryBytes, model->memoryBytes);
      all.latencySeconds = std::max(all.latencySeconds, model->latencySeconds);
      std::string each = formatv("{0:F4}", speed);
      for (int64_t i = 0; i < count; ++i)
        result.speeds += (result.speeds.empty()              ? ""
                          : i == 0 && index == 0 && host > 0 ? ";"
                                                             : ",") +
                         each;
    }
  }
  if (result.count > kMostDevices) {
    error = ("at most " + Twine(kMostDevices) + " devices").str();
    return std::nullopt;
  }
  if (!differ)
    result.speeds.clear();
  return result;
}

std::optional<DeviceModel>
penstock::readDeviceModel(const DeviceModelFlags &flags, std::string &error) {
  auto fail = [&](const cl::opt<std::string> &flag, const Twine &reason) {
    error = ("--" + flag.ArgStr + "=" + flag.getValue() + ": " + reason).str();
    return std::nullopt;
  };
  DeviceModel model;
  if (!flags.model.empty()) {
    std::optional<DeviceModels> found = findDeviceModels(flags.model, error);
    if (!found)
      return fail(flags.model, error);
    model = found->model;
  }
  const std::pair<const cl::opt<std::string> *, double *> rates[] = {
      {&flags.flops, &model.rates.flopsPerSecond},
      {&flags.memoryBandwidth, &model.rates.bytesPerSecond},
      {&flags.link, &model.linkBytesPerSecond}};
  for (auto [flag, rate] : rates) {
    if (flag->empty())
      continue;
    std::optional<double> value = parseRate(*flag);
    if (!value)
      return fail(*flag,
                  "a number of at least 1 is needed, with a unit if wanted: "
                  "67TFLOPS, 3.35TB/s, 8MiB/s");
    *rate = *value;
  }
  if (!flags.latency.empty()) {
    std::optional<double> seconds = parseSeconds(flags.latency);
    if (!seconds)
      return fail(flags.latency, "a time is needed, such as 5us");
    model.latencySeconds = *seconds;
  }
  return model;
}
