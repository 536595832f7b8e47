//===- Replay.cpp - The same run again on one device ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --verify: the tasks and lags of the run, under a one-device schedule, must
// give the same bits in every loss and every variable, and what updates should
// move has to have moved.
//===----------------------------------------------------------------------===//

#include "runtime/run/Run.h"
#include "runtime/run/UpdateWitness.h"

#include <cstring>
#include <utility>

using namespace penstock::runtime;

Error penstock_run::compareLosses(const std::vector<float> &again) const {
  if (losses.size() != again.size())
    return notEqual("verify: %zu losses in the pipeline, %zu on one device",
                    losses.size(), again.size());
  int64_t microbatches =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN)->microbatches;
  for (size_t i = 0; i < losses.size(); ++i)
    if (std::memcmp(&losses[i], &again[i], sizeof(float)) != 0)
      return notEqual("verify: the loss of update %lld, microbatch %lld "
                      "differs: %.9g in the pipeline, %.9g on one device",
                      (long long)(i / microbatches) + 1 + resumedAt,
                      (long long)(i % microbatches), losses[i], again[i]);
  return {};
}

/// The value of element i, for messages.
static std::string elementText(const penstock_tensor &type, const char *data,
                               uint64_t i) {
  if (type.element == PENSTOCK_F32) {
    float value;
    std::memcpy(&value, data + 4 * i, 4);
    return format("%.9g", value);
  }
  std::string text = "0x";
  uint64_t bytes = elementBytes(type.element);
  for (uint64_t j = bytes; j-- > 0;)
    text += format("%02x", uint8_t(data[bytes * i + j]));
  return text;
}

Error penstock_run::compareVariables(const Instance &again) const {
  std::vector<char> expected;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    const penstock_variable *other = nullptr;
    // State of an initializer that trains as another one has its name.
    for (uint32_t j = 0; j < again.program.variable_count && !other; ++j)
      if (const penstock_variable &candidate = again.program.variables[j];
          candidate.role == variable.role &&
          !std::strcmp(candidate.name, variable.name) &&
          identify(again.program, j).kind == identify(program, i).kind)
        other = &candidate;
    if (!other || other->type.bytes != variable.type.bytes)
      return defect("verify: the replay has no variable '%s'", variable.name);
    expected.resize(variable.type.bytes);
    again.read(*other, updatesDone, expected.data());
    for (uint32_t copy = 0; copy < variable.placement_count; ++copy) {
      uint64_t at = 0;
      // A piece at a time: other processes have most of them.
      auto compare = [&](const char *piece, uint64_t size) -> Error {
        uint64_t begin = std::exchange(at, at + size);
        if (!std::memcmp(piece, &expected[begin], size))
          return {};
        uint64_t bytes = elementBytes(variable.type.element), i = 0;
        while (!std::memcmp(piece + i * bytes, &expected[begin + i * bytes],
                            bytes))
          ++i;
        return notEqual(
            "verify: element %llu of variable '%s' differs: %s in the "
            "pipeline, %s on one device",
            (unsigned long long)(begin / bytes + i), variable.name,
            elementText(variable.type, piece, i).c_str(),
            elementText(variable.type, &expected[begin], i).c_str());
      };
      if (Error error =
              peers.readVariable(*instance, variable, updatesDone, copy,
                                 /*inOrderOfFile=*/false, compare))
        return error;
    }
  }
  return {};
}

Error penstock_run::replay(int64_t updates) {
  if (!options.verify)
    return userError("the replay needs the option --verify");
  if (updates != updatesDone - resumedAt)
    return userError("the replay covers the whole run of %lld updates",
                     (long long)(updatesDone - resumedAt));
  if (hasReplayed)
    return userError("the replay of a run can be done once");
  hasReplayed = true;
  if (!peers.isRoot()) {
    peers.serve(*instance, updatesDone);
    return peers.agree({});
  }
  Error error = replayHere();
  peers.endServing();
  return peers.agree(std::move(error));
}

Error penstock_run::replayHere() {
  const penstock_schedule *schedule =
      findSchedule(*program.replay, PENSTOCK_SCHEDULE_TRAIN);
  if (!schedule)
    return defect("verify: the replay has no schedule 'train'");

  UpdateWitness witness(*oneDevice, resumedAt);

  // 1. The same segments: where a pipe drained, versions start anew.
  SinkValues values;
  Watchdog watchdog(oneDevice->positions(), options.watchdog.value_or(0));
  for (const Segment &segment : segments)
    if (Error error = oneDevice->run(*schedule, segment.first, segment.updates,
                                     segment.first, trainData, [&] {
                                       values.collect(*oneDevice);
                                       watchdog.check();
                                     }))
      return error;

  // 2. Compare.
  std::vector<float> again;
  again.reserve(values.losses.size());
  for (const SinkRing::Item &item : values.losses)
    again.push_back(toFloat(item));
  if (Error error = compareLosses(again))
    return error;
  if (Error error = compareVariables(*oneDevice))
    return error;
  return witness.check(updatesDone);
}
