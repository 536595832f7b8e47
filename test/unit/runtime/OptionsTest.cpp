//===- OptionsTest.cpp - Flags, right and wrong ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both spellings of every kind of flag, and one case per message.
//===----------------------------------------------------------------------===//

#include "LinearProgram.h"
#include "runtime/command/Flags.h"

#include <gtest/gtest.h>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

Error parse(Options &options, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  if (Error error = parseCommandLine(options, int(argv.size()), argv.data()))
    return error;
  return options.checkTogether();
}

std::string errorOf(std::vector<std::string> arguments) {
  Options options;
  Error error = parse(options, std::move(arguments));
  EXPECT_EQ(error.code, 1);
  EXPECT_EQ(error.text.find('\n'), std::string::npos);
  return error.text;
}

TEST(Options, TakesBothSpellings) {
  for (bool isJoined : {false, true}) {
    std::vector<std::pair<const char *, const char *>> flags = {
        {"--data", "x=a=b.npy"},   {"--data", "y=c.npy"},
        {"--labels", "l.npy"},     {"--steps", "12"},
        {"--lr", "1e-3"},          {"--seed", "5"},
        {"--log", "a.jsonl"},      {"--eval-data", "x=e.npy"},
        {"--eval-every", "4"},     {"--watchdog", "2.5"},
        {"--transport", "threads"}};
    std::vector<std::string> arguments = {"--shuffle"};
    for (auto [name, value] : flags) {
      if (isJoined) {
        arguments.push_back(std::string(name) + "=" + value);
        continue;
      }
      arguments.push_back(name);
      arguments.push_back(value);
    }
    Options options;
    Error error = parse(options, arguments);
    ASSERT_FALSE(error) << error.text;
    ASSERT_EQ(options.data.size(), 2u);
    EXPECT_EQ(options.data[0].first, "x");
    EXPECT_EQ(options.data[0].second, "a=b.npy");
    EXPECT_EQ(options.data[1].second, "c.npy");
    EXPECT_EQ(options.labels, "l.npy");
    EXPECT_EQ(options.steps, 12);
    EXPECT_EQ(options.rate, 1e-3);
    EXPECT_EQ(options.seed, 5);
    EXPECT_EQ(options.log, "a.jsonl");
    EXPECT_EQ(options.evalEvery, 4);
    EXPECT_EQ(options.watchdog, 2.5);
    EXPECT_TRUE(options.shuffle);
    EXPECT_FALSE(options.verify);
  }
}

TEST(Options, TakesTheLastValueOfAFlag) {
  Options options;
  Error error = parse(options, {"--data=x=a.npy", "--steps=1", "--data=y=b.npy",
                                "--shuffle", "--steps", "2", "--shuffle"});
  ASSERT_FALSE(error) << error.text;
  EXPECT_EQ(options.steps, 2);
  EXPECT_TRUE(options.shuffle);
  EXPECT_EQ(options.data.size(), 2u);
}

TEST(Options, NamesTheFlag) {
  EXPECT_EQ(errorOf({"--stepz", "3"}),
            "unknown flag --stepz; did you mean --steps? (see --help)");
  EXPECT_EQ(errorOf({"--stepz=3"}),
            "unknown flag --stepz; did you mean --steps? (see --help)");
  EXPECT_EQ(errorOf({"--xyzzy"}), "unknown flag --xyzzy (see --help)");
  EXPECT_EQ(errorOf({"model.onnx"}),
            "unexpected argument 'model.onnx' (see --help)");
  EXPECT_EQ(errorOf({"--"}), "unexpected argument '--' (see --help)");
  EXPECT_EQ(errorOf({"--steps"}), "--steps needs a value: N");
  EXPECT_EQ(errorOf({"--labels", "--steps", "3"}),
            "--labels needs a value: FILE.npy");
  EXPECT_EQ(errorOf({"--shuffle=yes"}), "--shuffle takes no value");
  EXPECT_EQ(errorOf({"--steps", "many"}),
            "--steps: 'many' is not a whole number of at least 0");
  EXPECT_EQ(errorOf({"--steps=3.5"}),
            "--steps: '3.5' is not a whole number of at least 0");
  EXPECT_EQ(errorOf({"--epochs", "-1"}),
            "--epochs: '-1' is not a whole number of at least 0");
  EXPECT_EQ(
      errorOf({"--eval-every", "0"}),
      "--eval-every: '0' is no number of updates, as 200, or of passes, as "
      "1epoch");
  EXPECT_EQ(errorOf({"--steps", "99999999999999999999"}),
            "--steps: '99999999999999999999' is not a whole number of at "
            "least 0");
  EXPECT_EQ(errorOf({"--lr", "fast"}),
            "--lr: 'fast' is not a number of at least 0");
  EXPECT_EQ(errorOf({"--lr=nan"}), "--lr: 'nan' is not a number of at least 0");
  EXPECT_EQ(errorOf({"--lr="}), "--lr: '' is not a number of at least 0");
  EXPECT_EQ(errorOf({"--log="}), "--log: the file name is empty");
  EXPECT_EQ(errorOf({"--data", "x.npy"}),
            "--data: 'x.npy' is not of the form NAME=FILE.npy");
  EXPECT_EQ(errorOf({"--data==x.npy"}),
            "--data: '=x.npy' is not of the form NAME=FILE.npy");
}

TEST(Options, ReadsTimes) {
  for (auto [text, seconds] : {std::pair("90", 90.0),
                               {"1:30", 90.0},
                               {"1:30:00", 5400.0},
                               {"0:01", 1.0}}) {
    Options options;
    ASSERT_FALSE(parse(options, {"--steps=1", "--time-limit", text})) << text;
    EXPECT_EQ(options.timeLimit, seconds) << text;
  }
  for (const char *text :
       {"", "0", "x", "1:", ":1", "1:2:3:4", "-1", "1.5", "99999999:00:00"})
    EXPECT_EQ(
        errorOf({std::string("--time-limit=") + text}),
        format("--time-limit: '%s' is no time, as 90, 1:30 or 1:30:00", text));
}

TEST(Options, SaysWhatThisBuildHasNot) {
  EXPECT_EQ(errorOf({"--transport", "pigeon"}),
            "--transport: 'pigeon' is not one of auto, threads, mpi, nccl");
}

TEST(Options, BelongToOneKindOfProgram) {
  Options options;
  ASSERT_FALSE(parse(options, {"--outputs", "d", "--trace", "t"}));
  EXPECT_FALSE(options.checkMode(/*infers=*/true));
  EXPECT_EQ(options.checkMode(/*infers=*/false).text,
            "--outputs: this program trains; outputs are written by one "
            "compiled with --mode=infer");
  ASSERT_FALSE(parse(options, {"--steps=3"}));
  EXPECT_EQ(options.checkMode(/*infers=*/true).text,
            "--steps: this program does not train; it was compiled with "
            "--mode=infer");
}

TEST(Options, NamesFlagsThatExclude) {
  EXPECT_EQ(errorOf({"--steps=1", "--epochs=1"}),
            "--steps and --epochs exclude each other");
  EXPECT_EQ(errorOf({"--eval-every=1"}), "--eval-every needs --eval-data");
}

TEST(Options, HelpListsInputsAndFlags) {
  ScratchFolder folder;
  LinearProgram linear(folder.path);
  std::string help = helpText(linear.program, "./train");
  for (const char *text :
       {"usage: ./train --data x=FILE.npy --labels FILE.npy --steps N",
        "2 stages on 2 devices (method sync, schedule 1f1b)",
        "x                      float32 (samples, 4)", "--eval-every N",
        "--watchdog SECONDS"})
    EXPECT_NE(help.find(text), std::string::npos) << text;
}

} // namespace
