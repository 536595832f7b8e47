//===- IndexingTests.cpp - Positions, in range and out of it --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices that are negative, repeated or out of range; ties and NaN among what
// is searched; axes without elements.
//===----------------------------------------------------------------------===//

#include "SingleNode.h"

using namespace penstock::test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_ = std::nanf("");

/// Equal, with NaN where NaN is.
void expectFloats(const Result &result, const std::vector<float> &expected) {
  ASSERT_EQ(result.error, "");
  std::vector<float> actual = values<float>(result.outputs[0]);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(actual[i])) << "at " << i;
    else
      EXPECT_EQ(actual[i], expected[i]) << "at " << i;
  }
}

TEST(Indexing, GathersRowsFromBothEnds) {
  HostTensor x = tensor<float>(
      {3, 5}, {0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24});
  for (int64_t opset : {7, 11, 13}) {
    HostTensor i = tensor<int64_t>({4}, {2, 0, -1, -3});
    expectFloats(
        run("Gather", opset, {}, {x, i}, {{1, {4, 5}}}),
        {20, 21, 22, 23, 24, 0, 1, 2, 3, 4, 20, 21, 22, 23, 24, 0, 1, 2, 3, 4});
    HostTensor j = tensor<int32_t>({2, 1}, {-5, 3});
    expectFloats(
        run("Gather", opset, {{"axis", int64_t(1)}}, {x, j}, {{1, {3, 2, 1}}}),
        {0, 3, 10, 13, 20, 23});
  }
}

TEST(Indexing, OutOfRangeIsNotANumber) {
  HostTensor x = tensor<float>({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  HostTensor i = tensor<int64_t>({3}, {2, 1, -3});
  expectFloats(run("Gather", 13, {}, {x, i}, {{1, {3, 5}}}),
               {nan_, nan_, nan_, nan_, nan_, 5, 6, 7, 8, 9, nan_, nan_, nan_,
                nan_, nan_});
  HostTensor far = tensor<int64_t>({1, 2}, {INT64_MAX, INT64_MIN});
  expectFloats(run("GatherElements", 13, {{"axis", int64_t(1)}}, {x, far},
                   {{1, {1, 2}}}),
               {nan_, nan_});
  HostTensor whole = tensor<int32_t>({2}, {7, 8});
  expectExact<int32_t>(run("Gather", 13, {}, {whole, i}, {{6, {3}}}),
                       {INT32_MIN, 8, INT32_MIN});
}

TEST(Indexing, UpdatesOutOfRangeAreSeen) {
  HostTensor x = tensor<float>({4}, {1, 2, 3, 4});
  HostTensor i = tensor<int64_t>({3}, {1, 9, -9});
  HostTensor u = tensor<float>({3}, {10, 20, 30});
  for (const char *reduction : {"none", "add"})
    expectFloats(run("ScatterElements", 18,
                     {{"reduction", std::string(reduction)}}, {x, i, u},
                     {{1, {4}}}),
                 {nan_, reduction[0] == 'n' ? 10.0f : 12.0f, 3, nan_});
  HostTensor rows = tensor<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  HostTensor at = tensor<int64_t>({1, 1}, {2});
  HostTensor row = tensor<float>({1, 4}, {0, 0, 0, 0});
  expectFloats(run("ScatterND", 13, {}, {rows, at, row}, {{1, {2, 4}}}),
               {1, 2, 3, 4, nan_, nan_, nan_, nan_});
}

TEST(Indexing, RepeatedUpdatesJoinInTheirOrder) {
  HostTensor x = tensor<float>({3}, {1, 0, 4});
  HostTensor i = tensor<int64_t>({4}, {1, 1, -2, 0});
  HostTensor u = tensor<float>({4}, {0x1p24f, 1, 1, 8});
  const std::pair<const char *, std::vector<float>> kinds[] = {
      {"none", {8, 1, 4}},
      // The ones are lost in 2^24 one by one; in another order they are not.
      {"add", {9, 0x1p24f, 4}},
      {"mul", {8, 0, 4}},
      {"max", {8, 0x1p24f, 4}},
      {"min", {1, 0, 4}}};
  for (const auto &[kind, expected] : kinds)
    expectFloats(run("ScatterElements", 18, {{"reduction", std::string(kind)}},
                     {x, i, u}, {{1, {3}}}),
                 expected);
}

TEST(Indexing, OneHotCountsFromBothEnds) {
  HostTensor i = tensor<int64_t>({4}, {0, -1, 3, 2});
  HostTensor depth = tensor<int64_t>({}, {3});
  HostTensor offAndOn = tensor<float>({2}, {0.5f, 2});
  expectFloats(run("OneHot", 11, {}, {i, depth, offAndOn}, {{1, {4, 3}}}, 1),
               {2, .5, .5, .5, .5, 2, .5, .5, .5, .5, .5, 2});
}

TEST(Indexing, ArgMaxChoosesAmongEqualOnes) {
  HostTensor x = tensor<float>(
      {3, 4}, {3, 1, 3, 2, -inf, -inf, -inf, -inf, 0, nan_, inf, nan_});
  auto argument = [&](const char *type, int64_t last) {
    return run(type, 13,
               {{"axis", int64_t(1)},
                {"keepdims", int64_t(0)},
                {"select_last_index", last}},
               {x}, {{7, {3}}});
  };
  expectExact<int64_t>(argument("ArgMax", 0), {0, 0, 1});
  expectExact<int64_t>(argument("ArgMax", 1), {2, 3, 3});
  expectExact<int64_t>(argument("ArgMin", 0), {1, 0, 1});
  expectExact<int64_t>(argument("ArgMin", 1), {1, 3, 3});
  HostTensor whole = tensor<int64_t>({2, 3}, {5, 5, -1, INT64_MIN, 0, 0});
  expectExact<int64_t>(
      run("ArgMax", 7, {{"axis", int64_t(1)}}, {whole}, {{7, {2, 1}}}), {0, 1});
}

TEST(Indexing, HardmaxHasOneOne) {
  HostTensor x = tensor<float>({2, 3}, {1, 1, 0, -5, -7, -5});
  expectFloats(run("Hardmax", 13, {}, {x}, {{1, {2, 3}}}), {1, 0, 0, 1, 0, 0});
  // Before 13 everything from the axis on is one row.
  expectFloats(run("Hardmax", 11, {{"axis", int64_t(0)}}, {x}, {{1, {2, 3}}}),
               {1, 0, 0, 0, 0, 0});
}

TEST(Indexing, TopKKeepsTheOrderOfEqualOnes) {
  HostTensor x = tensor<float>({5}, {2, nan_, 7, 2, 7});
  HostTensor k = tensor<int64_t>({1}, {4});
  Result largest = run("TopK", 11, {}, {x, k}, {{1, {4}}, {7, {4}}}, 1);
  expectFloats(largest, {nan_, 7, 7, 2});
  EXPECT_EQ(values<int64_t>(largest.outputs[1]),
            (std::vector<int64_t>{1, 2, 4, 0}));
  Result smallest = run("TopK", 11, {{"largest", int64_t(0)}}, {x, k},
                        {{1, {4}}, {7, {4}}}, 1);
  expectFloats(smallest, {2, 2, 7, 7});
  EXPECT_EQ(values<int64_t>(smallest.outputs[1]),
            (std::vector<int64_t>{0, 3, 2, 4}));
  Result first = run("TopK", 7, {{"k", int64_t(1)}}, {x}, {{1, {1}}, {7, {1}}});
  EXPECT_EQ(values<int64_t>(first.outputs[1]), std::vector<int64_t>{1});
}

TEST(Indexing, SumsUpToEachElement) {
  HostTensor x = tensor<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  HostTensor axis = tensor<int32_t>({}, {-1});
  auto sum = [&](int64_t exclusive, int64_t reverse) {
    return run("CumSum", 14, {{"exclusive", exclusive}, {"reverse", reverse}},
               {x, axis}, {{6, {2, 3}}}, 1);
  };
  expectExact<int32_t>(sum(0, 0), {1, 3, 6, 4, 9, 15});
  expectExact<int32_t>(sum(1, 0), {0, 1, 3, 0, 4, 9});
  expectExact<int32_t>(sum(0, 1), {6, 5, 3, 15, 11, 6});
  expectExact<int32_t>(sum(1, 1), {5, 3, 0, 11, 6, 0});
}

//===--- Places that shapes say ---===//

TEST(Indexing, PadsInEveryMode) {
  HostTensor x = tensor<float>({3}, {1, 2, 3});
  HostTensor pads = tensor<int64_t>({2}, {4, 3});
  const std::pair<const char *, std::vector<float>> modes[] = {
      {"constant", {0, 0, 0, 0, 1, 2, 3, 0, 0, 0}},
      {"edge", {1, 1, 1, 1, 1, 2, 3, 3, 3, 3}},
      // Back and forth more than once.
      {"reflect", {1, 2, 3, 2, 1, 2, 3, 2, 1, 2}},
      {"wrap", {3, 1, 2, 3, 1, 2, 3, 1, 2, 3}}};
  for (const auto &[mode, expected] : modes)
    expectFloats(run("Pad", 19, {{"mode", std::string(mode)}}, {x, pads},
                     {{1, {10}}}, 1),
                 expected);
  // Version 2 has attributes; a negative pad takes away.
  expectFloats(run("Pad", 7,
                   {{"pads", std::vector<int64_t>{-1, 2}}, {"value", 5.0f}},
                   {x}, {{1, {4}}}),
               {2, 3, 5, 5});
}

TEST(Indexing, SlicesBackwards) {
  HostTensor x = tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  HostTensor starts = tensor<int64_t>({2}, {-1, 2});
  HostTensor ends = tensor<int64_t>({2}, {-100, -100});
  HostTensor axes = tensor<int64_t>({2}, {0, 1});
  HostTensor steps = tensor<int64_t>({2}, {-1, -2});
  expectFloats(
      run("Slice", 13, {}, {x, starts, ends, axes, steps}, {{1, {2, 2}}}, 1),
      {6, 4, 3, 1});
}

TEST(Indexing, TrianglesOfAnyDiagonal) {
  HostTensor x = tensor<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  auto triangle = [&](int64_t upper, int64_t k) {
    return run("Trilu", 14, {{"upper", upper}}, {x, tensor<int64_t>({}, {k})},
               {{7, {2, 3}}}, 1);
  };
  expectExact<int64_t>(triangle(1, 0), {1, 2, 3, 0, 5, 6});
  expectExact<int64_t>(triangle(0, 1), {1, 2, 0, 4, 5, 6});
  expectExact<int64_t>(triangle(1, 9), {0, 0, 0, 0, 0, 0});
}

//===--- Without elements ---===//

TEST(Indexing, ReducesNothing) {
  HostTensor x = tensor<float>({2, 0}, {});
  HostTensor axes = tensor<int64_t>({1}, {1});
  const std::pair<const char *, float> kinds[] = {
      {"ReduceSum", 0},         {"ReduceProd", 1},      {"ReduceMax", -inf},
      {"ReduceMin", inf},       {"ReduceMean", nan_},   {"ReduceL1", 0},
      {"ReduceL2", 0},          {"ReduceSumSquare", 0}, {"ReduceLogSum", -inf},
      {"ReduceLogSumExp", -inf}};
  for (const auto &[type, expected] : kinds)
    expectFloats(run(type, 20, {}, {x, axes}, {{1, {2, 1}}}, 0),
                 {expected, expected});
}

TEST(Indexing, JoinsAndTakesNothing) {
  HostTensor none = tensor<float>({0, 3}, {});
  HostTensor x = tensor<float>({1, 3}, {1, 2, 3});
  expectFloats(
      run("Concat", 13, {{"axis", int64_t(0)}}, {x, none}, {{1, {1, 3}}}, 1),
      {1, 2, 3});
  // Nothing is at any position of an axis without elements.
  Result result = run("Gather", 13, {{"axis", int64_t(1)}},
                      {tensor<float>({2, 0}, {}), tensor<int64_t>({1}, {0})},
                      {{1, {2, 1}}}, 0);
  EXPECT_NE(result.error.find("out of the range"), std::string::npos);
  // A product over no elements.
  HostTensor a = tensor<float>({2, 0}, {}), b = tensor<float>({0, 3}, {});
  expectFloats(run("MatMul", 13, {}, {a, b}, {{1, {2, 3}}}, 0),
               {0, 0, 0, 0, 0, 0});
}

} // namespace
