//===- ValueTests.cpp - What ONNX's node tests leave out ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One node at a time, at the opset that selects the since-version under test,
// against plain loops here. Sizes are odd and distinct, values small integers
// wherever the result is then exact.
//===----------------------------------------------------------------------===//

#include "SingleNode.h"

using namespace penstock::test;

namespace {

//===--- Broadcasting ---===//

TEST(Values, AddBroadcastsAsNumpy) {
  const std::vector<std::tuple<Shape, Shape, Shape>> cases = {
      {{3, 1, 5}, {7, 1}, {3, 7, 5}},
      {{5}, {3, 7, 5}, {3, 7, 5}},
      {{}, {3, 5}, {3, 5}},
      {{1}, {1, 1}, {1, 1}},
      {{3, 1}, {1, 5}, {3, 5}},
      {{1, 7, 1, 5}, {3, 1, 2, 1}, {3, 7, 2, 5}},
      {{3, 7, 5}, {3, 7, 5}, {3, 7, 5}}};
  for (int64_t opset : {7, 13, 14})
    for (const auto &[a, b, c] : cases) {
      HostTensor x = integers<float>(a, 1), y = integers<float>(b, 2);
      std::vector<float> expected;
      for (int64_t i = 0; i < sizeOf(c); ++i)
        expected.push_back(
            values<float>(x)[positionOf(i, c, stridesFor(a, c.size()))] +
            values<float>(y)[positionOf(i, c, stridesFor(b, c.size()))]);
      expectExact(run("Add", opset, {}, {x, y}, {{1, c}}), expected);
    }
}

TEST(Values, IntegerDivisionTruncates) {
  HostTensor a = tensor<int32_t>({5}, {7, -7, 7, -7, 0});
  HostTensor b = tensor<int32_t>({5}, {2, 2, -2, -2, 3});
  expectExact<int32_t>(run("Div", 14, {}, {a, b}, {{6, {5}}}),
                       {3, -3, -3, 3, 0});
}

TEST(Values, DoublesStayDoubles) {
  HostTensor a = tensor<double>({3}, {1.0, 1e-17, 0.1});
  HostTensor b = tensor<double>({3}, {0x1p-40, 1.0, 0.2});
  expectExact<double>(run("Add", 13, {}, {a, b}, {{11, {3}}}),
                      {1.0 + 0x1p-40, 1e-17 + 1.0, 0.1 + 0.2});
}

//===--- Contractions ---===//

TEST(Values, MatMulBroadcastsItsLeadingAxes) {
  const std::vector<std::tuple<Shape, Shape, Shape>> cases = {
      {{7}, {7}, {}},
      {{7}, {7, 3}, {3}},
      {{5, 7}, {7}, {5}},
      {{2, 5, 7}, {7, 3}, {2, 5, 3}},
      {{5, 7}, {2, 7, 3}, {2, 5, 3}},
      {{7}, {2, 7, 3}, {2, 3}},
      {{2, 5, 7}, {7}, {2, 5}},
      {{2, 1, 5, 7}, {4, 7, 3}, {2, 4, 5, 3}},
      {{2, 1, 5, 7}, {1, 4, 7, 3}, {2, 4, 5, 3}},
      {{1, 5, 7}, {1, 7, 3}, {1, 5, 3}},
      {{4, 5, 7}, {1, 7, 3}, {4, 5, 3}},
      {{6, 1, 5, 7}, {6, 1, 7, 3}, {6, 1, 5, 3}}};
  for (int64_t opset : {7, 9, 13})
    for (const auto &[shapeA, shapeB, shapeC] : cases) {
      HostTensor a = integers<float>(shapeA, 1), b = integers<float>(shapeB, 2);
      std::vector<float> valuesA = values<float>(a), valuesB = values<float>(b);
      Shape fullA = shapeA, fullB = shapeB, fullC = shapeC;
      if (shapeA.size() == 1)
        fullA.insert(fullA.begin(), 1);
      if (shapeB.size() == 1)
        fullB.push_back(1);
      if (shapeA.size() == 1)
        fullC.insert(fullC.end() - (shapeB.size() > 1), 1);
      if (shapeB.size() == 1)
        fullC.push_back(1);
      int64_t m = fullA[fullA.size() - 2], k = fullA.back(), n = fullB.back();
      Shape batchA(fullA.begin(), fullA.end() - 2);
      Shape batchB(fullB.begin(), fullB.end() - 2);
      Shape batchC(fullC.begin(), fullC.end() - 2);
      std::vector<float> expected;
      for (int64_t i = 0; i < sizeOf(batchC); ++i) {
        int64_t atA =
            positionOf(i, batchC, stridesFor(batchA, batchC.size())) * m * k;
        int64_t atB =
            positionOf(i, batchC, stridesFor(batchB, batchC.size())) * k * n;
        for (int64_t row = 0; row < m; ++row)
          for (int64_t column = 0; column < n; ++column) {
            float sum = 0;
            for (int64_t l = 0; l < k; ++l)
              sum += valuesA[atA + row * k + l] * valuesB[atB + l * n + column];
            expected.push_back(sum);
          }
      }
      expectExact(run("MatMul", opset, {}, {a, b}, {{1, shapeC}}), expected);
    }
}

TEST(Values, GemmTransposesScalesAndAddsItsBias) {
  const int64_t m = 5, n = 3, k = 7;
  for (int64_t opset : {7, 9, 11, 13})
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (const Shape &shapeC : {Shape{}, Shape{1}, Shape{n}, Shape{1, n},
                                    Shape{m, 1}, Shape{m, n}}) {
          HostTensor a = integers<float>(transA ? Shape{k, m} : Shape{m, k}, 1);
          HostTensor b = integers<float>(transB ? Shape{n, k} : Shape{k, n}, 2);
          HostTensor c = integers<float>(shapeC, 3);
          std::vector<float> va = values<float>(a), vb = values<float>(b),
                             vc = values<float>(c), expected;
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              float sum = 0;
              for (int64_t l = 0; l < k; ++l)
                sum += va[transA ? l * m + i : i * k + l] *
                       vb[transB ? j * k + l : l * n + j];
              expected.push_back(
                  0.5f * sum +
                  2 * vc[positionOf(i * n + j, {m, n}, stridesFor(shapeC, 2))]);
            }
          expectExact(run("Gemm", opset,
                          {{"alpha", 0.5f},
                           {"beta", 2.0f},
                           {"transA", int64_t(transA)},
                           {"transB", int64_t(transB)}},
                          {a, b, c}, {{1, {m, n}}}),
                      expected);
        }
}

//===--- Reductions ---===//

TEST(Values, ReductionsTakeAxesAsTheirVersionSays) {
  const Shape shape = {2, 3, 5};
  HostTensor x = integers<float>(shape, 1);
  struct Version {
    const char *type;
    int64_t opset;
    bool operand;
  };
  for (const Version &version : {Version{"ReduceSum", 7, false},
                                 {"ReduceSum", 11, false},
                                 {"ReduceSum", 13, true},
                                 {"ReduceMean", 7, false},
                                 {"ReduceMean", 11, false},
                                 {"ReduceMean", 13, false},
                                 {"ReduceMean", 18, true},
                                 {"ReduceMean", 23, true}})
    for (const std::vector<int64_t> &axes :
         {std::vector<int64_t>{1}, {0, 2}, {2, 0}, {-1}, {}})
      for (int64_t keep : {0, 1}) {
        bool reduced[3] = {axes.empty(), axes.empty(), axes.empty()};
        for (int64_t axis : axes)
          reduced[axis < 0 ? axis + 3 : axis] = true;
        Shape kept, result;
        int64_t count = 1;
        for (int d = 0; d < 3; ++d) {
          kept.push_back(reduced[d] ? 1 : shape[d]);
          count *= reduced[d] ? shape[d] : 1;
          if (!reduced[d] || keep)
            result.push_back(kept.back());
        }
        std::vector<float> expected(sizeOf(kept), 0);
        for (int64_t i = 0; i < sizeOf(shape); ++i)
          expected[positionOf(i, shape, stridesFor(kept, 3))] +=
              values<float>(x)[i];
        if (std::string(version.type) == "ReduceMean")
          for (float &sum : expected)
            sum /= count;
        std::map<std::string, NodeAttribute> attributes = {{"keepdims", keep}};
        std::vector<HostTensor> operands = {x};
        if (!axes.empty() && version.operand)
          operands.push_back(tensor<int64_t>({int64_t(axes.size())}, axes));
        else if (!axes.empty())
          attributes["axes"] = axes;
        expectExact(run(version.type, version.opset, attributes, operands,
                        {{1, result}}, 1),
                    expected);
      }
}

TEST(Values, NoAxesMayMeanNothing) {
  HostTensor x = integers<float>({3, 5}, 1);
  HostTensor none = tensor<int64_t>({0}, {});
  for (const char *type : {"ReduceSum", "ReduceMean"})
    expectExact(run(type, 18, {{"noop_with_empty_axes", int64_t(1)}}, {x, none},
                    {{1, {3, 5}}}, 1),
                values<float>(x));
}

//===--- Softmax and losses ---===//

/// Softmax of `rows` rows, in doubles.
std::vector<float> softmax(const std::vector<float> &x, int64_t columns,
                           bool log) {
  std::vector<float> result;
  for (size_t row = 0; row < x.size(); row += columns) {
    double sum = 0, max = x[row];
    for (int64_t i = 0; i < columns; ++i)
      max = std::max<double>(max, x[row + i]);
    for (int64_t i = 0; i < columns; ++i)
      sum += std::exp(x[row + i] - max);
    for (int64_t i = 0; i < columns; ++i) {
      double value = x[row + i] - max - std::log(sum);
      result.push_back(static_cast<float>(log ? value : std::exp(value)));
    }
  }
  return result;
}

TEST(Values, SoftmaxBefore13CutsItsOperandIntoAMatrix) {
  HostTensor x = integers<float>({2, 3, 5}, 1);
  for (int64_t opset : {7, 11})
    for (bool log : {false, true})
      for (auto [axis, columns] :
           {std::pair<int64_t, int64_t>{0, 30}, {1, 15}, {2, 5}, {3, 1}})
        expectNear(run(log ? "LogSoftmax" : "Softmax", opset, {{"axis", axis}},
                       {x}, {{1, {2, 3, 5}}}),
                   softmax(values<float>(x), columns, log));
  // Their default axis is 1; since 13 it is the last one alone.
  expectNear(run("Softmax", 11, {}, {x}, {{1, {2, 3, 5}}}),
             softmax(values<float>(x), 15, false));
  expectNear(run("Softmax", 13, {}, {x}, {{1, {2, 3, 5}}}),
             softmax(values<float>(x), 5, false));
}

TEST(Values, LogSoftmaxStandsExtremes) {
  HostTensor x = tensor<float>({1, 3}, {1000, 0, -1000});
  expectNear(run("LogSoftmax", 13, {}, {x}, {{1, {1, 3}}}), {0, -1000, -2000});
}

TEST(Values, CrossEntropyStandsExtremesAndIgnores) {
  HostTensor x = tensor<float>({3, 2}, {1000, 0, 0, 1000, 3, 3});
  HostTensor y = tensor<int64_t>({3}, {1, 1, -7});
  for (const char *reduction : {"mean", "sum"})
    expectNear(run("SoftmaxCrossEntropyLoss", 13,
                   {{"reduction", std::string(reduction)},
                    {"ignore_index", int64_t(-7)}},
                   {x, y}, {{1, {}}}),
               {reduction[0] == 'm' ? 500.0f : 1000.0f});
  expectNear(
      run("SoftmaxCrossEntropyLoss", 12,
          {{"reduction", std::string("none")}, {"ignore_index", int64_t(-7)}},
          {x, y}, {{1, {3}}}),
      {1000, 0, 0});
}

TEST(Values, ALabelOfNoClassIsNotANumber) {
  HostTensor x = integers<float>({3, 2}, 1);
  for (const char *reduction : {"mean", "sum"})
    for (int64_t label : {2, -1}) {
      HostTensor y = tensor<int64_t>({3}, {1, label, 0});
      Result result =
          run("SoftmaxCrossEntropyLoss", 13,
              {{"reduction", std::string(reduction)}}, {x, y}, {{1, {}}});
      ASSERT_EQ(result.error, "");
      EXPECT_TRUE(std::isnan(values<float>(result.outputs[0])[0]));
    }
}

//===--- Activations ---===//

TEST(Values, ActivationsAtTheirEdges) {
  float inf = std::numeric_limits<float>::infinity();
  HostTensor x = tensor<float>({6}, {-inf, -200, -1, 0, 200, inf});
  expectNear(run("Relu", 7, {}, {x}, {{1, {6}}}), {0, 0, 0, 0, 200, inf});
  expectNear(run("LeakyRelu", 7, {}, {x}, {{1, {6}}}),
             {-inf, -2, -0.01f, 0, 200, inf});
  expectNear(run("LeakyRelu", 16, {{"alpha", 0.25f}}, {x}, {{1, {6}}}),
             {-inf, -50, -0.25f, 0, 200, inf});
  expectNear(run("Softplus", 7, {}, {x}, {{1, {6}}}),
             {0, 0, 0.31326169f, 0.69314718f, 200, inf});
  float e = std::exp(1.0f);
  std::vector<float> sigmoid =
      values<float>(run("Sigmoid", 13, {}, {x}, {{1, {6}}}).outputs[0]);
  EXPECT_EQ(sigmoid[0], 0);
  EXPECT_NEAR(sigmoid[2], 1 / (1 + e), 1e-7);
  EXPECT_EQ(sigmoid[3], 0.5f);
  EXPECT_EQ(sigmoid[5], 1);
  HostTensor nan = tensor<float>({1}, {std::nanf("")});
  for (const char *type : {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Softplus"})
    EXPECT_TRUE(std::isnan(
        values<float>(run(type, 7, {}, {nan}, {{1, {1}}}).outputs[0])[0]))
        << type;
}

//===--- Shapes and types ---===//

TEST(Values, AxesOfSqueezeAreAnAttributeBefore13) {
  HostTensor x = integers<float>({1, 3, 1, 5}, 1);
  std::vector<int64_t> axes = {0, 2};
  for (int64_t opset : {7, 11})
    expectExact(run("Squeeze", opset, {{"axes", axes}}, {x}, {{1, {3, 5}}}),
                values<float>(x));
  expectExact(run("Squeeze", 7, {}, {x}, {{1, {3, 5}}}), values<float>(x));
  HostTensor operand = tensor<int64_t>({2}, {-4, 2});
  for (int64_t opset : {13, 21, 23})
    expectExact(run("Squeeze", opset, {}, {x, operand}, {{1, {3, 5}}}, 1),
                values<float>(x));
  HostTensor y = integers<float>({3, 5}, 1);
  for (int64_t opset : {7, 11})
    expectExact(
        run("Unsqueeze", opset, {{"axes", axes}}, {y}, {{1, {1, 3, 1, 5}}}),
        values<float>(y));
}

TEST(Values, CastConverts) {
  auto cast = [](const HostTensor &from, int64_t to) {
    return run("Cast", 13, {{"to", to}}, {from}, {{to, from.shape}});
  };
  HostTensor floats = tensor<float>({5}, {-2.7f, -0.5f, 0.0f, 0.5f, 2.7f});
  expectExact<int64_t>(cast(floats, 7), {-2, 0, 0, 0, 2});
  expectExact<bool>(cast(floats, 9), {true, true, false, true, true});
  expectExact<double>(cast(floats, 11), {-2.7f, -0.5, 0, 0.5, 2.7f});
  HostTensor bools = tensor<bool>({2}, {true, false});
  expectExact<float>(cast(bools, 1), {1, 0});
  expectExact<int32_t>(cast(bools, 6), {1, 0});
  HostTensor whole = tensor<int64_t>({3}, {-3, 0, 5000000000});
  expectExact<float>(cast(whole, 1), {-3, 0, 5e9f});
  expectExact<int32_t>(cast(whole, 6), {-3, 0, 705032704});
  // To the nearest, ties to even.
  HostTensor ties = tensor<float>({3}, {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, -1.0f});
  expectExact<uint16_t>(cast(ties, 16), {0x3f80, 0x3f82, 0xbf80});
}

TEST(Values, TransposeMovesEveryAxis) {
  HostTensor x = integers<float>({2, 3, 5}, 1);
  std::vector<float> expected;
  for (int64_t c = 0; c < 5; ++c)
    for (int64_t a = 0; a < 2; ++a)
      for (int64_t b = 0; b < 3; ++b)
        expected.push_back(values<float>(x)[(a * 3 + b) * 5 + c]);
  for (int64_t opset : {7, 13, 21, 23})
    expectExact(run("Transpose", opset,
                    {{"perm", std::vector<int64_t>{2, 0, 1}}}, {x},
                    {{1, {5, 2, 3}}}),
                expected);
}

TEST(Values, SplitMayBeUnevenSince18) {
  HostTensor x = integers<float>({7}, 1);
  Result result = run("Split", 18, {{"num_outputs", int64_t(3)}}, {x},
                      {{1, {3}}, {1, {3}}, {1, {1}}});
  ASSERT_EQ(result.error, "");
  std::vector<float> all = values<float>(x);
  EXPECT_EQ(values<float>(result.outputs[1]),
            std::vector<float>(all.begin() + 3, all.begin() + 6));
  EXPECT_EQ(values<float>(result.outputs[2]), std::vector<float>{all[6]});
}

} // namespace
