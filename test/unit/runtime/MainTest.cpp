//===- MainTest.cpp - The executable's command line -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// penstock_main in this process: exit codes, what goes to stdout and stderr,
// and which files are there afterwards.
//===----------------------------------------------------------------------===//

#include "LinearProgram.h"

#include <filesystem>
#include <gtest/gtest.h>

using namespace penstock::test;

namespace {

class MainTest : public testing::Test {
protected:
  int run(std::vector<std::string> arguments, bool hasData = true) {
    if (hasData)
      arguments.insert(arguments.begin(), {"--data", "x=" + linear.dataPath,
                                           "--labels", linear.labelsPath});
    arguments.insert(arguments.begin(), "./train");
    std::vector<char *> argv;
    for (std::string &argument : arguments)
      argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = penstock_main(int(argv.size()), argv.data(), &linear);
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    started.clear();
    if (err.rfind("training: ", 0) == 0) {
      started = err.substr(0, err.find('\n'));
      err.erase(0, started.size() + 1);
    }
    return code;
  }
  std::vector<std::string> evaluation() const {
    return {"--eval-data", "x=" + linear.dataPath, "--eval-labels",
            linear.labelsPath};
  }

  ScratchFolder folder;
  LinearProgram linear{folder.path};
  std::string out, err;
  std::string started; // the line before a training
};

TEST_F(MainTest, PrintsAndEnds) {
  EXPECT_EQ(run({"--help"}, false), 0);
  EXPECT_EQ(out.rfind("usage: ./train ", 0), 0u);
  EXPECT_EQ(run({"--version"}, false), 0);
  EXPECT_EQ(out, "penstock 0.1.0, runtime interface " +
                     std::to_string(PENSTOCK_ABI_VERSION) +
                     ", compiled for any\n");
  EXPECT_EQ(run({"--plan"}, false), 0);
  EXPECT_EQ(out, "{\"model\": \"linear\"}\n");
}

TEST_F(MainTest, TrainsAndPrintsTheTable) {
  ASSERT_EQ(run({"--steps", "10"}), 0) << err;
  EXPECT_EQ(err, "");
  EXPECT_EQ(started,
            "training: 10 updates of 4 x 3 samples, of 26 samples in passes of "
            "2 updates; the last 2 of them are never used (--last=wrap takes "
            "them in)");
  EXPECT_EQ(out.rfind("10 updates of 4 x 3 samples in ", 0), 0u) << out;
  EXPECT_NE(out.find("\nloss: "), std::string::npos) << out;
  EXPECT_NE(out.find("\n0       0 "), std::string::npos) << out;
  EXPECT_NE(out.find("\n1       1 "), std::string::npos) << out;
  EXPECT_NE(out.find("% measured, 20.0 % predicted"), std::string::npos) << out;
  EXPECT_NE(out.find("peak memory of the process: "), std::string::npos);
}

TEST_F(MainTest, CountsEpochs) {
  ASSERT_EQ(run({"--epochs=3"}), 0) << err;
  EXPECT_EQ(out.rfind("6 updates of ", 0), 0u) << out;
}

TEST_F(MainTest, EvaluatesBetweenSegments) {
  std::vector<std::string> arguments = evaluation();
  arguments.insert(arguments.end(), {"--steps", "5", "--eval-every", "2"});
  ASSERT_EQ(run(arguments), 0) << err;
  for (const char *text : {"eval: step 2 loss ", "eval: step 4 loss ",
                           "eval: step 5 loss ", "/26 samples)\n"})
    EXPECT_NE(out.find(text), std::string::npos) << out;
  size_t first = out.find("eval:"), last = out.rfind("eval: step 5");
  EXPECT_LT(first, last);

  // Without --eval-every: once, at the end.
  arguments = evaluation();
  arguments.push_back("--steps=4");
  ASSERT_EQ(run(arguments), 0) << err;
  EXPECT_EQ(out.rfind("eval: step 4 loss ", 0), 0u);
  EXPECT_EQ(out.find("eval:", 1), std::string::npos);
}

TEST_F(MainTest, IsQuiet) {
  std::vector<std::string> arguments = evaluation();
  arguments.insert(arguments.end(), {"--steps=5", "--quiet", "--verify"});
  ASSERT_EQ(run(arguments), 0) << err;
  EXPECT_EQ(started + err + out, "");
  EXPECT_EQ(run({"--steps=1", "--quiet", "--progress=1"}), 1);
  EXPECT_EQ(err, "error: --quiet and --progress exclude each other\n");
}

TEST_F(MainTest, ReportsProgressInLines) {
  ASSERT_EQ(run({"--steps=3", "--progress=0"}), 0);
  EXPECT_EQ(err.rfind("step 1 of 3, epoch 0.50, loss ", 0), 0u) << err;
  EXPECT_NE(err.find(" left\nstep 2 of 3, epoch 1, loss "), std::string::npos)
      << err;
  EXPECT_NE(err.find(" samples/s\n"), std::string::npos) << err;
  ASSERT_EQ(run({"--steps=3", "--progress=off"}), 0);
  EXPECT_EQ(err, "");
  EXPECT_EQ(run({"--steps=3", "--progress=often"}), 1);
  EXPECT_EQ(err, "error: --progress: 'often' is neither a number of seconds "
                 "nor off\n");
}

TEST_F(MainTest, TracesSomeUpdates) {
  ASSERT_EQ(
      run({"--steps=6", "--trace", folder / "a.json", "--trace-steps=3:4"}), 0)
      << err;
  std::string trace = readText(folder / "a.json");
  EXPECT_TRUE(isJson(trace));
  for (const char *text :
       {"\"args\":{\"update\":3,\"microbatch\":8}",
        "\"args\":{\"update\":4,\"microbatch\":15}",
        "\"args\":{\"update\":4,\"version\":4}", "\"name\":\"update 3\""})
    EXPECT_NE(trace.find(text), std::string::npos) << text;
  for (const char *text :
       {"\"update\":2", "\"update\":5", "\"name\":\"update 5\""})
    EXPECT_EQ(trace.find(text), std::string::npos) << text;
  for (const char *range : {"4:3", "0:3", "3", "3:", "a:b"}) {
    EXPECT_EQ(run({"--steps=1", "--trace", folder / "a.json",
                   std::string("--trace-steps=") + range}),
              1);
    EXPECT_EQ(err, "error: --trace-steps: '" + std::string(range) +
                       "' is not a range of updates, as 100:110\n");
  }
  EXPECT_EQ(run({"--steps=1", "--trace-steps=1:2"}), 1);
  EXPECT_EQ(err, "error: --trace-steps needs --trace\n");
}

TEST_F(MainTest, WritesAllFiles) {
  ASSERT_EQ(run({"--steps=3", "--log", folder / "a.jsonl", "--save",
                 folder / "a.onnx", "--trace", folder / "a.json", "--verify"}),
            0)
      << err;
  EXPECT_EQ(out.rfind("verify: 3 updates, 3 variables, 12 losses: bitwise "
                      "equal\n",
                      0),
            0u);
  EXPECT_EQ(listFiles(folder),
            (std::vector<std::string>{"a.json", "a.jsonl", "a.onnx",
                                      "linear.onnx", "x.npy", "y.npy"}));
  EXPECT_TRUE(isJson(readText(folder / "a.json")));
}

TEST_F(MainTest, SavesNothingThatIsNotVerified) {
  faults.wrongReplayAt = 1;
  EXPECT_EQ(run({"--steps=3", "--save", folder / "a.onnx", "--verify"}), 4);
  EXPECT_EQ(err.rfind("error: verify: the loss of update 3", 0), 0u) << err;
  EXPECT_EQ(listFiles(folder),
            (std::vector<std::string>{"linear.onnx", "x.npy", "y.npy"}));
}

TEST_F(MainTest, KeepsDevicesWhereOutputGoes) {
  EXPECT_EQ(run({"--steps=1", "--save=/dev/full"}), 1);
  EXPECT_EQ(err.rfind("error: cannot write '/dev/full'", 0), 0u) << err;
  EXPECT_EQ(run({"--steps=1", "--trace=/dev/full"}), 1);
  EXPECT_EQ(run({"--steps=1", "--save=/dev/null"}), 0) << err;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(MainTest, SaysInOneLineWhatIsWrong) {
  EXPECT_EQ(run({}), 1);
  EXPECT_EQ(err, "error: one of --steps and --epochs is required (see "
                 "--help)\n");
  EXPECT_EQ(run({"--steps=1"}, false), 1);
  EXPECT_EQ(err, "error: --data x=FILE.npy is missing\n");
  EXPECT_EQ(run({"--steps=1", "--eval-labels", linear.labelsPath}), 1);
  EXPECT_EQ(err, "error: --eval-data x=FILE.npy is missing\n");
  EXPECT_EQ(run({"--steps=1", "--log", folder / "none/a.jsonl"}), 1);
  EXPECT_EQ(err, "error: --log: folder '" + (folder / "none") +
                     "' does not exist\n");
  EXPECT_EQ(run({"--steps=1", "--trace", folder.path}), 1);
  EXPECT_EQ(err, "error: --trace: '" + folder.path + "' is a folder\n");
  EXPECT_EQ(run({"--steps=1", "--log=a", "--save=a"}), 1);
  EXPECT_EQ(err, "error: --log and --save name the same file 'a'\n");
  EXPECT_EQ(run({"--steps=1", "--data", "a\nb\x1b=c"}), 1);
  EXPECT_EQ(err, "error: --data: unknown input 'a\\nb\\x1b', the model's "
                 "inputs are 'x'\n");
  linear.program.replay = nullptr;
  EXPECT_EQ(run({"--steps=1", "--verify"}), 1);
  EXPECT_EQ(err, "error: --verify: this program was compiled without its "
                 "one-device replay\n");
  EXPECT_EQ(out, "");
}

} // namespace
