//===- DataSetTest.cpp - Which samples a microbatch has -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of samples with and without shuffling, and one case per message
// about arrays that do not fit the program.
//===----------------------------------------------------------------------===//

#include "runtime/io/DataSet.h"
#include "LinearProgram.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

constexpr int64_t kLabelShape[] = {kB};
constexpr int64_t kSamples = LinearProgram::kSamples;

class DataSetTest : public testing::Test {
protected:
  using Files = std::vector<std::pair<std::string, std::string>>;

  std::string errorOf(const Files &files, const std::string &labels) {
    DataSet set;
    Error error = set.open(linear.program, files, labels, "data", "labels");
    if (!error)
      error = set.setUpdate(linear.program, kM, Last::Drop, "data");
    EXPECT_EQ(error.code, 1);
    return error.text;
  }
  template <typename T>
  std::string file(const char *descr, const std::vector<int64_t> &shape) {
    int64_t size = 1;
    for (int64_t extent : shape)
      size *= extent;
    std::vector<T> values(size);
    std::iota(values.begin(), values.end(), T(0));
    writeNpy(folder / "other.npy", descr, shape, values);
    return folder / "other.npy";
  }

  /// The samples of microbatch n, with x[i] = i.
  std::vector<int64_t> gatherSamples(const DataSet &set, int64_t n) {
    float x[kB * kI];
    set.gather(linear.channels[0], set.inputOf(linear.channels[0]), n, x);
    std::vector<int64_t> samples;
    for (int i = 0; i < kB; ++i)
      samples.push_back(int64_t(x[i * kI]) / kI);
    return samples;
  }

  ScratchFolder folder;
  LinearProgram linear{folder.path};
};

TEST_F(DataSetTest, TakesSamplesInOrder) {
  DataSet set;
  writeNpy(linear.labelsPath, "<f4", {30, kO}, std::vector<float>(30 * kO));
  ASSERT_FALSE(set.open(linear.program, {{"x", file<float>("<f4", {30, kI})}},
                        linear.labelsPath, "data", "labels"));
  ASSERT_FALSE(set.setUpdate(linear.program, kM, Last::Drop, "data"));
  EXPECT_EQ(set.usableCount(), 24);
  EXPECT_EQ(gatherSamples(set, 0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(gatherSamples(set, 7), (std::vector<int64_t>{21, 22, 23}));
  // The largest multiple of an update is 24: the rest never comes.
  EXPECT_EQ(gatherSamples(set, 8), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(gatherSamples(set, 8 * 1000000007LL + 1),
            (std::vector<int64_t>{3, 4, 5}));
}

TEST_F(DataSetTest, ShufflesEveryEpochAnew) {
  DataSet set;
  writeNpy(linear.labelsPath, "<f4", {24, kO}, std::vector<float>(24 * kO));
  ASSERT_FALSE(set.open(linear.program, {{"x", file<float>("<f4", {24, kI})}},
                        linear.labelsPath, "data", "labels"));
  ASSERT_FALSE(set.setUpdate(linear.program, kM, Last::Drop, "data"));
  set.setShuffle(9);
  std::vector<std::vector<int64_t>> epochs(2);
  for (int64_t n = 0; n < 16; ++n)
    for (int64_t sample : gatherSamples(set, n))
      epochs[n / 8].push_back(sample);
  EXPECT_NE(epochs[0], epochs[1]);
  for (std::vector<int64_t> &epoch : epochs) {
    EXPECT_FALSE(std::is_sorted(epoch.begin(), epoch.end()));
    std::set<int64_t> all(epoch.begin(), epoch.end());
    EXPECT_EQ(all.size(), 24u);
    EXPECT_EQ(*all.rbegin(), 23);
  }
}

// Samples of files that are not read when they are opened are looked for in
// memory. Those in holes of the file are zero.
TEST_F(DataSetTest, ShufflesALargeFile) {
  constexpr int64_t kSample = kI * sizeof(float), kCount = 30, kSeed = 9;
  constexpr int64_t kLargeSamples = (300 << 20) / kSample;
  std::string x = folder / "x.raw", labels = folder / "labels.raw";
  {
    std::ofstream file(x, std::ios::binary);
    for (int64_t i = 0; i < kCount; i += 2) {
      std::vector<float> row(kI, float(kI * (i + 1)));
      file.seekp(int64_t(permute(i, kLargeSamples, kSeed, 0)) * kSample);
      file.write(reinterpret_cast<const char *>(row.data()), kSample);
    }
    std::ofstream(labels).flush();
  }
  std::filesystem::resize_file(x, kLargeSamples * kSample);
  std::filesystem::resize_file(labels, kLargeSamples * kO * sizeof(float));
  std::string type = ":f32[N," + std::to_string(kI) + "]";
  DataSet set;
  Error error =
      set.open(linear.program, {{"x", x + type}},
               labels + ":f32[N," + std::to_string(kO) + "]", "data", "labels");
  ASSERT_FALSE(error) << error.text;
  ASSERT_FALSE(set.setUpdate(linear.program, kM, Last::Drop, "data"));
  set.setShuffle(kSeed);
  for (int64_t n = 0; n < kCount / kB; ++n) {
    std::vector<int64_t> expected;
    for (int64_t i = n * kB; i < (n + 1) * kB; ++i)
      expected.push_back(i % 2 == 0 ? i + 1 : 0);
    EXPECT_EQ(gatherSamples(set, n), expected) << n;
  }
}

/// With 10 samples, two updates of two microbatches of three have two places
/// too many.
TEST_F(DataSetTest, WrapsTheLastUpdate) {
  DataSet set;
  writeNpy(linear.labelsPath, "<f4", {10, kO}, std::vector<float>(10 * kO));
  ASSERT_FALSE(set.open(linear.program, {{"x", file<float>("<f4", {10, kI})}},
                        linear.labelsPath, "data", "labels"));
  ASSERT_FALSE(set.setUpdate(linear.program, 2, Last::Wrap, "data"));
  EXPECT_EQ(set.usableCount(), 12);
  EXPECT_EQ(gatherSamples(set, 2), (std::vector<int64_t>{6, 7, 8}));
  EXPECT_EQ(gatherSamples(set, 3), (std::vector<int64_t>{9, 0, 1}));
  EXPECT_EQ(gatherSamples(set, 4), (std::vector<int64_t>{0, 1, 2}));
  // Shuffled, the same two stand at both ends of a pass.
  set.setShuffle(9);
  for (int64_t epoch : {0, 1}) {
    std::vector<int64_t> begin = gatherSamples(set, 4 * epoch);
    std::vector<int64_t> end = gatherSamples(set, 4 * epoch + 3);
    EXPECT_EQ(end[1], begin[0]);
    EXPECT_EQ(end[2], begin[1]);
    EXPECT_FALSE(set.isEmpty(4 * epoch + 3));
  }
}

/// The samples of the last update are divided over its microbatches, and what
/// fills these up has a label that does not count.
TEST_F(DataSetTest, PadsTheLastUpdate) {
  linear.channels[1].type = {PENSTOCK_I64, 1, kLabelShape, 8 * kB};
  linear.program.channels = linear.channels.data();
  penstock_range range = {"labels", 0, 10, 1, -100};
  linear.program.ranges = &range;
  std::vector<int64_t> labels(10);
  std::iota(labels.begin(), labels.end(), 0);
  writeNpy(linear.labelsPath, "<i8", {10}, labels);
  Files x = {{"x", file<float>("<f4", {10, kI})}};
  linear.program.range_count = 1;
  DataSet set;
  ASSERT_FALSE(
      set.open(linear.program, x, linear.labelsPath, "data", "labels"));
  ASSERT_FALSE(set.setUpdate(linear.program, 2, Last::Pad, "data"));
  auto labelsOf = [&](int64_t n) {
    std::vector<int64_t> values(kB);
    set.gather(linear.channels[1], set.inputOf(linear.channels[1]), n,
               values.data());
    return values;
  };
  EXPECT_EQ(labelsOf(1), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(labelsOf(2), (std::vector<int64_t>{6, 7, -100}));
  EXPECT_EQ(labelsOf(3), (std::vector<int64_t>{8, 9, -100}));
  EXPECT_EQ(labelsOf(4), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(gatherSamples(set, 2), (std::vector<int64_t>{6, 7, 0}));

  // Fewer samples than microbatches leave some empty.
  ASSERT_FALSE(set.setUpdate(linear.program, 3, Last::Pad, "data"));
  EXPECT_EQ(set.usableCount(), 18);
  EXPECT_EQ(labelsOf(3), (std::vector<int64_t>{9, -100, -100}));
  EXPECT_EQ(labelsOf(4), (std::vector<int64_t>{-100, -100, -100}));
  EXPECT_FALSE(set.isEmpty(3));
  EXPECT_TRUE(set.isEmpty(4));

  // What it needs.
  linear.variables[0].role = PENSTOCK_ROLE_STATISTIC;
  linear.program.variables = linear.variables.data();
  EXPECT_EQ(set.setUpdate(linear.program, 2, Last::Pad, "data").text,
            "--last=pad: 'w1' is a statistic of all samples of a microbatch, "
            "those that fill it up, too; use --last=wrap, or compile with "
            "--batch-norm=frozen");
  linear.program.range_count = 0;
  EXPECT_EQ(set.setUpdate(linear.program, 2, Last::Pad, "data").text,
            "--last=pad: this program has no label that does not count; "
            "compile it with --ignore-label, or use --last=wrap");
}

/// Samples that fill no microbatch are repeated, and the remainder can be taken
/// out again.
TEST_F(DataSetTest, EvaluatesEverySample) {
  DataSet set;
  writeNpy(linear.labelsPath, "<f4", {8, kO}, std::vector<float>(8 * kO));
  ASSERT_FALSE(set.open(linear.program, {{"x", file<float>("<f4", {8, kI})}},
                        linear.labelsPath, "data", "labels"));
  ASSERT_FALSE(set.setEvaluated("eval-data"));
  EXPECT_EQ(set.usableCount(), 4 * kB);
  EXPECT_EQ(gatherSamples(set, 1), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(gatherSamples(set, 2), (std::vector<int64_t>{6, 7, 7}));
  EXPECT_EQ(gatherSamples(set, 3), (std::vector<int64_t>{7, 7, 7}));
  EXPECT_EQ(set.getTail().index, 2);
  EXPECT_EQ(set.getTail().samples, 2);
  EXPECT_EQ(set.getTail().copies, 1);
  EXPECT_EQ(set.getTail().extra, 1);

  DataSet one;
  writeNpy(linear.labelsPath, "<f4", {1, kO}, std::vector<float>(kO));
  ASSERT_FALSE(one.open(linear.program, {{"x", file<float>("<f4", {1, kI})}},
                        linear.labelsPath, "data", "labels"));
  ASSERT_FALSE(one.setEvaluated("eval-data"));
  EXPECT_EQ(one.usableCount(), kB);
  EXPECT_EQ(gatherSamples(one, 0), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(one.getTail().copies, kB);
  EXPECT_EQ(one.getTail().extra, 0);
}

TEST(Permute, IsAPermutationForEverySize) {
  for (uint64_t size : {1, 2, 3, 5, 17, 64, 65, 1000}) {
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < size; ++i)
      images.insert(permute(i, size, 1, size));
    EXPECT_EQ(images.size(), size);
    EXPECT_EQ(*images.rbegin(), size - 1);
  }
  // Recorded: the order is part of a run's numbers.
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < 10; ++i)
    order.push_back(permute(i, 10, 42, 0));
  EXPECT_EQ(order, (std::vector<uint64_t>{9, 2, 4, 8, 7, 6, 1, 3, 0, 5}));
}

TEST_F(DataSetTest, WidensLabels) {
  linear.channels[1].type = {PENSTOCK_I64, 1, kLabelShape, 8 * kB};
  linear.program.channels = linear.channels.data();
  DataSet set;
  Error error = set.open(
      linear.program, {{"x", file<float>("<f4", {24, kI})}},
      [&] {
        writeNpy(linear.labelsPath, "<i4", {24}, std::vector<int32_t>(24, -5));
        return linear.labelsPath;
      }(),
      "data", "labels");
  ASSERT_FALSE(error) << error.text;
  ASSERT_FALSE(set.setUpdate(linear.program, kM, Last::Drop, "data"));
  int64_t labels[kB] = {};
  set.gather(linear.channels[1], set.inputOf(linear.channels[1]), 1, labels);
  for (int64_t label : labels)
    EXPECT_EQ(label, -5);
}

TEST_F(DataSetTest, NamesTheInput) {
  Files x = {{"x", linear.dataPath}};
  EXPECT_EQ(errorOf({}, linear.labelsPath), "--data x=FILE.npy is missing");
  EXPECT_EQ(errorOf(x, ""), "--labels FILE.npy is missing");
  EXPECT_EQ(errorOf({{"z", "a.npy"}}, linear.labelsPath),
            "--data: unknown input 'z', the model's inputs are 'x'");
  EXPECT_EQ(errorOf({x[0], x[0]}, linear.labelsPath),
            "--data: input 'x' is given twice");
  EXPECT_EQ(errorOf({x[0], {"labels", linear.labelsPath}}, linear.labelsPath),
            "--labels: input 'labels' is given twice");
  linear.channels[1].role = PENSTOCK_CHANNEL_INPUT;
  linear.channels[1].endpoint = "x";
  EXPECT_EQ(errorOf(x, linear.labelsPath),
            "--labels: this program takes no labels");
}

TEST_F(DataSetTest, TakesAnInputNamedLabels) {
  DataSet set;
  Error error = set.open(
      linear.program, {{"x", linear.dataPath}, {"labels", linear.labelsPath}},
      "", "data", "labels");
  EXPECT_FALSE(error) << error.text;
}

TEST_F(DataSetTest, NamesSuspects) {
  std::vector<float> values(kSamples * kI);
  values[7 * kI + 1] = NAN;
  writeNpy(folder / "nan.npy", "<f4", {kSamples, kI}, values);
  DataSet set;
  ASSERT_FALSE(set.open(linear.program, {{"x", folder / "nan.npy"}},
                        linear.labelsPath, "data", "labels"));
  ASSERT_FALSE(set.setUpdate(linear.program, 1, Last::Drop, "data"));
  EXPECT_EQ(set.suspects(2, 1),
            "'" + (folder / "nan.npy") + "' holds nan in sample 7");
  EXPECT_EQ(set.suspects(8 + 1, 1), "the learning rate may be too large");
}

TEST_F(DataSetTest, NamesNumbersOutOfRange) {
  const penstock_range range = {"labels", 0, 10, 1, -100};
  linear.program.ranges = &range;
  linear.program.range_count = 1;
  linear.channels[1].type = {PENSTOCK_I64, 1, kLabelShape, 8 * kB};
  linear.program.channels = linear.channels.data();
  Files x = {{"x", linear.dataPath}};
  const std::string legal =
      "; input 'labels' takes numbers in [0, 10) or -100, which is ignored";
  // The data have as many samples as the labels: the last is looked at, too.
  std::vector<int64_t> labels(kSamples, 9);
  labels[1] = -100;
  for (int64_t wrong : {int64_t(10), int64_t(-1), INT64_MIN, INT64_MAX}) {
    labels.back() = wrong;
    writeNpy(linear.labelsPath, "<i8", {kSamples}, labels);
    EXPECT_EQ(errorOf(x, linear.labelsPath),
              "--labels: '" + linear.labelsPath + "' holds " +
                  std::to_string(wrong) + " in sample " +
                  std::to_string(kSamples - 1) + legal);
  }
  std::vector<int32_t> narrow(kSamples, 0);
  narrow[4] = -101;
  writeNpy(linear.labelsPath, "<i4", {kSamples}, narrow);
  EXPECT_EQ(errorOf(x, linear.labelsPath), "--labels: '" + linear.labelsPath +
                                               "' holds -101 in sample 4" +
                                               legal);
  narrow[4] = -100;
  writeNpy(linear.labelsPath, "<i4", {kSamples}, narrow);
  DataSet set;
  Error error =
      set.open(linear.program, x, linear.labelsPath, "data", "labels");
  EXPECT_FALSE(error) << error.text;
}

TEST_F(DataSetTest, NamesPlacesOfNumbersOutOfRange) {
  static constexpr int64_t shape[] = {kB, 2, 5};
  const penstock_range range = {"x", -3, 3, 0, 0};
  linear.program.ranges = &range;
  linear.program.range_count = 1;
  linear.program.channels = linear.channels.data();
  std::vector<uint8_t> bytes(kSamples * 10, 2);
  bytes[7 * 10 + 8] = 255;
  writeNpy(folder / "other.npy", "|u1", {kSamples, 2, 5}, bytes);
  linear.channels[0].type = {PENSTOCK_U8, 3, shape, 10 * kB};
  EXPECT_EQ(errorOf({{"x", folder / "other.npy"}}, linear.labelsPath),
            "--data x: '" + (folder / "other.npy") +
                "' holds 255 in sample 7, at (7, 1, 3); input 'x' takes "
                "numbers in [-3, 3)");
  // What a signed number cannot hold.
  std::vector<uint64_t> wide(kSamples * 10, 0);
  wide[0] = UINT64_MAX;
  writeNpy(folder / "other.npy", "<u8", {kSamples, 2, 5}, wide);
  linear.channels[0].type = {PENSTOCK_U64, 3, shape, 80 * kB};
  EXPECT_EQ(errorOf({{"x", folder / "other.npy"}}, linear.labelsPath),
            "--data x: '" + (folder / "other.npy") +
                "' holds 18446744073709551615 in sample 0, at (0, 0, 0); input "
                "'x' takes numbers in [-3, 3)");
}

TEST_F(DataSetTest, NamesTypesAndShapes) {
  std::string path = file<double>("<f8", {24, kI});
  EXPECT_EQ(errorOf({{"x", path}}, linear.labelsPath),
            "--data x: input 'x' takes float32, '" + path + "' holds float64");
  file<int32_t>("<i4", {24, kI});
  EXPECT_EQ(errorOf({{"x", path}}, linear.labelsPath),
            "--data x: input 'x' takes float32, '" + path + "' holds int32");
  file<float>("<f4", {24, kI + 1});
  EXPECT_EQ(errorOf({{"x", path}}, linear.labelsPath),
            "--data x: input 'x' takes arrays of shape (samples, 4), '" + path +
                "' has (24, 5)");
  file<float>("<f4", {24});
  EXPECT_EQ(errorOf({{"x", path}}, linear.labelsPath),
            "--data x: input 'x' takes arrays of shape (samples, 4), '" + path +
                "' has (24,)");
  file<float>("<f4", {});
  EXPECT_EQ(errorOf({{"x", path}}, linear.labelsPath),
            "--data x: input 'x' takes arrays of shape (samples, 4), '" + path +
                "' has ()");
}

TEST_F(DataSetTest, NamesNumbersOfSamples) {
  std::string path = file<float>("<f4", {24, kI});
  EXPECT_EQ(errorOf({{"x", path}}, linear.labelsPath),
            "'" + path + "' has 24 samples, '" + linear.labelsPath +
                "' has 26");
  path = file<float>("<f4", {11, kI});
  writeNpy(linear.labelsPath, "<f4", {11, kO}, std::vector<float>(11 * kO));
  EXPECT_EQ(errorOf({{"x", path}}, linear.labelsPath),
            "--data: 11 samples do not fill one update of 4 microbatches of "
            "3; --last=wrap fills it up");
  DataSet set;
  path = file<float>("<f4", {2, kI});
  writeNpy(linear.labelsPath, "<f4", {2, kO}, std::vector<float>(2 * kO));
  ASSERT_FALSE(set.open(linear.program, {{"x", path}}, linear.labelsPath,
                        "data", "labels"));
  EXPECT_EQ(set.setUpdate(linear.program, 1, Last::Drop, "eval-data").text,
            "--eval-data: 2 samples do not fill one microbatch of 3; "
            "--last=wrap fills it up");
}

} // namespace
