//===- ResumeTest.cpp - The table of moves --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From manifests and programs to reads, notes and sentences.
//===----------------------------------------------------------------------===//

#include "runtime/run/Resume.h"

#include <array>
#include <gtest/gtest.h>

using namespace penstock::runtime;
using Texts = std::vector<std::string>;

namespace {

constexpr int64_t kShape[] = {3, 5}, kOtherShape[] = {5, 3};
constexpr penstock_tensor kType = {PENSTOCK_F32, 2, kShape, 60};
constexpr penstock_tensor kOtherType = {PENSTOCK_F32, 2, kOtherShape, 60};

class ResumeTest : public testing::Test {
protected:
  ResumeTest() {
    manifest.step = 6;
    manifest.samplesPerUpdate = 24;
    manifest.samples = 144;
    manifest.samplesPerPass = 96;
    manifest.method = "sync";
    manifest.optimizer = "sgd:lr=0.1,momentum=0.9";
    manifest.model = std::string(64, '0');
    manifest.files = {{"weights-00000.safetensors", 1000, "", 0, {}},
                      {"state-00000.safetensors", 1000, "", 0, {}}};
    for (const char *name : {"a", "b"}) {
      save("", name);
      save("momentum", name);
      parameters.push_back(addVariable(name, "", PENSTOCK_ROLE_PARAMETER, 0));
    }
    for (size_t i = 0; i < 2; ++i)
      addState("momentum", PENSTOCK_ROLE_OPTIMIZER, uint32_t(i));
  }

  void save(const char *kind, const std::string &name) {
    manifest.files[*kind ? 1 : 0].tensors.push_back(
        {name, kind, PENSTOCK_F32, {3, 5}, 0, 60, name + kind});
  }
  uint32_t addVariable(const char *name, const char *kind, uint32_t role,
                       int32_t file) {
    penstock_variable variable = {};
    variable.name = name;
    variable.kind = kind;
    variable.of = uint32_t(variables.size());
    variable.role = role;
    variable.type = kType;
    variable.file = file;
    variable.versions = 1;
    variable.placement_count = 1;
    variable.placements = &places[variables.size()];
    variables.push_back(variable);
    return uint32_t(variables.size() - 1);
  }
  uint32_t addState(const char *kind, uint32_t role, uint32_t of,
                    int32_t file = -1) {
    uint32_t state = addVariable("state", kind, role, file);
    variables[state].of = of;
    return state;
  }

  std::string plan() {
    program.file_count = 1;
    program.files = &file;
    program.variable_count = uint32_t(variables.size());
    program.variables = variables.data();
    details.clear();
    Error error = planResume("run/step-000000006", manifest, target, result);
    details = error.details;
    return error.text;
  }
  /// "momentum:a", "zero or as in the model: -", by variable.
  std::string getSource(uint32_t variable) {
    for (const ResumeRead &read : result.reads)
      if (read.variable == variable)
        return read.tensor ? fileNameOf(*read.tensor) : "-";
    return "none";
  }

  std::array<penstock_placement, 32> places = {};
  penstock_file file = {"m.onnx", 1, {}, {}};
  std::vector<penstock_variable> variables;
  std::vector<uint32_t> parameters;
  penstock_program program = {};
  Manifest manifest;
  ResumeTarget target{program, "sync", "sgd:lr=0.1,momentum=0.9", 24, 96};
  ResumePlan result;
  Texts details;
};

TEST_F(ResumeTest, TakesAllThatItHas) {
  uint32_t gradient = addState("", PENSTOCK_ROLE_GRADIENT, 0);
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.step, 6);
  EXPECT_EQ(result.notes, Texts());
  EXPECT_EQ(getSource(0), "a");
  EXPECT_EQ(getSource(1), "b");
  EXPECT_EQ(getSource(2), "momentum:a");
  EXPECT_EQ(getSource(3), "momentum:b");
  EXPECT_EQ(getSource(gradient), "none");
}

// A synchronous program has a tied parameter on each of its stages.
TEST_F(ResumeTest, ReadsCopiesWhereTheirOwnerIs) {
  uint32_t copy = addVariable("a.s1", "", PENSTOCK_ROLE_PARAMETER, 0);
  variables[copy].of = 0;
  uint32_t state = addState("momentum", PENSTOCK_ROLE_OPTIMIZER, 0);
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(copy), "a");
  EXPECT_EQ(getSource(state), "momentum:a");
  std::vector<SavedValue> saved = listSavedValues(program);
  ASSERT_EQ(saved.size(), 4u);
  for (const SavedValue &value : saved)
    EXPECT_LT(value.variable, 4u);
}

// Workers have equal weights, and optimizers of their own.
TEST_F(ResumeTest, KnowsWorkersApart) {
  auto addWorker = [&](uint32_t worker) {
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t copy = addVariable("vw.a", "", PENSTOCK_ROLE_PARAMETER, 0);
      uint32_t global = addState("", PENSTOCK_ROLE_COMPENSATION, i, 0);
      uint32_t wave = addState("wave", PENSTOCK_ROLE_COMPENSATION, i);
      uint32_t state = addState("momentum", PENSTOCK_ROLE_OPTIMIZER, i);
      variables[copy].of = i;
      variables[wave].transient = 1;
      for (uint32_t variable : {copy, global, wave, state})
        variables[variable].worker = worker;
    }
  };
  auto from = [&](uint32_t variable) { return getSource(variable); };
  addWorker(1);
  program.worker_count = 2;

  // Another number of workers: all have what the first had.
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.notes,
            Texts{"all 2 workers begin with the same state of the optimizer"});
  EXPECT_EQ(from(4), "a");
  EXPECT_EQ(from(5), "a");
  EXPECT_EQ(from(6), "none");
  EXPECT_EQ(from(7), "momentum:a");
  Texts names;
  for (const SavedValue &value : listSavedValues(program))
    names.push_back(value.identity.kind + ":" + value.identity.name);
  EXPECT_EQ(names, (Texts{":a", ":b", "momentum:a", "momentum:b",
                          "momentum@1:a", "momentum@1:b"}));

  // As many: each its own.
  save("momentum@1", "a");
  save("momentum@1", "b");
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.notes, Texts());
  EXPECT_EQ(from(3), "momentum:b");
  EXPECT_EQ(from(7), "momentum@1:a");
  EXPECT_EQ(from(11), "momentum@1:b");

  addWorker(2);
  program.worker_count = 3;
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(from(7), "momentum:a");
  EXPECT_EQ(from(15), "momentum:a");
  EXPECT_EQ(
      result.notes,
      (Texts{"the state of the optimizer is that of the first of 2 workers",
             "left out, as this program does not need it: momentum@1"}));
}

TEST_F(ResumeTest, NeedsTheStateOfTheOptimizer) {
  for (uint32_t i = 0; i < 2; ++i)
    addState("v", PENSTOCK_ROLE_OPTIMIZER, i);
  target.optimizer = "adam:lr=0.001";
  EXPECT_EQ(plan(),
            "run/step-000000006: adam:lr=0.001 needs v of 'a', 'b', and the "
            "checkpoint, of sgd:lr=0.1,momentum=0.9, has none; "
            "--resume-weights takes the weights alone and begins at update 0");
  target.isWeightsOnly = true;
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.step, 0);
  EXPECT_EQ(getSource(1), "b");
  EXPECT_EQ(getSource(2), "-");
  EXPECT_EQ(getSource(4), "-");
}

TEST_F(ResumeTest, LeavesOutWhatNobodyNeeds) {
  save("m", "a");
  save("m", "b");
  save("v", "a");
  save("v", "b");
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.notes,
            Texts{"left out, as this program does not need it: m, v"});
}

TEST_F(ResumeTest, BeginsWhatAMethodKeepsAnew) {
  uint32_t delta = addState("delta", PENSTOCK_ROLE_COMPENSATION, 1);
  uint32_t seen = addState("compensated", PENSTOCK_ROLE_COMPENSATION, 1, 0);
  save("forward", "a");
  target.method = "pipemare:decay=0.5";
  manifest.method = "spectrain";
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(delta), "-");
  EXPECT_EQ(getSource(seen), "b");
  EXPECT_EQ(result.notes,
            (Texts{"compensated, delta begin anew, as at the start of training",
                   "the method was spectrain and is pipemare:decay=0.5 now",
                   "left out, as this program does not need it: forward"}));

  // The same words of the same method are taken; of another one they are not.
  save("delta", "b");
  save("compensated", "b");
  manifest.method = "pipemare:decay=0.7";
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(delta), "delta:b");
  EXPECT_EQ(getSource(seen), "compensated:b");
  manifest.method = "other";
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(delta), "-");
  EXPECT_EQ(getSource(seen), "b");
}

TEST_F(ResumeTest, BeginsAveragesAsWeights) {
  uint32_t average = addState("ema", PENSTOCK_ROLE_COMPENSATION, 1, 0);
  uint32_t fresh = addVariable("c", "", PENSTOCK_ROLE_PARAMETER, 0);
  uint32_t ofFresh = addState("ema", PENSTOCK_ROLE_COMPENSATION, fresh, 0);
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(average), "b");
  EXPECT_EQ(getSource(ofFresh), "-");
  EXPECT_EQ(result.notes,
            (Texts{"'c' did not train before: as in the model",
                   "the averages of 'b' begin as the weights of the "
                   "checkpoint"}));

  // They are no method's, and go on under another one.
  save("ema", "b");
  manifest.method = "pipedream";
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(average), "ema:b");
  target.isWeightsOnly = true;
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(average), "b");
}

// What is rounded begins with what it is rounded from.
TEST_F(ResumeTest, TakesMastersWithWeightsAlone) {
  uint32_t master = addState("master", PENSTOCK_ROLE_MASTER, 0, 0);
  uint32_t average = addState("ema", PENSTOCK_ROLE_COMPENSATION, 0, 0);
  save("master", "a");
  target.isWeightsOnly = true;
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(master), "master:a");
  EXPECT_EQ(getSource(average), "master:a");
}

TEST_F(ResumeTest, ListsDifferences) {
  variables[1].type = variables[3].type = kOtherType;
  addVariable("c", "", PENSTOCK_ROLE_PARAMETER, 0);
  save("", "d");
  manifest.model[0] = '1';
  EXPECT_EQ(plan(), "run/step-000000006 does not fit this program, which was "
                    "compiled of 'm.onnx': 4 differences");
  EXPECT_EQ(details,
            (Texts{"'b' is float32 (3, 5) in the checkpoint and float32 (5, 3) "
                   "here",
                   "'c' is here only",
                   "'d' is in the checkpoint only, or a constant here",
                   "'momentum:b' is float32 (3, 5) in the checkpoint and "
                   "float32 (5, 3) here"}));
}

TEST_F(ResumeTest, ListsAFewOfManyDifferences) {
  Texts names;
  for (int i = 0; i < 30; ++i)
    names.push_back("d" + std::to_string(i));
  for (const std::string &name : names)
    save("", name);
  EXPECT_NE(plan(), "");
  ASSERT_EQ(details.size(), 21u);
  EXPECT_EQ(details.back(), "and 10 more");
}

TEST_F(ResumeTest, LetsParametersTrainThatDidNot) {
  uint32_t fresh = addVariable("c", "", PENSTOCK_ROLE_PARAMETER, 0);
  uint32_t state = addState("momentum", PENSTOCK_ROLE_OPTIMIZER, fresh);
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(fresh), "-");
  EXPECT_EQ(getSource(state), "-");
  EXPECT_EQ(result.notes, Texts{"'c' did not train before: as in the model"});
  // And the reverse: its value is that of the checkpoint.
  variables.resize(4);
  variables[1].frozen = 1;
  variables.pop_back();
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(1), "b");
  EXPECT_EQ(result.notes,
            Texts{"left out, as this program does not need it: momentum"});
}

TEST_F(ResumeTest, TakesAnotherFileOfTheSameWeights) {
  manifest.model[5] = '1';
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.notes, Texts{"the model is another file than that of the "
                                "checkpoint, with the same weights"});
}

// --tie, in a program that goes on with a run in which they were apart.
TEST_F(ResumeTest, TiesWhatIsEqual) {
  variables[1].placements = variables[0].placements;
  variables.pop_back(); // the state of b
  EXPECT_NE(plan(), "");
  EXPECT_EQ(details, Texts{"'b' trains as 'a' here, which has other values"});
  manifest.files[0].tensors[1].checksum = manifest.files[0].tensors[0].checksum;
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(getSource(1), "b");
}

TEST_F(ResumeTest, CountsUpdatesOfOtherSizes) {
  target.samplesPerUpdate = 12;
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.step, 12);
  EXPECT_EQ(result.notes, Texts{"update 6 of 24 samples is update 12 of 12 "
                                "samples here"});
  // 144 samples are no whole number of updates of 32; 192 are.
  target.samplesPerUpdate = 32;
  EXPECT_EQ(plan(),
            "run/step-000000006: 144 samples are done, which are no whole "
            "number of updates of 32; train what wrote it to update 8, or use "
            "--resume-weights");
  manifest.step = 8;
  manifest.samples = 192;
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.step, 6);
  // Where a pass is cut otherwise, it has to end first.
  manifest.step = 6;
  manifest.samples = 144;
  target.samplesPerUpdate = 30;
  target.samplesPerPass = 90;
  EXPECT_EQ(plan(),
            "run/step-000000006: a pass over the data had 96 samples and has "
            "90 now, and this is in the midst of one; train what wrote it to "
            "update 8, the end of the pass, or use --resume-weights");
  manifest.step = 8;
  manifest.samples = 192;
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(result.step, 6); // two passes of three updates
}

TEST_F(ResumeTest, RefusesNumbersThatMakeNoSense) {
  manifest.samples = 145;
  EXPECT_EQ(plan(), "run/step-000000006/manifest.json: 6 updates of 24 samples "
                    "do not come to 145 samples");
  manifest.step = INT64_MAX / 12;
  EXPECT_NE(plan(), "");
}

} // namespace
