//===- RateSchedule.cpp - The text of --lr-schedule -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table of keys per kind, and the formulas of the header as code.
//===----------------------------------------------------------------------===//

#include "penstock/Optimizers/RateSchedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace penstock;

namespace {

/// What values a key may have; counts are whole numbers.
enum class Range { Count, PositiveCount, NonNegative };

struct Key {
  StringLiteral name;
  Range range;
  double RateSchedule::*number;
  /// By kind, in the order of the enumeration.
  bool applies[5];
};

const Key keys[] = {
    {"warmup-steps",
     Range::Count,
     &RateSchedule::warmupSteps,
     {true, true, true, true, true}},
    {"total-steps",
     Range::PositiveCount,
     &RateSchedule::totalSteps,
     {false, true, true, false, true}},
    {"end-factor",
     Range::NonNegative,
     &RateSchedule::endFactor,
     {false, true, true, false, true}},
    {"step-size",
     Range::PositiveCount,
     &RateSchedule::stepSize,
     {false, false, false, true, false}},
    {"gamma",
     Range::NonNegative,
     &RateSchedule::gamma,
     {false, false, false, true, false}},
    {"power",
     Range::NonNegative,
     &RateSchedule::power,
     {false, false, false, false, true}},
};

const StringLiteral kinds[] = {"constant", "linear", "cosine", "step", "poly"};

LogicalResult setKey(RateSchedule &schedule, StringRef name, const Key &key,
                     StringRef value, std::string &error) {
  std::string where = (name + ": " + key.name).str();
  double number;
  if (value.getAsDouble(number) || !std::isfinite(number)) {
    error = where + " needs a number, as in " + key.name.str() + "=" +
            (key.range == Range::NonNegative ? "0.5" : "100") + ", not '" +
            value.str() + "'";
    return failure();
  }
  if (number < 0) {
    error = where + "=" + value.str() + " is negative";
    return failure();
  }
  if (key.range != Range::NonNegative && number != std::floor(number)) {
    error = where + "=" + value.str() + " is not a whole number of updates";
    return failure();
  }
  if (key.range == Range::PositiveCount && number == 0) {
    error = where + "=0: a positive number is needed";
    return failure();
  }
  schedule.*key.number = number;
  return success();
}

} // namespace

FailureOr<RateSchedule> penstock::parseRateSchedule(StringRef text,
                                                    std::string &error) {
  auto [name, options] = text.split(':');
  const StringLiteral *kind = llvm::find(kinds, name);
  if (kind == std::end(kinds)) {
    error = "unknown schedule '" + name.str() + "': known are " +
            llvm::join(ArrayRef(kinds), ", ");
    return failure();
  }
  RateSchedule schedule;
  size_t index = kind - std::begin(kinds);
  schedule.kind = static_cast<RateKind>(index);

  SmallVector<StringRef> parts, seen;
  options.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [keyName, value] = part.split('=');
    keyName = keyName.trim();
    const Key *key = llvm::find_if(keys, [&, keyName = keyName](const Key &k) {
      return k.name == keyName && k.applies[index];
    });
    if (key == std::end(keys)) {
      SmallVector<StringRef> known;
      for (const Key &other : keys)
        if (other.applies[index])
          known.push_back(other.name);
      error = name.str() + " has no option '" + keyName.str() +
              "': known are " + llvm::join(known, ", ");
      return failure();
    }
    if (llvm::is_contained(seen, keyName)) {
      error = name.str() + ": " + keyName.str() + " is given twice";
      return failure();
    }
    seen.push_back(keyName);
    if (failed(setKey(schedule, name, *key, value.trim(), error)))
      return failure();
  }

  auto needs = [&, name = name](StringRef key, StringRef why) {
    error = (name + " needs " + key + ", " + why + ": " + name + ":" + key +
             "=1000")
                .str();
    return failure();
  };
  bool falls = llvm::is_contained(
      {RateKind::Linear, RateKind::Cosine, RateKind::Poly}, schedule.kind);
  if (falls && schedule.totalSteps == 0)
    return needs("total-steps", "the update after which the rate stays");
  if (schedule.kind == RateKind::Step && schedule.stepSize == 0)
    return needs("step-size", "the updates between two steps");
  if (falls && schedule.totalSteps <= schedule.warmupSteps) {
    error = name.str() + ": total-steps counts the warm-up, so it must be more "
                         "than warmup-steps";
    return failure();
  }
  return schedule;
}

Value RateSchedule::emit(Arithmetic f, Value base, Value done) const {
  if (isConstant())
    return base;

  // 1. The part of the course behind the warm-up.
  Value one = f.constant(1);
  Value since = done;
  if (warmupSteps > 0)
    since = f.max(f.sub(done, f.constant(warmupSteps)), f.constant(0));
  auto progress = [&] {
    Value share = f.div(since, f.constant(totalSteps - warmupSteps));
    return f.min(share, one);
  };
  auto fallTo = [&](Value remaining) {
    return f.add(f.constant(endFactor),
                 f.mul(f.constant(1 - endFactor), remaining));
  };
  Value factor;
  switch (kind) {
  case RateKind::Constant:
    factor = one;
    break;
  case RateKind::Linear:
    factor = f.add(one, f.mul(f.constant(endFactor - 1), progress()));
    break;
  case RateKind::Cosine: {
    Value angle = f.mul(f.constant(M_PI), progress());
    factor = fallTo(f.mul(f.constant(0.5), f.add(one, f.cos(angle))));
    break;
  }
  case RateKind::Step:
    factor =
        f.pow(f.constant(gamma), f.floor(f.div(since, f.constant(stepSize))));
    break;
  case RateKind::Poly:
    factor = fallTo(f.pow(f.sub(one, progress()), f.constant(power)));
    break;
  }

  // 2. The warm-up before it.
  if (warmupSteps > 0)
    factor =
        f.selectLess(done, f.constant(warmupSteps),
                     f.div(f.add(done, one), f.constant(warmupSteps)), factor);
  return f.mul(base, factor);
}

Value RateSchedule::emitSum(Arithmetic f, Value base, Value done,
                            double steps) const {
  if (isConstant())
    return f.mul(f.constant(steps), base);
  Value sum;
  for (double at = 0; at < steps; ++at) {
    Value rate = emit(f, base, f.add(done, f.constant(at)));
    if (steps - at < 1)
      rate = f.mul(f.constant(steps - at), rate);
    sum = sum ? f.add(sum, rate) : rate;
  }
  return sum ? sum : f.constant(0);
}
