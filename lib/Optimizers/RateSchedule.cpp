//===- RateSchedule.cpp - The learning rate over the updates --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warm-up, which all schedules share; what follows it stands in Rates/.
//===----------------------------------------------------------------------===//

#include "Rates/RateTable.h"

using namespace mlir;
using namespace penstock;

std::string penstock::describeMissing(const Spec &spec, StringRef key,
                                      StringRef why) {
  return (spec.getName() + " needs " + key + ", " + why + ": " +
          spec.getName() + ":" + key + "=1000")
      .str();
}

std::string penstock::checkFall(const Spec &spec) {
  if (spec.get("total-steps") == 0)
    return describeMissing(spec, "total-steps",
                           "the update after which the rate stays");
  if (spec.get("total-steps") <= spec.get("warmup-steps"))
    return spec.getName().str() +
           ": total-steps counts the warm-up, so it must be more than "
           "warmup-steps";
  return "";
}

Value penstock::emitProgress(Arithmetic f, const RateSchedule &rate,
                             Value since, Value one) {
  Value share =
      f.div(since, f.constant(rate.get("total-steps") - rate.getWarmup()));
  return f.min(share, one);
}

Value penstock::emitFall(Arithmetic f, const RateSchedule &rate,
                         Value remaining) {
  double end = rate.get("end-factor");
  return f.add(f.constant(end), f.mul(f.constant(1 - end), remaining));
}

Value RateSchedule::emit(Arithmetic f, Value base, Value done) const {
  if (isConstant())
    return base;

  // 1. What follows the warm-up.
  double warmup = getWarmup();
  Value one = f.constant(1);
  Value since = done;
  if (warmup > 0)
    since = f.max(f.sub(done, f.constant(warmup)), f.constant(0));
  Value factor = getKind().emit(f, *this, since, one);

  // 2. The warm-up before it.
  if (warmup > 0)
    factor = f.selectLess(done, f.constant(warmup),
                          f.div(f.add(done, one), f.constant(warmup)), factor);
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
