//===- ProductTests.cpp - Values of Einsum, FusedMatMul, Attention --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Against loops over all indices. Sums of products of small integers are exact,
// whatever the order.
//===----------------------------------------------------------------------===//

#include "SingleNode.h"

#include <functional>

using namespace penstock::test;

namespace {

//===--- Einsum ---===//

/// Evaluates an equation of letters, axis sizes by letter: every index of all
/// letters adds one product.
std::vector<float> einsum(const std::vector<std::string> &terms,
                          const std::string &result,
                          const std::map<char, int64_t> &sizes,
                          const std::vector<HostTensor> &operands) {
  int64_t points = 1, outputs = 1;
  for (auto [letter, size] : sizes)
    points *= size;
  for (char letter : result)
    outputs *= sizes.at(letter);
  std::vector<std::vector<float>> data;
  for (const HostTensor &operand : operands)
    data.push_back(values<float>(operand));
  std::vector<float> sums(outputs, 0);
  for (int64_t point = 0; point < points; ++point) {
    std::map<char, int64_t> index;
    int64_t rest = point;
    for (auto [letter, size] : sizes) {
      index[letter] = rest % size;
      rest /= size;
    }
    auto at = [&](const std::string &letters, const Shape *shape) {
      int64_t position = 0;
      for (size_t i = 0; i < letters.size(); ++i) {
        int64_t size = shape ? (*shape)[i] : sizes.at(letters[i]);
        position = position * size + (size == 1 ? 0 : index[letters[i]]);
      }
      return position;
    };
    float product = 1;
    for (size_t i = 0; i < terms.size(); ++i)
      product *= data[i][at(terms[i], &operands[i].shape)];
    sums[at(result, nullptr)] += product;
  }
  return sums;
}

struct EinsumCase {
  const char *equation;
  /// The same with letters instead of ellipses and spaces.
  std::vector<std::string> terms;
  const char *result;
};

TEST(Einsum, MultipliesAndSumsByLetter) {
  const std::map<char, int64_t> all = {{'b', 2}, {'c', 4}, {'h', 3}, {'i', 5},
                                       {'j', 7}, {'k', 6}, {'x', 3}, {'y', 2}};
  const EinsumCase cases[] = {
      {"ij,jk->ik", {"ij", "jk"}, "ik"},
      {"ij,jk", {"ij", "jk"}, "ik"},
      {"kj,ik->ji", {"kj", "ik"}, "ji"},
      {"bij , bjk -> bik", {"bij", "bjk"}, "bik"},
      // Heads between batch and sequence, as attention has them.
      {"bihk,bjhk->bhij", {"bihk", "bjhk"}, "bhij"},
      {"bhij,bjhk->bihk", {"bhij", "bjhk"}, "bihk"},
      {"i,j->ij", {"i", "j"}, "ij"},
      {"i,i->", {"i", "i"}, ""},
      {"ij,ij->", {"ij", "ij"}, ""},
      {"ij->ji", {"ij"}, "ji"},
      {"ji", {"ji"}, "ij"},
      {"ijk->j", {"ijk"}, "j"},
      {"...ij,...jk->...ik", {"xyij", "xyjk"}, "xyik"},
      {"...ij,jk", {"xyij", "jk"}, "xyik"},
      {"...j->...", {"xyj"}, "xy"},
      // Two dimensions summed over, in other orders; three that stay.
      {"ijk,kjc->ic", {"ijk", "kjc"}, "ic"},
      {"icj,kjh->hick", {"icj", "kjh"}, "hick"},
      {"bchi,cjhk->bjik", {"bchi", "cjhk"}, "bjik"},
      // One operand's own letter is summed before.
      {"ijc,jk->ik", {"ijc", "jk"}, "ik"},
      // Chains.
      {"ij,jk,kc->ic", {"ij", "jk", "kc"}, "ic"},
      {"bi,ij,bj->b", {"bi", "ij", "bj"}, "b"},
      {"i,j,k->jik", {"i", "j", "k"}, "jik"}};
  for (const EinsumCase &test : cases) {
    std::map<char, int64_t> sizes;
    std::vector<HostTensor> operands;
    for (const std::string &term : test.terms) {
      Shape shape;
      for (char letter : term) {
        sizes[letter] = all.at(letter);
        shape.push_back(all.at(letter));
      }
      operands.push_back(integers<float>(shape, int(operands.size()) + 1));
    }
    Shape result;
    for (const char *letter = test.result; *letter; ++letter)
      result.push_back(all.at(*letter));
    SCOPED_TRACE(test.equation);
    expectExact(run("Einsum", 12, {{"equation", std::string(test.equation)}},
                    operands, {{1, result}}),
                einsum(test.terms, test.result, sizes, operands));
  }
}

TEST(Einsum, TakesDiagonals) {
  HostTensor a = integers<float>({2, 3, 3}, 1), b = integers<float>({3, 3}, 2);
  const std::map<char, int64_t> sizes = {{'b', 2}, {'i', 3}};
  expectExact(run("Einsum", 12, {{"equation", std::string("bii->bi")}}, {a},
                  {{1, {2, 3}}}),
              einsum({"bii"}, "bi", sizes, {a}));
  expectExact(
      run("Einsum", 12, {{"equation", std::string("ii->")}}, {b}, {{1, {}}}),
      einsum({"ii"}, "", {{'i', 3}}, {b}));
  expectExact(run("Einsum", 12, {{"equation", std::string("bii,ii->b")}},
                  {a, b}, {{1, {2}}}),
              einsum({"bii", "ii"}, "b", sizes, {a, b}));
}

TEST(Einsum, RepeatsAxesOfOne) {
  HostTensor a = integers<float>({2, 1, 5}, 1),
             b = integers<float>({1, 3, 5}, 2);
  const std::map<char, int64_t> sizes = {{'x', 2}, {'y', 3}, {'i', 5}};
  for (const char *equation : {"...i,...i->...", "xyi,xyi->xy"})
    expectExact(run("Einsum", 12, {{"equation", std::string(equation)}}, {a, b},
                    {{1, {2, 3}}}),
                einsum({"xyi", "xyi"}, "xy", sizes, {a, b}));
}

TEST(Einsum, SaysWhatIsWrong) {
  HostTensor a = integers<float>({2, 3}, 1), b = integers<float>({5, 7}, 2);
  const std::pair<const char *, const char *> cases[] = {
      {"ij,jk->ik", "has the name of one of size 3"},
      {"ij->ij", "has 1 terms, the node 2 operands"},
      {"ijk,jk->ik", "names 3 axes, its operand has 2"},
      {"ij,kl->im", "the result names axes of operands, each once"},
      {"ij,kl->ii", "the result names axes of operands, each once"},
      {"i1,kl->i", "terms of letters with at most one ellipsis each"}};
  for (auto [equation, message] : cases) {
    Result result = run("Einsum", 12, {{"equation", std::string(equation)}},
                        {a, b}, {{1, {2, 7}}});
    EXPECT_NE(result.error.find(message), std::string::npos)
        << equation << ": " << result.error;
  }
}

TEST(FusedMatMul, TransposesAndScales) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (bool batched : {false, true}) {
        HostTensor a =
            integers<float>(transA ? Shape{3, 7, 5} : Shape{3, 5, 7}, 1);
        Shape shapeB = transB ? Shape{4, 7} : Shape{7, 4};
        if (batched)
          shapeB.insert(shapeB.begin(), 3);
        HostTensor b = integers<float>(shapeB, 2);
        std::vector<float> expected =
            einsum({transA ? "bki" : "bik",
                    std::string(batched ? "b" : "") + (transB ? "jk" : "kj")},
                   "bij", {{'b', 3}, {'i', 5}, {'j', 4}, {'k', 7}}, {a, b});
        for (float &value : expected)
          value *= 0.5f;
        expectExact(run("FusedMatMul", 17,
                        {{"transA", int64_t(transA)},
                         {"transB", int64_t(transB)},
                         {"alpha", 0.5f}},
                        {a, b}, {{1, {3, 5, 4}}}, 99, "com.microsoft"),
                    expected);
      }
}

//===--- Attention ---===//

/// Heads first: q [B, H, Q, D], k [B, G, K, D], v [B, G, K, E].
struct Heads {
  int64_t batch = 2, heads = 6, groups = 3, queries = 5, keys = 7, size = 4,
          valueSize = 3;
  double scale = 0.5, softcap = 0;
  bool isCausal = false;
  /// The addend of a score.
  std::function<double(int64_t b, int64_t h, int64_t q, int64_t k)> bias;
  /// Operands are [batch, sequence, heads * size].
  bool isFlat = false;

  int64_t at(int64_t b, int64_t h, int64_t s, int64_t e, int64_t heads,
             int64_t length, int64_t size) const {
    return isFlat ? ((b * length + s) * heads + h) * size + e
                  : ((b * heads + h) * length + s) * size + e;
  }
  Shape shape(int64_t heads, int64_t length, int64_t size) const {
    return isFlat ? Shape{batch, length, heads * size}
                  : Shape{batch, heads, length, size};
  }
  std::vector<float> compute(const std::vector<float> &q,
                             const std::vector<float> &k,
                             const std::vector<float> &v) const;
};

std::vector<float> Heads::compute(const std::vector<float> &q,
                                  const std::vector<float> &k,
                                  const std::vector<float> &v) const {
  std::vector<float> result(batch * heads * queries * valueSize);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        int64_t g = h / (heads / groups);
        std::vector<double> p;
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < size; ++d)
            score += double(q[at(b, h, i, d, heads, queries, size)]) *
                     k[at(b, g, j, d, groups, keys, size)];
          score *= scale;
          if (softcap != 0)
            score = std::tanh(score / softcap) * softcap;
          if (bias)
            score += bias(b, h, i, j);
          if (isCausal && j > i)
            score = -INFINITY;
          p.push_back(score);
          largest = std::max(largest, score);
        }
        for (double &x : p)
          sum += x = largest == -INFINITY ? 0 : std::exp(x - largest);
        for (int64_t e = 0; e < valueSize; ++e) {
          double total = 0;
          for (int64_t j = 0; j < keys && sum > 0; ++j)
            total += p[j] / sum * v[at(b, g, j, e, groups, keys, valueSize)];
          result[at(b, h, i, e, heads, queries, valueSize)] = float(total);
        }
      }
  return result;
}

void expectAttention(const Heads &heads, std::vector<HostTensor> rest = {}) {
  HostTensor q =
      integers<float>(heads.shape(heads.heads, heads.queries, heads.size), 1);
  HostTensor k =
      integers<float>(heads.shape(heads.groups, heads.keys, heads.size), 2);
  HostTensor v = integers<float>(
      heads.shape(heads.groups, heads.keys, heads.valueSize), 3);
  std::map<std::string, NodeAttribute> attributes = {
      {"scale", float(heads.scale)},
      {"is_causal", int64_t(heads.isCausal)},
      {"softcap", float(heads.softcap)}};
  if (heads.isFlat) {
    attributes["q_num_heads"] = heads.heads;
    attributes["kv_num_heads"] = heads.groups;
  }
  std::vector<HostTensor> operands = {q, k, v};
  operands.insert(operands.end(), rest.begin(), rest.end());
  expectNear(
      run("Attention", 23, attributes, operands,
          {{1, heads.shape(heads.heads, heads.queries, heads.valueSize)}}),
      heads.compute(values<float>(q), values<float>(k), values<float>(v)));
}

TEST(Attention, HasHeadsOfItsOwnOrShared) {
  for (bool isFlat : {false, true})
    for (bool isCausal : {false, true})
      for (int64_t groups : {1, 2, 3, 6}) {
        Heads heads;
        heads.isFlat = isFlat;
        heads.isCausal = isCausal;
        heads.groups = groups;
        heads.softcap = groups == 2 ? 1.5 : 0;
        expectAttention(heads);
      }
}

TEST(Attention, AddsMasksOfAnyShapeThatBroadcasts) {
  Heads heads;
  for (bool isCausal : {false, true})
    for (const Shape &shape : {Shape{5, 7}, Shape{7}, Shape{6, 5, 7},
                               Shape{2, 1, 1, 7}, Shape{2, 6, 5, 1}}) {
      HostTensor mask = integers<float>(shape, 5);
      Shape strides = stridesFor(shape, 4);
      std::vector<float> addends = values<float>(mask);
      heads.isCausal = isCausal;
      heads.bias = [&](int64_t b, int64_t h, int64_t q, int64_t k) {
        return addends[b * strides[0] + h * strides[1] + q * strides[2] +
                       k * strides[3]];
      };
      expectAttention(heads, {mask});
    }
}

// Query 2 attends nothing by its mask, query 0 of causal ones neither.
TEST(Attention, RowsWithoutKeysAreZero) {
  std::vector<uint8_t> bits;
  for (int i = 0; i < 5 * 7; ++i)
    bits.push_back(i / 7 != 2 && i != 0 && i % 3 != 1);
  HostTensor mask = tensor<bool>({5, 7}, {bits.begin(), bits.end()});
  for (bool isFlat : {false, true})
    for (bool isCausal : {false, true}) {
      Heads heads;
      heads.isFlat = isFlat;
      heads.isCausal = isCausal;
      heads.bias = [&](int64_t, int64_t, int64_t q, int64_t k) {
        return bits[q * 7 + k] ? 0 : -INFINITY;
      };
      expectAttention(heads, {mask});
    }
}

TEST(Attention, RefusesHalfACacheAndHeadsThatDoNotFit) {
  HostTensor q = integers<float>({2, 5, 12}, 1);
  HostTensor past = integers<float>({2, 3, 1, 4}, 2);
  HostTensor none{"", 0, {}, ""};
  auto error = [&](std::map<std::string, NodeAttribute> attributes,
                   std::vector<HostTensor> rest) {
    std::vector<HostTensor> operands = {q, q, q};
    operands.insert(operands.end(), rest.begin(), rest.end());
    return run("Attention", 23, std::move(attributes), operands,
               {{1, {2, 5, 12}}})
        .error;
  };
  std::map<std::string, NodeAttribute> three = {{"q_num_heads", int64_t(3)},
                                                {"kv_num_heads", int64_t(3)}};
  EXPECT_NE(error(three, {none, past, none})
                .find("has one of 'past_key' and 'past_value'"),
            std::string::npos);
  EXPECT_NE(error({}, {}).find("need the attributes 'q_num_heads' and "
                               "'kv_num_heads'"),
            std::string::npos);
  EXPECT_NE(
      error({{"q_num_heads", int64_t(5)}, {"kv_num_heads", int64_t(3)}}, {})
          .find("do not divide the last axes"),
      std::string::npos);
  EXPECT_NE(
      error({{"q_num_heads", int64_t(3)}, {"kv_num_heads", int64_t(2)}}, {})
          .find("heads of 'Q' have 4 elements, those of 'K' 6"),
      std::string::npos);
  EXPECT_NE(error(three, {past}).find("does not broadcast to 2x3x5x5"),
            std::string::npos);
}

//===--- DFT ---===//

// Half of the spectrum of real numbers becomes these again; of the first
// frequency and the middle one, imaginary parts do not count.
TEST(Dft, InvertsHalfASpectrum) {
  std::map<std::string, NodeAttribute> attributes = {{"inverse", int64_t(1)},
                                                     {"onesided", int64_t(1)}};
  HostTensor even = tensor<float>({1, 3, 2}, {10, 7, -2, 2, -2, 5});
  HostTensor odd =
      tensor<float>({1, 3, 2}, {15, 0, -2.5f, 3.4409548f, -2.5f, 0.81229924f});
  HostTensor axis = tensor<int64_t>({}, {1}), five = tensor<int64_t>({}, {5});
  expectNear(run("DFT", 17, attributes, {even}, {{1, {1, 4, 1}}}),
             {1, 2, 3, 4});
  expectNear(run("DFT", 20, attributes, {odd, five, axis}, {{1, {1, 5, 1}}}, 1),
             {1, 2, 3, 4, 5});
}

//===--- com.microsoft ---===//

TEST(FusedForms, AddTheBiasBeforeTheActivation) {
  HostTensor x = integers<float>({3, 5}, 1), bias = integers<float>({5}, 2);
  std::vector<float> exact, approximate, plain, quick;
  for (int i = 0; i < 15; ++i) {
    double a = values<float>(x)[i], v = a + values<float>(bias)[i % 5];
    auto gelu = [](double v) {
      return float(0.5 * v * (1 + std::erf(v * M_SQRT1_2)));
    };
    exact.push_back(gelu(v));
    plain.push_back(gelu(a));
    approximate.push_back(float(
        0.5 * v *
        (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)))));
    quick.push_back(float(a / (1 + std::exp(-1.702 * a))));
  }
  auto one = [&](const char *type, std::vector<HostTensor> operands) {
    return run(type, 17, {}, std::move(operands), {{1, {3, 5}}}, 99,
               "com.microsoft");
  };
  expectNear(one("BiasGelu", {x, bias}), exact);
  expectNear(one("Gelu", {x}), plain);
  expectNear(one("FastGelu", {x, bias}), approximate);
  expectNear(one("QuickGelu", {x}), quick);
}

} // namespace
