//===- LinearTraining.h - Instances of the linear program -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Segments of training and evaluation, of an instance with all devices or with
// some of them: what they compute has to be the same bits.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_LINEARTRAINING_H
#define PENSTOCK_TEST_UNIT_RUNTIME_LINEARTRAINING_H

#include "LinearProgram.h"
#include "runtime/run/SinkValues.h"

#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace penstock::test {

/// The results of the devices of one or several instances.
struct Results {
  std::vector<float> losses;
  std::vector<char> w1, w2;

  bool operator==(const Results &) const = default;
};

class LinearTraining : public testing::Test {
protected:
  using Instance = runtime::Instance;

  void SetUp() override {
    const penstock_program &program = linear.program;
    ASSERT_FALSE(data.open(program, {{"x", linear.dataPath}}, linear.labelsPath,
                           "data", "labels"));
    ASSERT_FALSE(data.setUpdate(program, kM, runtime::Last::Drop, "data"));
    files.resize(1);
    ASSERT_FALSE(files[0].open(linear.modelPath, "model"));
  }

  void open(Instance &instance) {
    runtime::Error error = instance.open(files, /*isTraced=*/false);
    ASSERT_FALSE(error) << error.text;
  }

  /// Trains, evaluates and trains again.
  void run(Instance &instance, std::vector<float> &losses) {
    struct {
      uint32_t role;
      int64_t first, count, version;
    } segments[] = {{PENSTOCK_SCHEDULE_TRAIN, 0, 60, 0},
                    {PENSTOCK_SCHEDULE_EVALUATE, 0, 7, 60},
                    {PENSTOCK_SCHEDULE_TRAIN, 60, 1, 60},
                    {PENSTOCK_SCHEDULE_TRAIN, 61, 19, 61}};
    runtime::SinkValues values;
    for (auto [role, first, count, version] : segments)
      ASSERT_FALSE(instance.run(*runtime::findSchedule(instance.program, role),
                                first, count, version, data,
                                [&] { values.collect(instance); }));
    for (const runtime::SinkRing::Item &item : values.losses)
      losses.push_back(runtime::toFloat(item));
  }

  std::vector<char> read(const Instance &instance, uint32_t variable) {
    std::vector<char> value(linear.variables[variable].type.bytes);
    instance.read(linear.variables[variable], 80, value.data());
    return value;
  }

  /// All devices in one instance.
  Results runTogether() {
    Instance both(linear.program);
    Results results;
    open(both);
    run(both, results.losses);
    results.w1 = read(both, 0);
    results.w2 = read(both, 1);
    EXPECT_EQ(results.losses.size(), 80 * kM + 7u);
    return results;
  }

  /// Each device in an instance of its own. `watch` is called while they run.
  Results runApart(
      std::unique_ptr<runtime::Transport> firstEnd,
      std::unique_ptr<runtime::Transport> secondEnd,
      const std::function<void(const Instance &first, const Instance &second)>
          &watch = nullptr) {
    Instance first(linear.program, std::move(firstEnd), {true, false});
    Instance second(linear.program, std::move(secondEnd), {false, true});
    Results results;
    std::vector<float> none;
    open(first);
    open(second);
    std::thread one([&] { run(first, none); });
    std::thread other([&] { run(second, results.losses); });
    if (watch)
      watch(first, second);
    one.join();
    other.join();
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(first.devices().size(), 1u);
    EXPECT_EQ(second.devices()[0]->index, 1u);
    results.w1 = read(first, 0);
    results.w2 = read(second, 1);
    return results;
  }

  ScratchFolder folder;
  LinearProgram linear{folder.path};
  runtime::DataSet data;
  std::vector<runtime::MappedFile> files;
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_LINEARTRAINING_H
