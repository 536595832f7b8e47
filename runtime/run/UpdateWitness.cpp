//===- UpdateWitness.cpp - Whether updates move what they should ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See UpdateWitness.h. "Would move" is on the safe side: the step of a gradient
// is taken to be no longer than the rate, as with Adam, and has to be several
// times the distance between numbers of that size. Where gradients are clipped,
// the factor is not known here, and nothing is said.
//===----------------------------------------------------------------------===//

#include "runtime/run/UpdateWitness.h"

#include "runtime/io/Npy.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>

using namespace penstock::runtime;

static double getElement(uint32_t element, const char *data, uint64_t i) {
  if (element == PENSTOCK_F64) {
    double value;
    std::memcpy(&value, data + 8 * i, 8);
    return value;
  }
  uint32_t bits = 0;
  if (element == PENSTOCK_F32) {
    std::memcpy(&bits, data + 4 * i, 4);
  } else {
    uint16_t half;
    std::memcpy(&half, data + 2 * i, 2);
    bits = uint32_t(half) << 16;
  }
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// At least the distance of `value` to the next number of its type.
static double getSpacing(uint32_t element, double value) {
  int bits = element == PENSTOCK_F64 ? 52 : element == PENSTOCK_F32 ? 23 : 7;
  return std::ldexp(std::max(std::fabs(value), 1e-30), -bits);
}

/// The gradient of a weight that one node reads; null where several do, as
/// their sum may be zero.
static const penstock_variable *findGradient(const penstock_program &program,
                                             const penstock_variable &weight) {
  const penstock_variable *found = nullptr;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (variable.role != PENSTOCK_ROLE_GRADIENT || variable.of != weight.of)
      continue;
    if (found)
      return nullptr;
    found = &variable;
  }
  return found && found->stage == weight.stage &&
                 found->type.element == weight.type.element &&
                 found->type.bytes == weight.type.bytes
             ? found
             : nullptr;
}

UpdateWitness::UpdateWitness(Instance &replay, int64_t begin)
    : replay(replay), begin(begin) {
  const penstock_program &program = replay.program;
  // Clipping may make any gradient small. GPUs have their own time.
  for (uint32_t i = 0; i < program.variable_count; ++i)
    if (program.variables[i].role == PENSTOCK_ROLE_SCALAR)
      return;
  for (penstock_device *device : replay.devices())
    if (!device->isHostAddressable())
      return;
  std::vector<char> bytes;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    uint32_t element = variable.type.element;
    bool trains = variable.role == PENSTOCK_ROLE_MASTER ||
                  (variable.role == PENSTOCK_ROLE_PARAMETER &&
                   !variable.file_element && !variable.frozen);
    if (!trains || variable.placement_count == 0 ||
        (element != PENSTOCK_F32 && element != PENSTOCK_F64 &&
         element != PENSTOCK_BF16))
      continue;
    const penstock_variable *gradient = findGradient(program, variable);
    if (!gradient || gradient->placement_count == 0)
      continue;
    Weight &weight = weights.emplace_back();
    weight.variable = &variable;
    weight.gradient = gradient;
    readWeight(weight, begin, bytes);
    weight.hash = std::hash<std::string_view>()({bytes.data(), bytes.size()});
  }
  if (!weights.empty())
    replay.onMark(
        [this](uint32_t task, int64_t number) { look(task, number); });
}

UpdateWitness::~UpdateWitness() { replay.onMark(nullptr); }

void UpdateWitness::readWeight(const Weight &weight, int64_t update,
                               std::vector<char> &bytes) const {
  bytes.resize(weight.variable->type.bytes);
  replay.read(*weight.variable, update, bytes.data());
}

void UpdateWitness::look(uint32_t task, int64_t update) {
  const penstock_program &program = replay.program;
  if (program.tasks[task].letter != 'U')
    return;
  std::lock_guard lock(mutex);
  std::vector<char> values, gradients;
  for (Weight &weight : weights) {
    if (weight.hasMoved || weight.variable->stage != program.tasks[task].stage)
      continue;
    readWeight(weight, update, values);
    if (update != begin && std::hash<std::string_view>()(
                               {values.data(), values.size()}) != weight.hash) {
      weight.hasMoved = true;
      continue;
    }
    if (weight.update >= 0)
      continue;
    double rate = replay.findHyperparameter("lr");
    if (program.rate)
      rate = program.rate(nullptr, float(rate), update);
    rate *= weight.variable->rate_scale;
    uint32_t element = weight.variable->type.element;
    gradients.resize(values.size());
    replay.read(*weight.gradient, update, gradients.data());
    for (uint64_t i = 0; i < values.size() / elementBytes(element); ++i) {
      double step =
          std::fabs(rate) *
          std::min(1.0, std::fabs(getElement(element, gradients.data(), i)));
      if (!std::isfinite(step) ||
          step <=
              4 * getSpacing(element, getElement(element, values.data(), i)))
        continue;
      weight.update = update;
      weight.rate = rate;
      break;
    }
  }
}

Error UpdateWitness::check(int64_t end) {
  std::vector<char> values;
  for (const Weight &weight : weights) {
    if (weight.hasMoved || weight.update < 0)
      continue;
    readWeight(weight, end, values);
    if (std::hash<std::string_view>()({values.data(), values.size()}) ==
        weight.hash)
      return notEqual("verify: variable '%s' did not change in %lld updates, "
                      "but its gradient in update %lld and the learning rate "
                      "of %g would move it",
                      weight.variable->name, (long long)(end - begin),
                      (long long)weight.update + 1, weight.rate);
  }
  return {};
}
