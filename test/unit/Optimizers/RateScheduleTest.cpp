//===- RateScheduleTest.cpp - What --lr-schedule may say ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values and mistakes; what the rates are is tested end to end.
//===----------------------------------------------------------------------===//

#include "penstock/Optimizers/RateSchedule.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace penstock;

namespace {

std::string errorOf(StringRef text) {
  std::string error;
  return succeeded(parseRateSchedule(text, error)) ? "none" : error;
}

TEST(RateScheduleTest, ReadsNumbers) {
  std::string error;
  FailureOr<RateSchedule> poly = parseRateSchedule(
      "poly:total-steps=100, warmup-steps=7,power=2,end-factor=0.1", error);
  ASSERT_TRUE(succeeded(poly)) << error;
  EXPECT_EQ(poly->getName(), "poly");
  EXPECT_EQ(poly->get("total-steps"), 100);
  EXPECT_EQ(poly->get("warmup-steps"), 7);
  EXPECT_EQ(poly->get("power"), 2);
  EXPECT_EQ(poly->get("end-factor"), 0.1);
  FailureOr<RateSchedule> step = parseRateSchedule("step:step-size=30", error);
  ASSERT_TRUE(succeeded(step)) << error;
  EXPECT_EQ(step->get("gamma"), 0.1);
}

TEST(RateScheduleTest, KnowsWhatIsConstant) {
  std::string error;
  EXPECT_TRUE(parseRateSchedule("constant", error)->isConstant());
  EXPECT_TRUE(
      parseRateSchedule("constant:warmup-steps=0", error)->isConstant());
  EXPECT_FALSE(
      parseRateSchedule("constant:warmup-steps=3", error)->isConstant());
}

TEST(RateScheduleTest, SaysWhatIsWrong) {
  EXPECT_EQ(errorOf("exponential"),
            "unknown schedule 'exponential': known are constant, linear, "
            "cosine, step, poly");
  EXPECT_EQ(errorOf("linear:gamma=0.1"),
            "linear has no option 'gamma': known are warmup-steps, "
            "total-steps, end-factor");
  EXPECT_EQ(errorOf("step:step-size=5,step-size=6"),
            "step: step-size is given twice");
  EXPECT_EQ(errorOf("step"), "step needs step-size, the updates between two "
                             "steps: step:step-size=1000");
  EXPECT_EQ(errorOf("poly"),
            "poly needs total-steps, the update after which the rate stays: "
            "poly:total-steps=1000");
  EXPECT_EQ(errorOf("cosine:total-steps=many"),
            "cosine: total-steps needs a number, as in total-steps=100, not "
            "'many'");
  EXPECT_EQ(errorOf("cosine:total-steps=1.5"),
            "cosine: total-steps=1.5 is not a whole number of updates");
  EXPECT_EQ(errorOf("cosine:total-steps=0"),
            "cosine: total-steps=0: a positive number is needed");
  EXPECT_EQ(errorOf("linear:total-steps=9,end-factor=-1"),
            "linear: end-factor=-1 is negative");
  EXPECT_EQ(errorOf("linear:total-steps=9,warmup-steps=9"),
            "linear: total-steps counts the warm-up, so it must be more than "
            "warmup-steps");
}

} // namespace
