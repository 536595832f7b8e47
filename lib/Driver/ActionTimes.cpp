//===- ActionTimes.cpp - How long actions took in traces ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An action takes from when its device was done with what it did before, or
// with waiting. Such times are skewed, and quartiles of all actions add up to
// less than any update takes. Means do not, once the updates that something
// disturbed are left out as a whole.
//===----------------------------------------------------------------------===//

#include "ActionTimes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <numeric>

using namespace llvm;
using namespace penstock;

namespace {
/// A bar of the timeline.
struct Bar {
  double begin = 0, end = 0;
  unsigned stage = 0;
  StringRef name;
  bool isAction = false;
};
} // namespace

/// The bars of each device. Rows are called "stage 3 (device 0)".
static std::map<unsigned, std::vector<Bar>>
readBars(const json::Array &events) {
  std::map<int64_t, std::pair<unsigned, unsigned>> rows;
  std::map<unsigned, std::vector<Bar>> devices;
  for (const json::Value &value : events) {
    const json::Object *event = value.getAsObject();
    std::optional<int64_t> row =
        event ? event->getInteger("tid") : std::nullopt;
    std::optional<StringRef> name =
        event ? event->getString("name") : std::nullopt;
    if (!row || !name)
      continue;
    if (event->getString("ph") == StringRef("M")) {
      const json::Object *arguments = event->getObject("args");
      std::optional<StringRef> title =
          arguments ? arguments->getString("name") : std::nullopt;
      unsigned stage, device;
      if (title && title->consume_front("stage ") &&
          !title->consumeInteger(10, stage) &&
          title->consume_front(" (device ") &&
          !title->consumeInteger(10, device))
        rows[*row] = {stage, device};
      continue;
    }
    std::optional<StringRef> kind = event->getString("cat");
    std::optional<double> begin = event->getNumber("ts"),
                          duration = event->getNumber("dur");
    auto place = rows.find(*row);
    if (!kind || !begin || !duration || place == rows.end())
      continue;
    auto [stage, device] = place->second;
    devices[device].push_back(
        {*begin, *begin + *duration, stage, *name, *kind == "action"});
  }
  return devices;
}

bool ActionTimes::read(StringRef trace, std::string &reason) {
  Expected<json::Value> value = json::parse(trace);
  if (!value) {
    consumeError(value.takeError());
    reason = "its trace cannot be read";
    return false;
  }
  const json::Object *object = value->getAsObject();
  const json::Array *events =
      object ? object->getArray("traceEvents") : nullptr;
  if (!events) {
    reason = "its trace has no events";
    return false;
  }

  // 1. Every action, by its update; an update ends with the last of them.
  std::map<int64_t, Update> found;
  std::map<int64_t, double> ends;
  constexpr double kMicro = 1e-6;
  for (auto &[device, bars] : readBars(*events)) {
    llvm::sort(bars, [](const Bar &a, const Bar &b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    double free = bars.front().begin;
    for (const Bar &bar : bars) {
      double begin = std::min(bar.begin, std::exchange(free, bar.end));
      int64_t number;
      if (!bar.isAction || bar.name.drop_front().getAsInteger(10, number))
        continue;
      char letter = bar.name.front();
      int64_t ofUpdate = letter == 'U' ? 1 : microbatches;
      int64_t update = number / ofUpdate;
      found[update].actions[{bar.stage, letter, number % ofUpdate}] =
          (bar.end - begin) * kMicro;
      auto it = ends.try_emplace(update, bar.end).first;
      it->second = std::max(it->second, bar.end);
    }
  }

  // 2. Those after the warm-up.
  bool any = false;
  for (auto &[number, update] : found) {
    auto before = ends.find(number - 1);
    if (number < warmup || before == ends.end())
      continue;
    update.seconds = (ends[number] - before->second) * kMicro;
    updates.push_back(std::move(update));
    any = true;
  }
  if (!any)
    reason = "its trace has no actions";
  return any;
}

std::vector<UnitSeconds> ActionTimes::summarize(ArrayRef<const Update *> chosen,
                                                size_t stages,
                                                Summary summary) const {
  std::map<Action, std::vector<double>> times;
  for (const Update *update : chosen)
    for (auto [action, seconds] : update->actions)
      times[action].push_back(seconds);
  // In an update the first one of a kind finds less in caches than others, so
  // that each is summed up before all of them are.
  std::vector<UnitSeconds> result(stages);
  auto ofUpdate = static_cast<double>(microbatches);
  for (auto &[action, list] : times) {
    auto [stage, letter, number] = action;
    if (stage >= stages)
      continue;
    double seconds = summary(list);
    if (letter == 'F')
      result[stage].forward += seconds / ofUpdate;
    else if (letter == 'B')
      result[stage].backward += seconds / ofUpdate;
    else if (letter == 'U')
      result[stage].update += seconds;
  }
  return result;
}

std::vector<UnitSeconds> ActionTimes::getLowerQuartiles(size_t stages) const {
  std::vector<const Update *> all;
  all.reserve(updates.size());
  for (const Update &update : updates)
    all.push_back(&update);
  return summarize(all, stages, [](MutableArrayRef<double> seconds) {
    llvm::sort(seconds);
    return seconds[seconds.size() / 4];
  });
}

std::vector<UnitSeconds> ActionTimes::getMeans(size_t stages) const {
  std::vector<const Update *> faster;
  faster.reserve(updates.size());
  for (const Update &update : updates)
    faster.push_back(&update);
  llvm::sort(faster, [](const Update *a, const Update *b) {
    return a->seconds < b->seconds;
  });
  faster.resize((faster.size() + 1) / 2);
  return summarize(faster, stages, [](MutableArrayRef<double> seconds) {
    return std::accumulate(seconds.begin(), seconds.end(), 0.0) /
           static_cast<double>(seconds.size());
  });
}
