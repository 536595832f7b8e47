//===- CheckpointTest.cpp - Checkpoints of a program written by hand ------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The embedding API writes checkpoints and goes on from them; what is damaged,
// missing or of someone else is refused with a sentence.
//===----------------------------------------------------------------------===//

#include "LinearProgram.h"
#include "Session.h"

#include "runtime/io/CheckpointWriter.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace penstock::test;
using namespace penstock::runtime;
using Names = std::vector<std::string>;

namespace {

/// As a log has them, without times and what is said of a resumed run.
std::string linesOf(const std::string &log) {
  std::string text = readText(log), lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    lines += text.substr(at, text.find(", \"seconds\"", at) - at) + "\n";
    at = end + 1;
  }
  return lines;
}

class CheckpointTest : public testing::Test {
protected:
  Options with(const Options &more) const {
    Options all = {{"data", "x=" + linear.dataPath},
                   {"labels", linear.labelsPath}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Names listOf(const std::string &path) const {
    Names names;
    for (const auto &entry : std::filesystem::directory_iterator(path))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string manifestOf(const std::string &step) const {
    return run + "/" + step + "/manifest.json";
  }
  /// Returns what a program says when it is to go on from `run`.
  std::string errorOf(const Options &options) {
    Session session(&linear, with(options));
    EXPECT_EQ(session.code, PENSTOCK_USER_ERROR);
    return session.error();
  }
  /// Trains so many updates, with a checkpoint after each second one; it is on
  /// the disk before the next is due.
  void train(int64_t updates, const Options &more = {}) {
    Options options = {{"checkpoint-dir", run}, {"checkpoint-every", "2"}};
    options.insert(options.end(), more.begin(), more.end());
    Session session(&linear, with(options));
    ASSERT_EQ(session.code, 0) << session.error();
    for (; updates > 1; updates -= 2) {
      ASSERT_EQ(penstock_train(session.run, 2), 0) << session.error();
      ASSERT_EQ(penstock_checkpoint(session.run, nullptr), 0)
          << session.error();
    }
    ASSERT_EQ(penstock_train(session.run, updates), 0) << session.error();
  }

  ScratchFolder folder;
  LinearProgram linear{folder.path};
  std::string run = folder / "run";
};

TEST_F(CheckpointTest, GoesOnAsIfNothingHadHappened) {
  std::string log = folder / "log.jsonl", whole = folder / "whole.jsonl";
  train(9, {{"log", log}});
  EXPECT_EQ(listOf(run), (Names{"lock", "step-000000006", "step-000000008",
                                "step-000000009"}));
  EXPECT_EQ(listOf(run + "/step-000000008"),
            (Names{"manifest.json", "weights-00000.safetensors",
                   "weights.safetensors.index.json"}));
  // The lines behind the checkpoint were written by a run that died.
  std::string lines = linesOf(log);
  std::filesystem::remove_all(run + "/step-000000008");
  std::filesystem::remove_all(run + "/step-000000009");
  {
    Session session(&linear, with({{"log", log},
                                   {"checkpoint-dir", run},
                                   {"checkpoint-every", "2"},
                                   {"resume", run},
                                   {"verify", ""}}));
    ASSERT_EQ(session.code, 0) << session.error();
    ASSERT_EQ(penstock_train(session.run, 3), 0) << session.error();
    EXPECT_EQ(penstock_replay(session.run, 3), 0) << session.error();
    ASSERT_EQ(penstock_save(session.run, (folder / "two.onnx").c_str()), 0)
        << session.error();
  }
  EXPECT_EQ(linesOf(log), lines);
  EXPECT_NE(readText(log).find("{\"step\": 7, "), std::string::npos);
  EXPECT_NE(readText(log).find(", \"resumed\": true}\n{\"step\": 8, "),
            std::string::npos);
  Session once(&linear, with({{"log", whole}}));
  ASSERT_EQ(penstock_train(once.run, 9), 0) << once.error();
  ASSERT_EQ(penstock_save(once.run, (folder / "one.onnx").c_str()), 0);
  EXPECT_EQ(linesOf(whole), lines);
  EXPECT_EQ(readText(folder / "one.onnx"), readText(folder / "two.onnx"));
}

TEST_F(CheckpointTest, WritesWhenItIsAsked) {
  std::string other = folder / "other";
  {
    Session session(&linear, with({}));
    ASSERT_EQ(session.code, 0) << session.error();
    EXPECT_EQ(penstock_checkpoint(session.run, nullptr), PENSTOCK_USER_ERROR);
    EXPECT_EQ(session.error(),
              "a checkpoint needs a folder, or the option checkpoint-dir");
    ASSERT_EQ(penstock_train(session.run, 3), 0) << session.error();
    ASSERT_EQ(penstock_checkpoint(session.run, other.c_str()), 0)
        << session.error();
    EXPECT_EQ(listOf(other), (Names{"lock", "step-000000003"}));
    ASSERT_EQ(penstock_train(session.run, 1), 0) << session.error();
    ASSERT_EQ(penstock_save(session.run, (folder / "one.onnx").c_str()), 0);
    EXPECT_EQ(penstock_resume(session.run, other.c_str()), PENSTOCK_USER_ERROR);
    EXPECT_EQ(session.error(),
              "a run goes on from a checkpoint before it trains");
  }
  Session session(&linear, with({}));
  ASSERT_EQ(penstock_resume(session.run, other.c_str()), 0) << session.error();
  ASSERT_EQ(penstock_train(session.run, 1), 0) << session.error();
  ASSERT_EQ(penstock_save(session.run, (folder / "two.onnx").c_str()), 0);
  EXPECT_EQ(readText(folder / "one.onnx"), readText(folder / "two.onnx"));
}

// A value that is the transpose of another stands in files in its own order.
TEST_F(CheckpointTest, OrdersAxesAsTheFileHasThem) {
  const uint32_t order[] = {1, 0};
  linear.variables.push_back(linear.variables[1]);
  linear.variables.back().name = "w2.transposed";
  linear.variables.back().of = 3;
  linear.variables.back().file_order = order;
  linear.program.variables = linear.variables.data();
  linear.program.variable_count = 4;
  linear.program.replay = nullptr;
  train(2);
  Checkpoint checkpoint;
  ASSERT_EQ(readCheckpoint(run + "/step-000000002", checkpoint), "");
  ASSERT_EQ(verifyCheckpoint(checkpoint), "");
  ASSERT_EQ(checkpoint.manifest.files.size(), 1u);
  const auto &tensors = checkpoint.manifest.files[0].tensors;
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[1].shape, (std::vector<int64_t>{kH, kO}));
  EXPECT_EQ(tensors[2].shape, (std::vector<int64_t>{kO, kH}));
  MappedFile file;
  ASSERT_EQ(mapCheckpointFile(checkpoint, checkpoint.manifest.files[0], file),
            "");
  for (int h = 0; h < kH; ++h)
    for (int o = 0; o < kO; ++o)
      EXPECT_EQ(std::memcmp(file.data() + tensors[1].offset + 4 * (h * kO + o),
                            file.data() + tensors[2].offset + 4 * (o * kH + h),
                            4),
                0);
  Session session(&linear, with({{"resume", run}}));
  EXPECT_EQ(session.code, 0) << session.error();
}

TEST_F(CheckpointTest, KeepsWhatIsOfOthers) {
  train(4, {{"checkpoint-keep", "1"}});
  EXPECT_EQ(listOf(run), (Names{"lock", "step-000000004"}));
  EXPECT_EQ(errorOf({{"checkpoint-every", "2"}}),
            "--checkpoint-every needs --checkpoint-dir");
  {
    Session session(&linear, with({{"checkpoint-dir", run}}));
    ASSERT_EQ(session.code, 0) << session.error();
    EXPECT_EQ(penstock_train(session.run, 1), PENSTOCK_USER_ERROR);
    EXPECT_EQ(session.error(),
              "--checkpoint-dir: '" + run +
                  "' holds the checkpoints of a run, up to update 4; go on "
                  "with --resume " +
                  run + ", or choose another folder");
    // Two runs, one folder.
    EXPECT_EQ(errorOf({{"checkpoint-dir", run}}),
              "--checkpoint-dir: another run writes into '" + run +
                  "'; choose another folder");
  }
  // What a run that died while it wrote has left goes.
  std::filesystem::create_directory(run + "/step-000000006.part");
  writeText(run + "/step-000000006.part/weights-00000.safetensors", "half");
  std::filesystem::create_directory(run + "/mine.part");
  train(2, {{"resume-if-any", ""}});
  EXPECT_EQ(listOf(run),
            (Names{"lock", "mine.part", "step-000000004", "step-000000006"}));
  Session session(&linear, with({{"checkpoint-dir", run},
                                 {"resume", run + "/step-000000004"}}));
  ASSERT_EQ(session.code, 0) << session.error();
  EXPECT_EQ(penstock_train(session.run, 1), PENSTOCK_USER_ERROR);
  EXPECT_EQ(session.error(), "--checkpoint-dir: '" + run +
                                 "/step-000000006' is later than '" + run +
                                 "/step-000000004', where this run goes on; "
                                 "resume the later one, or choose another "
                                 "folder");
}

TEST_F(CheckpointTest, RefusesWhatIsDamaged) {
  EXPECT_EQ(errorOf({{"resume", run}}),
            "--resume: '" + run + "' holds no checkpoints");
  train(4);
  std::string first = run + "/step-000000002", path = run + "/step-000000004",
              weights = path + "/weights-00000.safetensors";
  std::string way = "; " + first + " is whole: resume with --resume " + first;
  std::string whole = readText(weights),
              manifest = readText(path + "/manifest.json");

  // 1. The values.
  std::string changed = whole;
  changed.back() = char(changed.back() ^ 1);
  writeText(weights, changed);
  EXPECT_EQ(errorOf({{"resume", run}}),
            weights + ": tensor 'w2' is damaged (checksum)" + way);
  writeText(weights, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(errorOf({{"resume", run}}),
            weights + ": it has 247 bytes, and 248 were written" + way);
  std::filesystem::remove(weights);
  EXPECT_EQ(errorOf({{"resume", run}}),
            weights + ": it is missing, and rank 0 wrote it" + way);
  std::filesystem::create_symlink(first + "/weights-00000.safetensors",
                                  weights);
  EXPECT_EQ(errorOf({{"resume", run}}),
            weights + ": it is a symbolic link, which is not followed" + way);
  std::filesystem::remove(weights);
  std::filesystem::copy_file(first + "/weights-00000.safetensors", weights);
  EXPECT_EQ(errorOf({{"resume", run}}),
            weights + ": tensor 'w1' is damaged (checksum)" + way);

  // 2. What is said of them.
  changed = whole;
  changed.replace(changed.find("w2"), 2, "w3");
  writeText(weights, changed);
  EXPECT_EQ(errorOf({{"resume", run}}),
            weights +
                ": its header says otherwise of tensor 'w2' than the "
                "manifest" +
                way);
  writeText(weights, whole);
  changed = manifest;
  changed[changed.find("\"seed\": ") + 8] = '3';
  writeText(path + "/manifest.json", changed);
  EXPECT_EQ(errorOf({{"resume", run}}),
            path + "/manifest.json: it is damaged (checksum)" + way);
  writeText(path + "/manifest.json", manifest.substr(0, 100));
  EXPECT_EQ(errorOf({{"resume", run}}),
            path + "/manifest.json: it is not JSON" + way);
  writeText(path + "/manifest.json", manifest);
  Session session(&linear, with({{"resume", run}}));
  EXPECT_EQ(session.code, 0) << session.error();

  // 3. When nothing is left.
  std::filesystem::remove_all(first);
  writeText(weights, "");
  EXPECT_EQ(errorOf({{"resume", path}}),
            weights + ": it has 0 bytes, and 248 were written; no other "
                      "checkpoint beside it is whole");
}

TEST_F(CheckpointTest, NoticesEveryByteOfTheIndex) {
  train(2);
  std::string path = run + "/step-000000002/" + kIndexName;
  std::string whole = readText(path);
  Checkpoint checkpoint;
  ASSERT_EQ(readCheckpoint(run + "/step-000000002", checkpoint), "");
  EXPECT_EQ(checkIndex(checkpoint), "");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = char(changed[i] ^ (1 << i % 8));
    writeText(path, changed);
    EXPECT_EQ(checkIndex(checkpoint),
              path + ": it is damaged, but no resume reads it");
  }
  EXPECT_EQ(verifyCheckpoint(checkpoint), "");
  std::filesystem::remove(path);
  EXPECT_NE(checkIndex(checkpoint), "");
}

// Each byte of a checkpoint, changed: an error, or the same values.
TEST_F(CheckpointTest, NoticesEveryByte) {
  train(2);
  std::string path = run + "/step-000000002/weights-00000.safetensors";
  std::string whole = readText(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = char(changed[i] ^ (1 << i % 8));
    writeText(path, changed);
    Checkpoint checkpoint;
    ASSERT_EQ(readCheckpoint(run + "/step-000000002", checkpoint), "");
    EXPECT_NE(verifyCheckpoint(checkpoint), "") << "byte " << i;
  }
}

// A file that may not grow stands for a disk that is full.
TEST_F(CheckpointTest, TrainsOnWhereTheDiskIsFull) {
  struct sigaction ignore = {}, former = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, &former);
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  rlimit small = {100, limit.rlim_max};
  std::string expected =
      "the checkpoint of update 2 could not be written: cannot write '" + run +
      "/step-000000002.part/weights-00000.safetensors': File too large";
  {
    Session session(&linear, with({{"checkpoint-dir", run},
                                   {"checkpoint-every", "2"},
                                   {"checkpoint-failure", "stop"}}));
    ASSERT_EQ(session.code, 0) << session.error();
    setrlimit(RLIMIT_FSIZE, &small);
    // It is noticed while something trains.
    int code = 0;
    for (int i = 0; i < 10000 && code == 0; ++i) {
      code = penstock_train(session.run, 2);
      usleep(1000);
    }
    setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_EQ(code, PENSTOCK_USER_ERROR);
    EXPECT_EQ(session.error().substr(0, expected.size()), expected);
  }
  EXPECT_EQ(listOf(run), (Names{"lock"}));
  Session session(&linear,
                  with({{"checkpoint-dir", run}, {"checkpoint-every", "2"}}));
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_EQ(penstock_train(session.run, 4), 0) << session.error();
  EXPECT_EQ(penstock_checkpoint(session.run, nullptr), PENSTOCK_USER_ERROR);
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_EQ(penstock_checkpoint(session.run, nullptr), 0) << session.error();
  EXPECT_EQ(listOf(run), (Names{"lock", "step-000000004"}));
  sigaction(SIGXFSZ, &former, nullptr);
}

TEST_F(CheckpointTest, KeepsNothingThatIsNotFinite) {
  {
    Session session(&linear, with({{"checkpoint-dir", run}, {"lr", "1e30"}}));
    ASSERT_EQ(session.code, 0) << session.error();
    EXPECT_EQ(penstock_train(session.run, 4), PENSTOCK_NOT_FINITE);
    EXPECT_EQ(penstock_checkpoint(session.run, nullptr), PENSTOCK_USER_ERROR);
    EXPECT_EQ(session.error().substr(0, 22), "the checkpoint of upda");
    EXPECT_NE(session.error().find("'w1' is not finite"), std::string::npos);
  }
  EXPECT_EQ(listOf(run), (Names{"lock"}));
}

// A run that came to a step again replaces what is there at once.
TEST_F(CheckpointTest, ReplacesOneOfTheSameStep) {
  train(2);
  std::string path = run + "/step-000000002";
  Checkpoint before;
  ASSERT_EQ(readCheckpoint(path, before), "");
  std::filesystem::create_directory(path + ".part");
  for (const char *name : {"weights-00000.safetensors"})
    std::filesystem::copy_file(path + "/" + name, path + ".part/" + name);
  Manifest manifest = before.manifest;
  std::vector<ManifestFile> files = manifest.files;
  manifest.seed = 77;
  EXPECT_EQ(finishCheckpoint(run, manifest, files), "");
  Checkpoint after;
  ASSERT_EQ(readCheckpoint(path, after), "");
  EXPECT_EQ(after.manifest.seed, 77);
  EXPECT_EQ(verifyCheckpoint(after), "");
  EXPECT_EQ(listOf(run), (Names{"lock", "step-000000002"}));
}
/// The first checkpoint shall not have to wait for the system's pages.
TEST(StagingBlockTest, HasItsPagesBeforeTheyAreNeeded) {
  auto countFaults = [] {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  constexpr uint64_t kBytes = 37 << 20;
  StagingBlock block;
  ASSERT_TRUE(block.open(kBytes));
  block.populate();
  long before = countFaults();
  std::memset(block.data(), 1, kBytes);
  // A fault brings 2 MiB at most.
  EXPECT_LT(countFaults() - before, 4);
  EXPECT_EQ(block.data()[kBytes - 1], 1);
}

TEST(CheckpointFolderTest, KnowsItsNames) {
  EXPECT_EQ(checkpointName(1200), "step-000001200");
  EXPECT_EQ(checkpointName(1234567890123), "step-1234567890123");
  EXPECT_EQ(stepOfName("step-000001200"), 1200);
  EXPECT_EQ(stepOfName("step-1234567890123"), 1234567890123);
  for (const char *name :
       {"step-1200", "step-0000012000", "step-00000120a", "step-00000-120",
        "step-000001200.part", "step-", "steps", "step-99999999999999999999"})
    EXPECT_EQ(stepOfName(name), std::nullopt) << name;
}

} // namespace
