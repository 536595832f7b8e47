//===- ProgramTest.cpp - Training, saving, evaluating, verifying ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The embedding API over the hand-written program: what the pipeline computes
// must be, bit for bit, what one serial loop computes.
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "LinearProgram.h"
#include "Session.h"

#include "runtime/io/ModelWriter.h"
#include "runtime/run/Instance.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <sstream>

using namespace penstock::test;

namespace {

constexpr int64_t kSamples = LinearProgram::kSamples;

std::vector<double> lossesOf(const std::string &log) {
  std::vector<double> losses;
  std::istringstream text(readText(log));
  for (std::string line; std::getline(text, line);) {
    EXPECT_TRUE(isJson(line)) << line;
    size_t at = line.find("\"loss\": ");
    losses.push_back(std::strtod(line.c_str() + at + 8, nullptr));
  }
  return losses;
}

class ProgramTest : public testing::Test {
protected:
  std::vector<std::pair<std::string, std::string>> data() const {
    return {{"data", "x=" + linear.dataPath}, {"labels", linear.labelsPath}};
  }
  std::vector<std::pair<std::string, std::string>>
  dataAnd(std::vector<std::pair<std::string, std::string>> more) const {
    auto all = data();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  ScratchFolder folder;
  LinearProgram linear{folder.path};
};

// Losses and saved weights against the serial loop; the rest of the model file
// is unchanged.
TEST_F(ProgramTest, TrainsAndSavesLikeOneLoop) {
  Session run(&linear, dataAnd({{"log", folder / "log.jsonl"}}));
  ASSERT_EQ(run.code, 0) << run.error();
  ASSERT_EQ(penstock_train(run.run, 6), 0) << run.error();
  std::filesystem::create_directory(folder / "out");
  ASSERT_EQ(penstock_save(run.run, (folder / "out/trained.onnx").c_str()), 0)
      << run.error();

  std::vector<float> w1 = linear.w1, w2 = linear.w2;
  std::vector<float> expected = linear.trainSerially(6, 0.05f, w1, w2);
  std::string log;
  std::istringstream lines(readText(folder / "log.jsonl"));
  for (int t = 0; t < 6; ++t) {
    double sum = 0;
    for (int j = 0; j < kM; ++j)
      sum += expected[t * kM + j];
    char start[100];
    std::snprintf(start, sizeof(start),
                  "{\"step\": %d, \"loss\": %.9g, \"lr\": 0.05, \"seconds\": ",
                  t + 1, sum / kM);
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line.substr(0, std::strlen(start)), start);
    EXPECT_TRUE(isJson(line));
  }
  EXPECT_LT(expected.back(), expected.front());

  std::string model = linear.modelText;
  std::memcpy(&model[linear.w1Offset], w1.data(), 4 * w1.size());
  std::memcpy(&model[linear.w2Offset], w2.data(), 4 * w2.size());
  EXPECT_EQ(readText(folder / "out/trained.onnx"), model);
}

// A tensor of the file that is a transpose is not what the weights start as,
// and is saved in its own order.
TEST_F(ProgramTest, SavesTransposes) {
  const uint32_t order[] = {1, 0};
  linear.variables[1].file_order = order;
  Session run(&linear, data());
  ASSERT_EQ(run.code, 0) << run.error();
  ASSERT_EQ(penstock_train(run.run, 2), 0) << run.error();
  ASSERT_EQ(penstock_save(run.run, (folder / "trained.onnx").c_str()), 0)
      << run.error();

  std::vector<float> w1 = linear.w1, w2(linear.w2.size());
  linear.trainSerially(2, 0.05f, w1, w2);
  std::vector<float> transposed;
  for (int o = 0; o < kO; ++o)
    for (int h = 0; h < kH; ++h)
      transposed.push_back(w2[h * kO + o]);
  std::string model = linear.modelText;
  std::memcpy(&model[linear.w1Offset], w1.data(), 4 * w1.size());
  std::memcpy(&model[linear.w2Offset], transposed.data(),
              4 * transposed.size());
  EXPECT_EQ(readText(folder / "trained.onnx"), model);
}

TEST(ModelWriterTest, OrdersAxesAsTheFileHasThem) {
  const int64_t shape[] = {2, 1, 3, 2};
  const uint32_t order[] = {2, 1, 3, 0};
  penstock_variable variable = {};
  variable.type = {PENSTOCK_I16, 4, shape, 24};
  variable.file_order = order;
  const int16_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::vector<char> ordered = penstock::runtime::inFileOrder(
      variable, reinterpret_cast<const char *>(values));
  const int16_t expected[] = {0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11};
  ASSERT_EQ(ordered.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(ordered.data(), expected, sizeof(expected)), 0);
}

TEST_F(ProgramTest, SegmentsAddUpToOneRun) {
  std::vector<std::string> saved;
  for (std::vector<int64_t> parts :
       {std::vector<int64_t>{7}, std::vector<int64_t>{1, 4, 2}}) {
    Session run(&linear, dataAnd({{"log", folder / "log.jsonl"}}));
    ASSERT_EQ(run.code, 0) << run.error();
    for (int64_t part : parts)
      ASSERT_EQ(penstock_train(run.run, part), 0);
    ASSERT_EQ(penstock_save(run.run, (folder / "a.onnx").c_str()), 0)
        << run.error();
    saved.push_back(readText(folder / "a.onnx"));
    EXPECT_EQ(lossesOf(folder / "log.jsonl").size(), 7u);
  }
  EXPECT_EQ(saved[0], saved[1]);
}

TEST_F(ProgramTest, ShuffleDoesNotDependOnDevices) {
  auto losses = [&](const penstock_program *program, const char *seed) {
    Session run(program, dataAnd({{"log", folder / "log.jsonl"},
                                  {"shuffle", ""},
                                  {"seed", seed}}));
    EXPECT_EQ(run.code, 0) << run.error();
    EXPECT_EQ(penstock_train(run.run, 8), 0);
    return lossesOf(folder / "log.jsonl");
  };
  std::vector<double> two = losses(&linear, "11");
  EXPECT_EQ(two.size(), 8u);
  EXPECT_EQ(two, losses(linear.oneDevice(), "11"));
  EXPECT_NE(two, losses(&linear, "12"));
}

TEST_F(ProgramTest, EvaluatesEverySample) {
  Session run(&linear, dataAnd({{"eval-data", "x=" + linear.dataPath},
                                {"eval-labels", linear.labelsPath}}));
  ASSERT_EQ(run.code, 0) << run.error();
  ASSERT_EQ(penstock_train(run.run, 3), 0);
  penstock_results results;
  ASSERT_EQ(penstock_evaluate(run.run, &results), 0) << run.error();
  EXPECT_EQ(results.samples, kSamples);
  EXPECT_EQ(results.samples_left_out, 0);

  std::vector<float> w1 = linear.w1, w2 = linear.w2;
  linear.trainSerially(3, 0.05f, w1, w2);
  double loss = 0, correct = 0;
  for (int i = 0; i < kSamples; ++i) {
    double z[kO] = {};
    for (int j = 0; j < kO; ++j)
      for (int h = 0; h < kH; ++h)
        for (int l = 0; l < kI; ++l)
          z[j] +=
              double(linear.x[i * kI + l]) * w1[l * kH + h] * w2[h * kO + j];
    const float *y = &linear.y[i * kO];
    for (int j = 0; j < kO; ++j)
      loss += (z[j] - y[j]) * (z[j] - y[j]) / (kSamples * kO);
    correct += (z[0] < z[1]) == (y[0] < y[1]);
  }
  EXPECT_NEAR(results.loss, loss, 1e-6);
  EXPECT_DOUBLE_EQ(results.accuracy, correct / kSamples);

  // Training goes on where it was.
  ASSERT_EQ(penstock_train(run.run, 3), 0);
  ASSERT_EQ(penstock_save(run.run, (folder / "a.onnx").c_str()), 0);
  linear.trainSerially(0, 0, w1, w2);
  w1 = linear.w1, w2 = linear.w2;
  linear.trainSerially(6, 0.05f, w1, w2);
  EXPECT_EQ(std::memcmp(readText(folder / "a.onnx").data() + linear.w1Offset,
                        w1.data(), 80),
            0);
}

TEST_F(ProgramTest, VerifiesAgainstTheReplay) {
  Session run(&linear, dataAnd({{"verify", ""}, {"shuffle", ""}}));
  ASSERT_EQ(run.code, 0) << run.error();
  ASSERT_EQ(penstock_train(run.run, 2), 0);
  ASSERT_EQ(penstock_train(run.run, 3), 0);
  EXPECT_EQ(penstock_replay(run.run, 4), 1);
  EXPECT_EQ(run.error(), "the replay covers the whole run of 5 updates");
  EXPECT_EQ(penstock_replay(run.run, 5), 0) << run.error();
}

// A wrong update shows first in the next update's loss.
TEST_F(ProgramTest, NamesTheFirstLossThatDiffers) {
  faults.wrongReplayAt = 1;
  Session run(&linear, dataAnd({{"verify", ""}}));
  ASSERT_EQ(penstock_train(run.run, 4), 0) << run.error();
  EXPECT_EQ(penstock_replay(run.run, 4), 4);
  EXPECT_EQ(run.error().rfind("verify: the loss of update 3, microbatch 0 "
                              "differs: ",
                              0),
            0u)
      << run.error();
}

// A wrong last update shows in a variable only.
TEST_F(ProgramTest, NamesTheFirstVariableThatDiffers) {
  faults.wrongReplayAt = 3;
  Session run(&linear, dataAnd({{"verify", ""}}));
  ASSERT_EQ(penstock_train(run.run, 4), 0) << run.error();
  EXPECT_EQ(penstock_replay(run.run, 4), 4);
  EXPECT_EQ(
      run.error().rfind("verify: element 0 of variable 'w1' differs: ", 0), 0u)
      << run.error();
}

// The replay does the same nothing.
TEST_F(ProgramTest, NamesAWeightThatStandsStill) {
  auto verify = [&](const char *rate) {
    Session run(&linear, dataAnd({{"verify", ""}, {"lr", rate}}));
    EXPECT_EQ(penstock_train(run.run, 3), 0) << run.error();
    int code = penstock_replay(run.run, 3);
    return std::pair(code, code ? run.error() : "");
  };
  faults.updatesNothing = true;
  auto [code, error] = verify("0.05");
  // Only weights that the host can address are looked at while they train.
  std::vector<penstock::runtime::MappedFile> files(1);
  ASSERT_FALSE(files[0].open(linear.modelPath, "model"));
  penstock::runtime::Instance replay(*linear.oneDevice());
  ASSERT_FALSE(replay.open(files, /*isTraced=*/false));
  if (replay.devices().front()->isHostAddressable()) {
    EXPECT_EQ(code, 4);
    EXPECT_EQ(error, "verify: variable 'w1' did not change in 3 updates, but "
                     "its gradient in update 1 and the learning rate of 0.05 "
                     "would move it");
  }
  // So small a rate moves no weight.
  EXPECT_EQ(verify("1e-12").first, 0);
  EXPECT_EQ(verify("0").first, 0);
  // Nor does the rate of its own that a parameter may have.
  linear.replayVariables[2].rate_scale = 1e-12;
  EXPECT_EQ(verify("0.05").first, 0);
  linear.replayVariables[2].rate_scale = 0;
  EXPECT_EQ(verify("0.05").first, 0);
  linear.replayVariables[2].rate_scale = 0.5;
  std::string halved = verify("0.05").second;
  EXPECT_EQ(halved.empty(), error.empty());
  EXPECT_NE(halved.find(halved.empty() ? "" : "learning rate of 0.025 "),
            std::string::npos)
      << halved;
  linear.replayVariables[2].rate_scale = 1;
  faults.updatesNothing = false;
  EXPECT_EQ(verify("0.05").first, 0);
}

// What is in the file afterwards, whoever put it there.
TEST_F(ProgramTest, NamesAFileThatIsNotWhatWasSaved) {
  using namespace penstock::runtime;
  std::vector<MappedFile> files(1);
  ASSERT_FALSE(files[0].open(linear.modelPath, "model"));
  ModelWriter writer(*&linear, files);
  std::string path = folder / "saved.onnx";
  ASSERT_FALSE(writer.check(path));
  auto read = [&](const penstock_variable &variable, const TakePiece &take) {
    const std::vector<float> &values =
        variable.name == std::string_view("w1") ? linear.w1 : linear.w2;
    return take(reinterpret_cast<const char *>(values.data()),
                values.size() * sizeof(float));
  };
  ASSERT_FALSE(writer.write(path, read));
  EXPECT_FALSE(writer.verify(path, read));

  std::string text = readText(path);
  ++text[linear.w2Offset + 3];
  writeText(path, text);
  Error error = writer.verify(path, read);
  ASSERT_TRUE(error);
  EXPECT_EQ(error.text, "verify: '" + path +
                            "' does not hold what training left in variable "
                            "'w2'");
  // Of weights that do not train as well.
  linear.variables[1].frozen = 1;
  EXPECT_TRUE(writer.verify(path, read));
  writeText(path, text.substr(0, linear.w2Offset + 3));
  EXPECT_TRUE(writer.verify(path, read));
}

TEST_F(ProgramTest, TracesEveryAction) {
  {
    Session run(&linear, dataAnd({{"trace", folder / "trace.json"}}));
    ASSERT_EQ(penstock_train(run.run, 3), 0) << run.error();
  }
  std::string trace = readText(folder / "trace.json");
  EXPECT_TRUE(isJson(trace));
  for (const char *name : {"\"F0\"", "\"F11\"", "\"B11\"", "\"U2\""}) {
    int count = 0;
    for (size_t at = 0; (at = trace.find(name, at)) != std::string::npos; ++at)
      ++count;
    EXPECT_EQ(count, 2) << name; // one per stage
  }
  EXPECT_NE(trace.find("\"stage 0 (device 0)\""), std::string::npos);
  EXPECT_NE(trace.find("\"stage 1 (device 1)\""), std::string::npos);
  EXPECT_EQ(trace.find("\"F12\""), std::string::npos);
}

TEST_F(ProgramTest, ChangesTheRate) {
  Session run(&linear, dataAnd({{"lr", "0"}, {"log", folder / "log.jsonl"}}));
  ASSERT_EQ(penstock_train(run.run, 4), 0) << run.error();
  std::vector<double> losses = lossesOf(folder / "log.jsonl");
  EXPECT_EQ(losses[0], losses[2]); // an epoch is two updates
  EXPECT_NE(readText(folder / "log.jsonl").find("\"lr\": 0,"),
            std::string::npos);
}

TEST_F(ProgramTest, EndsWhenTheLossIsNotFinite) {
  faults.infiniteLossAt = 5;
  Session run(&linear, dataAnd({{"log", folder / "log.jsonl"}}));
  EXPECT_EQ(penstock_train(run.run, 3), PENSTOCK_NOT_FINITE);
  // Named where the host addresses the memory of devices; test/e2e knows where.
  std::string error = run.error();
  const std::string stage = ", not finite from stage 1 on";
  if (size_t at = error.find(stage); at != std::string::npos)
    error.erase(at, stage.size());
  EXPECT_EQ(error,
            "the loss is inf at update 2, microbatch 2 of 4: the learning rate "
            "may be too large; after update 3, all weights are finite");
  EXPECT_EQ(penstock_train(run.run, 3), PENSTOCK_NOT_FINITE);
  EXPECT_EQ(lossesOf(folder / "log.jsonl").size(), 3u);
  EXPECT_EQ(penstock_save(run.run, (folder / "saved.onnx").c_str()), 0)
      << run.error();
}

TEST_F(ProgramTest, WarnsOfALossThatIsNotFinite) {
  faults.infiniteLossAt = 5;
  Session run(&linear,
              dataAnd({{"log", folder / "log.jsonl"}, {"on-nan", "warn"}}));
  testing::internal::CaptureStderr();
  ASSERT_EQ(penstock_train(run.run, 3), 0) << run.error();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: the loss is inf at update 2, microbatch 2 of 4: the "
            "learning rate may be too large\n");
  EXPECT_NE(readText(folder / "log.jsonl").find("\"step\": 2, \"loss\": null"),
            std::string::npos);
  EXPECT_EQ(lossesOf(folder / "log.jsonl").size(), 3u);
}

TEST_F(ProgramTest, EndsWithThePositionsWhenNothingMoves) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        faults.hangAtUpdate = 2;
        Session run(&linear, dataAnd({{"watchdog", "1"}}));
        penstock_train(run.run, 4);
      },
      testing::ExitedWithCode(PENSTOCK_WATCHDOG),
      "watchdog: no device made progress for 1 s\n"
      "  device 0: at F9 \\(s0.F\\), waits for message 8 of channel 'h'\n"
      "  device 1: at U1 \\(s1.U\\)\n");
}

TEST_F(ProgramTest, RefusesAChangedModel) {
  std::string changed = linear.modelText;
  changed[linear.w1Offset] ^= 1;
  writeText(linear.modelPath, changed);
  Session run(&linear, data());
  EXPECT_EQ(run.code, 1);
  std::string said = "the model of this program is not there: ";
  EXPECT_EQ(run.error().substr(0, said.size()), said);
  EXPECT_NE(run.error().find("linear.onnx' (No such file or directory), '" +
                             linear.modelPath +
                             "' (is not what was compiled); give the model by "
                             "--model FILE, or compile it again"),
            std::string::npos)
      << run.error();
}

TEST_F(ProgramTest, FindsAModelThatWasMoved) {
  std::string moved = folder / "moved.onnx";
  std::filesystem::rename(linear.modelPath, moved);
  Session run(&linear, dataAnd({{"model", moved}}));
  ASSERT_EQ(run.code, 0) << run.error();
  ASSERT_EQ(penstock_train(run.run, 1), 0);
  // Where it is read from, and not where it was, nothing may be written.
  EXPECT_EQ(penstock_save(run.run, moved.c_str()), 1);
  EXPECT_EQ(penstock_save(run.run, linear.modelPath.c_str()), 0);
  // What was trained has another digest.
  Session other(&linear, dataAnd({{"model", linear.modelPath}}));
  EXPECT_EQ(other.code, 1);
  EXPECT_EQ(other.error(), "the model of this program is not there: '" +
                               linear.modelPath +
                               "' (is not what was compiled); give the model "
                               "by --model FILE, or compile it again");
}

TEST_F(ProgramTest, RefusesAnotherCpu) {
  if (placement.first != std::string("cpu"))
    GTEST_SKIP() << "only the CPU has a name for it";
  penstock_device_descriptor devices[2] = {linear.program.devices[0],
                                           linear.program.devices[1]};
  devices[1].processor = "mill";
  devices[1].features = "+sse2,+fma4,+xop,+unknown-feature,-avx";
  linear.program.devices = devices;
  if (__builtin_cpu_supports("fma4") || __builtin_cpu_supports("xop"))
    GTEST_SKIP();
  Session run(&linear, data());
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.error(),
            "this program was compiled for the CPU 'mill'; this machine lacks "
            "fma4, xop; compile again here, or with another --march");
}

TEST_F(ProgramTest, RefusesDevicesThatAreNotLinked) {
  penstock_device_descriptor devices[2] = {linear.program.devices[0],
                                           linear.program.devices[1]};
  devices[1].kind = "abacus";
  linear.program.devices = devices;
  Session run(&linear, data());
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.error(),
            "this executable was linked without devices of kind 'abacus'");
}

TEST_F(ProgramTest, RefusesWhatDoesNotFit) {
  if (placement.first != std::string("cpu"))
    GTEST_SKIP() << "the memory of the host";
  penstock_device_descriptor devices[2] = {linear.program.devices[0],
                                           linear.program.devices[1]};
  devices[1].arena_bytes = uint64_t(1) << 60;
  linear.program.devices = devices;
  Session run(&linear, data());
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.error().rfind("2 devices need 1152921504606847", 0), 0u)
      << run.error();
}

TEST_F(ProgramTest, RefusesADefectiveDescriptor) {
  linear.channels[2].role = PENSTOCK_CHANNEL_CORRECT;
  Session run(&linear, data());
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.error(), "channel 'loss': this runtime knows no sink "
                         "of role 4 and type float32");
}

TEST_F(ProgramTest, SavesExternalDataIntoAnotherFolder) {
  std::filesystem::create_directory(folder / "in");
  LinearProgram external(folder / "in", LinearProgram::Weights::External);
  auto options = [&](const std::string &target) {
    return std::vector<std::pair<std::string, std::string>>{
        {"data", "x=" + external.dataPath},
        {"labels", external.labelsPath},
        {"save", target}};
  };
  // Beside the input it would overwrite the input's own weights.
  Session beside(&external, options(folder / "in/trained.onnx"));
  EXPECT_EQ(beside.code, 1);
  EXPECT_EQ(beside.error(), "--save: '" + (folder / "in/trained.onnx") +
                                "' would overwrite the model's own weights in "
                                "'" +
                                external.weightsPath +
                                "'; save into another folder");

  std::filesystem::create_directory(folder / "out");
  Session run(&external, options(folder / "out/trained.onnx"));
  ASSERT_EQ(run.code, 0) << run.error();
  ASSERT_EQ(penstock_train(run.run, 2), 0);
  ASSERT_EQ(penstock_save(run.run, (folder / "out/trained.onnx").c_str()), 0)
      << run.error();
  EXPECT_EQ(readText(folder / "out/trained.onnx"), external.modelText);
  std::vector<float> w1 = external.w1, w2 = external.w2;
  external.trainSerially(2, 0.05f, w1, w2);
  std::string weights = external.weightsText;
  std::memcpy(&weights[8], w1.data(), 80);
  std::memcpy(&weights[88], w2.data(), 40);
  EXPECT_EQ(readText(folder / "out/linear.data"), weights);
  // What holds no weights belongs to the model, too.
  EXPECT_EQ(readText(folder / "out/more/indices.data"), external.indicesText);
  EXPECT_EQ(readText(external.weightsPath), external.weightsText);
}

TEST_F(ProgramTest, RefusesToSaveWhereItCannot) {
  auto errorOf = [&](const std::string &path) {
    Session run(&linear, dataAnd({{"save", path}}));
    EXPECT_EQ(run.code, 1);
    return run.error();
  };
  EXPECT_EQ(errorOf(folder / "none/a.onnx"),
            "--save: folder '" + (folder / "none") + "' does not exist");
  EXPECT_EQ(errorOf(folder.path), "--save: '" + folder.path + "' is a folder");
  EXPECT_EQ(errorOf(linear.modelPath),
            "--save: '" + linear.modelPath +
                "' is a file that this program was compiled from; choose "
                "another name");
  // No file was left by any of them.
  EXPECT_EQ(listFiles(folder),
            (std::vector<std::string>{"linear.onnx", "x.npy", "y.npy"}));
}

TEST_F(ProgramTest, RefusesToSaveAVariableThatIsInNoFile) {
  linear.variables[1].file = -1;
  Session run(&linear, dataAnd({{"save", folder / "a.onnx"}}));
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.error(), "--save: variable 'w2' is in no file of the model");
}

} // namespace
