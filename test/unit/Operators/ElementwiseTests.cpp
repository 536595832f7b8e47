//===- ElementwiseTests.cpp - Elementwise operators at their edges --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Infinities, NaN, signed zeros, ties of rounding, division by zero, overflow.
//===----------------------------------------------------------------------===//

#include "SingleNode.h"

using namespace penstock::test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_ = std::nanf("");

/// One node of one operand of floats; NaN where NaN is expected.
void expectUnary(const char *type, int64_t opset,
                 std::map<std::string, NodeAttribute> attributes,
                 const std::vector<float> &x,
                 const std::vector<float> &expected) {
  Shape shape = {int64_t(x.size())};
  Result result = run(type, opset, std::move(attributes),
                      {tensor<float>(shape, x)}, {{1, shape}});
  ASSERT_EQ(result.error, "") << type;
  std::vector<float> actual = values<float>(result.outputs[0]);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(actual[i])) << type << " of " << x[i];
    else if (actual[i] != expected[i])
      EXPECT_NEAR(actual[i], expected[i], 2e-6 * (1 + std::fabs(expected[i])))
          << type << " of " << x[i];
  }
}

TEST(Elementwise, FunctionsAtTheirEdges) {
  expectUnary("Round", 11, {}, {-2.5f, -1.5f, -.4f, .5f, 1.5f, 2.5f, inf, nan_},
              {-2, -2, -0.0f, 0, 2, 2, inf, nan_});
  expectUnary("Sign", 13, {}, {-inf, -2, 0, 3, nan_}, {-1, -1, 0, 1, nan_});
  expectUnary("Reciprocal", 13, {}, {0, -0.0f, inf, -4}, {inf, -inf, 0, -.25f});
  expectUnary("Sin", 22, {}, {1e10f, -1e5f, inf},
              {std::sin(1e10f), std::sin(-1e5f), nan_});
  expectUnary("Cos", 7, {}, {1e10f, 0, nan_}, {std::cos(1e10f), 1, nan_});
  expectUnary("Atan", 7, {}, {-inf, 0, inf}, {-1.5707964f, 0, 1.5707964f});
  expectUnary("Asin", 7, {}, {-1, 1, 2}, {-1.5707964f, 1.5707964f, nan_});
  expectUnary("Acosh", 9, {}, {1, .5f, inf}, {0, nan_, inf});
  expectUnary("Atanh", 9, {}, {1, -1, 2}, {inf, -inf, nan_});
  expectUnary("Sinh", 22, {}, {-inf, 0, 100}, {-inf, 0, inf});
}

TEST(Elementwise, ActivationsAtTheirEdges) {
  float e = std::exp(-1.0f) - 1;
  std::vector<float> x = {-inf, -200, -1, 0, 3, inf, nan_};
  expectUnary("Elu", 7, {{"alpha", 2.0f}}, x, {-2, -2, 2 * e, 0, 3, inf, nan_});
  expectUnary("Celu", 12, {{"alpha", 2.0f}}, x,
              {-2, -2, 2 * (std::exp(-.5f) - 1), 0, 3, inf, nan_});
  expectUnary("Selu", 22, {{"alpha", 2.0f}, {"gamma", 3.0f}}, x,
              {-6, -6, 6 * e, 0, 9, inf, nan_});
  expectUnary("HardSigmoid", 7, {}, x, {0, 0, .3f, .5f, 1, 1, nan_});
  expectUnary("ThresholdedRelu", 10, {{"alpha", 3.0f}}, x,
              {0, 0, 0, 0, 0, inf, 0});
  expectUnary("Shrink", 9, {{"lambd", 2.0f}, {"bias", 1.0f}}, x,
              {-inf, -199, 0, 0, 2, inf, 0});
  expectUnary("Softsign", 7, {}, {-3, 0, 1, nan_}, {-.75f, 0, .5f, nan_});
  expectUnary("HardSwish", 14, {}, {-4, -3, 0, 1.5f, 4}, {0, 0, 0, 1.125f, 4});
  expectUnary("Mish", 18, {}, {-100, 0, 100}, {0, 0, 100});
  HostTensor a = tensor<float>({2, 2}, {-1, 2, -3, nan_});
  HostTensor slope = tensor<float>({2, 1}, {10, 100});
  Result prelu = run("PRelu", 16, {}, {a, slope}, {{1, {2, 2}}});
  ASSERT_EQ(prelu.error, "");
  std::vector<float> y = values<float>(prelu.outputs[0]);
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 3),
            (std::vector<float>{-10, 2, -300}));
  EXPECT_TRUE(std::isnan(y[3]));
}

TEST(Elementwise, IntegersNeverTrap) {
  HostTensor a = tensor<int32_t>({6}, {7, -7, 7, -7, 5, INT32_MIN});
  HostTensor b = tensor<int32_t>({6}, {3, 3, -3, -3, 0, -1});
  expectExact<int32_t>(run("Div", 14, {}, {a, b}, {{6, {6}}}),
                       {2, -2, -2, 2, 0, INT32_MIN});
  // The sign of the divisor, or of the dividend.
  expectExact<int32_t>(run("Mod", 13, {}, {a, b}, {{6, {6}}}),
                       {1, 2, -2, -1, 0, 0});
  expectExact<int32_t>(
      run("Mod", 13, {{"fmod", int64_t(1)}}, {a, b}, {{6, {6}}}),
      {1, -1, 1, -1, 0, 0});
}

TEST(Elementwise, PowersOfEveryType) {
  HostTensor base = tensor<int32_t>({7}, {2, -3, 0, -1, 5, 2, 1});
  HostTensor power = tensor<int64_t>({7}, {10, 3, 0, -3, -1, 40, 1000000007});
  expectExact<int32_t>(run("Pow", 15, {}, {base, power}, {{6, {7}}}),
                       {1024, -27, 1, -1, 0, 0, 1});
  HostTensor x = tensor<float>({3}, {-2, 0, 4});
  HostTensor whole = tensor<int32_t>({3}, {3, 0, -2});
  expectNear(run("Pow", 15, {}, {x, whole}, {{1, {3}}}), {-8, 1, 0.0625f});
  HostTensor big = tensor<int64_t>({1}, {94906267});
  HostTensor two = tensor<double>({1}, {2});
  expectExact<int64_t>(run("Pow", 15, {}, {big, two}, {{7, {1}}}),
                       {9007199515875288});
}

TEST(Elementwise, BitsOfIntegers) {
  HostTensor a = tensor<int32_t>({4}, {0b1100, -1, 7, 0});
  HostTensor b = tensor<int32_t>({4}, {0b1010, 6, 0, 0});
  expectExact<int32_t>(run("BitwiseAnd", 18, {}, {a, b}, {{6, {4}}}),
                       {0b1000, 6, 0, 0});
  expectExact<int32_t>(run("BitwiseOr", 18, {}, {a, b}, {{6, {4}}}),
                       {0b1110, -1, 7, 0});
  expectExact<int32_t>(run("BitwiseXor", 18, {}, {a, b}, {{6, {4}}}),
                       {0b0110, -7, 7, 0});
  expectExact<int32_t>(run("BitwiseNot", 18, {}, {a}, {{6, {4}}}),
                       {~0b1100, 0, -8, -1});
  // All bits of a byte leave it.
  HostTensor x{"", UINT8, {3}, std::string("\x81\x81\x81")};
  HostTensor by{"", UINT8, {3}, std::string("\x01\x08\xff", 3)};
  for (const char *direction : {"LEFT", "RIGHT"}) {
    Result result = run("BitShift", 11, {{"direction", std::string(direction)}},
                        {x, by}, {{2, {3}}});
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(result.outputs[0].bytes,
              std::string(direction[0] == 'L' ? "\x02\0\0" : "\x40\0\0", 3));
  }
}

TEST(Elementwise, UnsignedIntegersAreNotNegative) {
  HostTensor a{"", UINT8, {3}, std::string("\xc8\xff\x05")};
  HostTensor b{"", UINT8, {3}, std::string("\x64\x02\x06")};
  auto bytes = [&](const char *type) {
    Result result = run(type, 14, {}, {a, b}, {{2, {3}}});
    EXPECT_EQ(result.error, "");
    return result.outputs[0].bytes;
  };
  EXPECT_EQ(bytes("Add"), std::string("\x2c\x01\x0b"));
  EXPECT_EQ(bytes("Sub"), std::string("\x64\xfd\xff"));
  EXPECT_EQ(bytes("Div"), std::string("\x02\x7f\x00", 3));
  EXPECT_EQ(bytes("Max"), std::string("\xc8\xff\x06"));
  expectExact<bool>(run("Less", 13, {}, {a, b}, {{9, {3}}}),
                    {false, false, true});
  expectExact<float>(run("Cast", 13, {{"to", int64_t(1)}}, {a}, {{1, {3}}}),
                     {200, 255, 5});
}

TEST(Elementwise, FindsInfinitiesAndNaN) {
  HostTensor x = tensor<float>({4}, {-inf, inf, nan_, 1});
  expectExact<bool>(run("IsNaN", 13, {}, {x}, {{9, {4}}}),
                    {false, false, true, false});
  expectExact<bool>(
      run("IsInf", 10, {{"detect_negative", int64_t(0)}}, {x}, {{9, {4}}}),
      {false, true, false, false});
  expectExact<bool>(
      run("IsInf", 20, {{"detect_positive", int64_t(0)}}, {x}, {{9, {4}}}),
      {true, false, false, false});
}

TEST(Elementwise, ExtremaOfTruthValues) {
  HostTensor x = tensor<bool>({2, 2}, {true, false, false, false});
  HostTensor axes = tensor<int64_t>({1}, {1});
  expectExact<bool>(run("ReduceMax", 20, {{"keepdims", int64_t(0)}}, {x, axes},
                        {{9, {2}}}, 1),
                    {true, false});
  expectExact<bool>(run("ReduceMin", 20, {{"keepdims", int64_t(0)}}, {x, axes},
                        {{9, {2}}}, 1),
                    {false, false});
}

TEST(Elementwise, LogSumExpStandsExtremes) {
  HostTensor x =
      tensor<float>({4, 2}, {1000, 1000, -1000, -1000, -inf, -inf, inf, 3});
  HostTensor axes = tensor<int64_t>({1}, {1});
  float two = std::log(2.0f);
  expectNear(run("ReduceLogSumExp", 18, {{"keepdims", int64_t(0)}}, {x, axes},
                 {{1, {4}}}, 1),
             {1000 + two, -1000 + two, -inf, inf});
}

} // namespace
