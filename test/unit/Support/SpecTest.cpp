//===- SpecTest.cpp - NAME:key=value,flag as a checked record -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The grammar with a table of its own: values, texts, and what is said of
// mistakes. The tables of the compiler have tests where they are.
//===----------------------------------------------------------------------===//

#include "penstock/Support/Spec.h"

#include "gtest/gtest.h"

#include <limits>

using namespace penstock;

namespace {

std::string checkOrder(const Spec &spec) {
  return spec.get("low") < spec.get("high") ? "" : "low is not below high";
}

const SpecKey kBoatKeys[] = {
    {.name = "sails", .type = SpecKey::Whole, .fallback = 1, .least = 1},
    {.name = "low", .least = -SpecKey::kNoLimit},
    {.name = "high", .fallback = 2.5, .below = 10},
    {.name = "depth", .sameAs = "high"},
    {.name = "fast", .type = SpecKey::Flag},
    {.name = "crew",
     .type = SpecKey::Whole,
     .wants = "a number of people",
     .example = "3"},
};
const SpecKind kBoat = {"boat", kBoatKeys, checkOrder};
const SpecKind kRaft = {"raft", {}};
const SpecKind *const kKinds[] = {&kBoat, &kRaft};
const SpecTable kTable = {"vessel", kKinds};
const SpecTable kVerbose = {"vessel", kKinds, /*isVerbose=*/true};

Spec parse(llvm::StringRef text) {
  std::string error;
  std::optional<Spec> spec = parseSpec(text, kTable, error);
  EXPECT_TRUE(spec) << error;
  return spec.value_or(Spec(kRaft));
}

std::string errorOf(llvm::StringRef text, const SpecTable &table = kTable) {
  std::string error;
  EXPECT_FALSE(parseSpec(text, table, error)) << text.str();
  return error;
}

TEST(Spec, Values) {
  Spec spec = parse("boat:high=4, fast, depth=high,low=-1e-3");
  EXPECT_EQ(spec.getName(), "boat");
  EXPECT_EQ(spec.get("high"), 4);
  EXPECT_EQ(spec.get("depth"), 4);
  EXPECT_EQ(spec.get("low"), -1e-3);
  EXPECT_EQ(spec.getWhole("sails"), 1);
  EXPECT_TRUE(spec.has("fast"));
  EXPECT_FALSE(parse("boat:fast=0").has("fast"));
  EXPECT_TRUE(spec.isGiven("high"));
  EXPECT_FALSE(spec.isGiven("sails"));
  // A row need not have the key that is asked for.
  EXPECT_EQ(parse("raft").get("high"), 0);
  EXPECT_EQ(parse("boat:sails=1"), parse("boat"));
  EXPECT_FALSE(parse("boat:sails=2") == parse("boat"));
}

TEST(Spec, Texts) {
  EXPECT_EQ(parse("boat:high=4.0,fast").getText(), "boat:high=4.0,fast");
  // Put together, in the order of the keys; no bit of a number is lost.
  Spec spec(kBoat);
  EXPECT_EQ(spec.set(kBoatKeys[4], 1), "");
  EXPECT_EQ(spec.set(kBoatKeys[2], 0.1 + 0.2), "");
  EXPECT_EQ(spec.getText(), "boat:high=0.30000000000000004,fast");
  EXPECT_EQ(parse(spec.getText()), spec);
  EXPECT_EQ(spec.set(kBoatKeys[2], 10), "boat: high=10 is not below 10");
  EXPECT_EQ(spec.set(kBoatKeys[5], std::numeric_limits<double>::quiet_NaN()),
            "boat: crew needs a number of people, as in crew=3, not 'nan'");
}

TEST(Spec, Mistakes) {
  EXPECT_EQ(errorOf("ship"), "unknown vessel 'ship': known are boat, raft");
  EXPECT_EQ(errorOf("ship", kVerbose),
            "vessel 'ship' is not known; there are "
            "boat:sails=1,low=0,high=2.5,depth=0,fast=0,crew=0, raft");
  EXPECT_EQ(errorOf("raft:sails=1"), "raft has no option 'sails': it has none");
  EXPECT_EQ(errorOf("raft:sails=1", kVerbose),
            "vessel raft has no parameter 'sails'; it has none");
  EXPECT_EQ(errorOf("boat:mast"),
            "boat has no option 'mast': known are sails, low, high, depth, "
            "fast, crew; did you mean 'fast'?");
  EXPECT_EQ(errorOf("boat:low=1,low=1"), "boat: low is given twice");
  EXPECT_EQ(errorOf("boat:fast=2"),
            "boat: fast is a flag: write fast or fast=0, not '2'");
  EXPECT_EQ(errorOf("boat:high"),
            "boat: high needs a number, as in high=0.1, not ''");
  EXPECT_EQ(errorOf("boat:high=inf"),
            "boat: high needs a number, as in high=0.1, not 'inf'");
  EXPECT_EQ(errorOf("boat:high=-1"), "boat: high=-1 is negative");
  EXPECT_EQ(errorOf("boat:sails=1.5"), "boat: sails=1.5 is not a whole number");
  EXPECT_EQ(errorOf("boat:sails=0"),
            "boat: sails=0: a positive number is needed");
  EXPECT_EQ(errorOf("boat:crew=-3"),
            "boat: crew needs a number of people, as in crew=3, not '-3'");
  EXPECT_EQ(errorOf("boat:low=3"), "low is not below high");
}

} // namespace
