//===- MethodSpecTest.cpp - The text of --method --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, keys, defaults, and what each mistake is told.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/MethodSpec.h"

#include "gtest/gtest.h"

using namespace penstock;

namespace {

std::string errorOf(llvm::StringRef text) {
  std::string error;
  EXPECT_TRUE(failed(parseMethodSpec(text, error))) << text.str();
  return error;
}

MethodSpec parse(llvm::StringRef text) {
  std::string error;
  auto spec = parseMethodSpec(text, error);
  EXPECT_TRUE(succeeded(spec)) << error;
  return succeeded(spec) ? *spec : MethodSpec();
}

OptimizerSpec optimizer(llvm::StringRef text) {
  std::string error;
  return *parseOptimizerSpec(text, error);
}

TEST(MethodSpec, Names) {
  for (llvm::StringRef name :
       {"sync", "naive", "pipedream", "2bw", "pipemare", "spectrain", "xpipe",
        "pipeoptim", "timeprest", "v-timeprest", "i-timeprest", "hetpipe"}) {
    EXPECT_EQ(parse(name).getName(), name);
    EXPECT_EQ(parse(name).isAsynchronous(), name != "sync");
  }
  EXPECT_EQ(errorOf("hogwild"),
            "unknown method 'hogwild': known are sync, naive, pipedream, 2bw, "
            "pipemare, spectrain, xpipe, pipeoptim, timeprest, v-timeprest, "
            "i-timeprest, hetpipe");
}

TEST(MethodSpec, Keys) {
  EXPECT_FALSE(parse("pipedream").has("vertical-sync"));
  EXPECT_TRUE(parse("pipedream:vertical-sync").has("vertical-sync"));
  EXPECT_TRUE(parse("pipedream:vertical-sync=1").has("vertical-sync"));
  EXPECT_FALSE(parse("pipedream:vertical-sync=0").has("vertical-sync"));
  MethodSpec spec = parse("pipemare");
  EXPECT_EQ(spec.get("anneal-steps"), 0);
  EXPECT_EQ(spec.get("decay"), 0.135353);
  EXPECT_EQ(spec.get("warmup-steps"), 0);
  spec = parse("pipemare:anneal-steps=500,decay=0,warmup-steps=20");
  EXPECT_EQ(spec.get("anneal-steps"), 500);
  EXPECT_EQ(spec.get("decay"), 0);
  EXPECT_EQ(spec.get("warmup-steps"), 20);

  EXPECT_EQ(errorOf("naive:decay=0.1"),
            "naive has no option 'decay': it has none");
  EXPECT_EQ(errorOf("pipemare:vertical-sync"),
            "pipemare has no option 'vertical-sync': known are anneal-steps, "
            "decay, warmup-steps");
  EXPECT_EQ(errorOf("pipedream:vertical-sync=2"),
            "pipedream: vertical-sync is a flag: write vertical-sync or "
            "vertical-sync=0, not '2'");
  EXPECT_EQ(errorOf("pipemare:anneal-steps=-1"),
            "pipemare: anneal-steps needs a number of updates, as in "
            "anneal-steps=100, not '-1'");
  EXPECT_EQ(errorOf("pipemare:decay=1"),
            "pipemare: decay needs a number from 0 (off) to below 1, as in "
            "decay=0.135353, not '1'");
  EXPECT_EQ(errorOf("pipemare:decay=0.1,decay=0.2"),
            "pipemare: decay is given twice");
}

TEST(MethodSpec, Schedules) {
  auto check = [](llvm::StringRef method, llvm::StringRef schedule) {
    std::string error;
    auto spec = schedule::parseScheduleSpec(schedule, error);
    EXPECT_TRUE(spec) << error;
    (void)checkMethodSchedule(parse(method), *spec, error);
    return error;
  };
  for (llvm::StringRef method : {"naive", "pipedream", "xpipe", "pipemare"})
    for (llvm::StringRef schedule : {"1f1b", "nf1b", "nf1b:ahead=2"})
      EXPECT_EQ(check(method, schedule), "");
  EXPECT_EQ(check("sync", "zb-v"), "");
  EXPECT_EQ(check("sync", "nf1b"),
            "updates overlap, which --method=sync does not allow: use a method "
            "that is asynchronous, or leave --schedule out");
  EXPECT_EQ(check("pipedream:vertical-sync", "gpipe"),
            "--method=pipedream:vertical-sync runs 1f1b or nf1b without "
            "flushes; leave --schedule out, or use --method=sync");
  for (std::string method : {"2bw", "spectrain"})
    EXPECT_EQ(check(method, "nf1b"),
              "--method=" + method +
                  " runs 1f1b without flushes; leave --schedule out, or use "
                  "--method=sync");
  // These say by themselves how far forwards run ahead.
  EXPECT_EQ(check("timeprest", "nf1b"), "");
  EXPECT_EQ(check("i-timeprest:ahead=1", "nf1b:ahead=1"), "");
  EXPECT_EQ(check("v-timeprest:ahead=2", "nf1b:ahead=1"),
            "--method=v-timeprest:ahead=2 runs nf1b:ahead=2 without flushes; "
            "leave --schedule out, or use --method=sync");
  EXPECT_EQ(check("timeprest", "1f1b"),
            "--method=timeprest runs nf1b without flushes; leave --schedule "
            "out, or use --method=sync");
  EXPECT_EQ(errorOf("i-timeprest:decay=-1"),
            "i-timeprest: decay needs a number from 0 (off) on, as in decay=1, "
            "not '-1'");
  EXPECT_EQ(errorOf("timeprest:ahead=1.5"),
            "timeprest: ahead needs a number of updates, or 0 for as many as "
            "there are stages behind, as in ahead=1, not '1.5'");
}

TEST(MethodSpec, Combinations) {
  std::string error;
  EXPECT_TRUE(succeeded(checkMethod(parse("spectrain"), 1, {},
                                    optimizer("sgd:momentum=0.9"), error)));
  EXPECT_TRUE(failed(checkMethod(parse("spectrain"), 2, {},
                                 optimizer("sgd:momentum=0.9"), error)));
  EXPECT_EQ(error, "spectrain updates after every microbatch, not after 2: use "
                   "--microbatches=1, or --method=pipeoptim");
  EXPECT_TRUE(
      failed(checkMethod(parse("spectrain"), 1, {}, optimizer("sgd"), error)));
  EXPECT_EQ(error, "spectrain predicts along SGD's momentum, and there is "
                   "none: use --optimizer=sgd:momentum=0.9");
  EXPECT_TRUE(
      failed(checkMethod(parse("spectrain"), 1, {}, optimizer("adam"), error)));
  EXPECT_EQ(error, "spectrain predicts along SGD's momentum, which adam does "
                   "not have: use --optimizer=sgd:momentum=0.9, or "
                   "--method=pipeoptim");

  // An update of one microbatch of each replica, if they are as many
  // everywhere.
  EXPECT_TRUE(succeeded(checkMethod(parse("spectrain"), 3, {3, 3},
                                    optimizer("sgd:momentum=0.9"), error)));
  EXPECT_TRUE(failed(checkMethod(parse("spectrain"), 6, {3, 3},
                                 optimizer("sgd:momentum=0.9"), error)));
  EXPECT_EQ(error, "spectrain updates after every microbatch of a replica, not "
                   "after 6: use --microbatches=3, or --method=pipeoptim");
  EXPECT_TRUE(failed(checkMethod(parse("spectrain"), 3, {3, 1},
                                 optimizer("sgd:momentum=0.9"), error)));
  EXPECT_EQ(error, "spectrain updates after every microbatch of a replica, "
                   "which stages of different width cannot all do: use stages "
                   "of equal width, or --method=pipeoptim");

  EXPECT_TRUE(
      succeeded(checkMethodDepth(parse("2bw"), {1, 1, 1, 1}, 4, error)));
  EXPECT_TRUE(
      succeeded(checkMethodDepth(parse("pipedream"), {1, 1, 1, 1}, 1, error)));
  EXPECT_TRUE(failed(checkMethodDepth(parse("2bw"), {1, 1, 1, 1}, 3, error)));
  EXPECT_EQ(error, "2bw needs at least as many microbatches per update as the "
                   "pipeline is deep: use --microbatches=4 or more, or a "
                   "depth of 3 instead of 4");
  EXPECT_TRUE(succeeded(checkMethodDepth(parse("2bw"), {2, 2, 2}, 6, error)));
  EXPECT_TRUE(failed(checkMethodDepth(parse("2bw"), {2, 2, 2}, 4, error)));
  EXPECT_EQ(error, "2bw needs at least as many microbatches per update as the "
                   "pipeline is deep, for every replica: use "
                   "--microbatches=6 or more, or fewer replicas");
  // The most in flight is 16, on the second stage, of which 8 are a multiple.
  EXPECT_TRUE(succeeded(checkMethodDepth(parse("2bw"), {1, 8, 2}, 16, error)));
  EXPECT_TRUE(failed(checkMethodDepth(parse("2bw"), {1, 8, 2}, 8, error)));
  EXPECT_NE(error.find("use --microbatches=16 or more"), std::string::npos);
  // Eight on the first stage; the third has three replicas.
  EXPECT_TRUE(failed(checkMethodDepth(parse("2bw"), {2, 2, 3}, 6, error)));
  EXPECT_NE(error.find("use --microbatches=12 or more"), std::string::npos);

  // The same, one stage at a time.
  EXPECT_TRUE(allowsStage(parse("2bw"), 8, 2, 16));
  EXPECT_FALSE(allowsStage(parse("2bw"), 8, 2, 8));
  EXPECT_TRUE(allowsStage(parse("spectrain"), 3, 3, 3));
  EXPECT_FALSE(allowsStage(parse("spectrain"), 1, 3, 3));
  EXPECT_TRUE(allowsStage(parse("pipedream"), 8, 2, 8));
}

} // namespace
