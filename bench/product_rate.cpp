//===- product_rate.cpp - Rates of single products by oneDNN --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads products as programs have them, one a line, and prints the rate at
// which the runtime computes them beside the best rates of the library on a
// product of these sizes: in one call, by any of its implementations, with
// these strides or with plain matrices, adding or not. Each round measures all
// of them in turn, and the best round counts; with several copies of the
// operands they come from memory, not from caches.
//   product_rate [threads [copies]] < lines of "batch... m n k | a | b | c |
//   accumulate"
// with the strides of the operands, each with one per batch dimension and two.
//===----------------------------------------------------------------------===//

#include "ProductWays.h"

#include "penstock/abi.h"
#include "penstock/onednn.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

using namespace penstock::bench;

namespace {

constexpr int kRounds = 9;

size_t spanOf(const Shape &shape, const std::vector<int64_t> &strides,
              int64_t rows, int64_t columns) {
  uint32_t rank = shape.rank();
  int64_t last = (rows - 1) * strides[rank] + (columns - 1) * strides[rank + 1];
  for (uint32_t i = 0; i < rank; ++i)
    last += (shape.sizes[i] - 1) * strides[i];
  return size_t(last + 1);
}

/// A, B and C of every copy, and ways to multiply them.
struct Contest {
  std::vector<Buffer> a, b, c;
  std::vector<Way> ways;

  Contest(const Shape &shape, int copies) {
    for (int i = 0; i < copies; ++i) {
      a.emplace_back(spanOf(shape, shape.a, shape.m(), shape.k()), 1e-3f);
      b.emplace_back(spanOf(shape, shape.b, shape.k(), shape.n()), 1e-3f);
      c.emplace_back(spanOf(shape, shape.c, shape.m(), shape.n()), 1e-3f);
    }
  }
  void run(const Way &way, size_t copy) const {
    way.run(a[copy].data(), b[copy].data(), c[copy].data());
  }
  void runRound(int count) {
    size_t copies = a.size();
    for (Way &way : ways) {
      // What the way before this one has left in the caches is not its fault.
      for (size_t i = 0; i < copies; ++i)
        run(way, i);
      auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < count; ++i)
        run(way, size_t(i) % copies);
      std::chrono::duration<double> time =
          std::chrono::steady_clock::now() - begin;
      way.best = std::min(way.best, time.count() / count);
    }
  }
};

double secondsOf(const std::vector<Way> &ways, size_t begin, size_t end) {
  double seconds = 1e30;
  for (size_t i = begin; i < end; ++i)
    seconds = std::min(seconds, ways[i].best);
  return seconds;
}

bool readNumbers(std::istringstream &line, std::vector<int64_t> &numbers) {
  for (std::string word; line >> word && word != "|";)
    numbers.push_back(std::atoll(word.c_str()));
  return !numbers.empty();
}

} // namespace

int main(int argc, char **argv) {
  const penstock::runtime::OneDnn &dnnl = penstock::runtime::oneDnn();
  if (!dnnl.error.empty()) {
    std::fprintf(stderr, "product_rate: %s\n", dnnl.error.c_str());
    return 1;
  }
  int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  int copies = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
  dnnl.setThreads(threads);
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    Shape shape;
    std::vector<int64_t> accumulate;
    if (!readNumbers(line, shape.sizes) || shape.sizes.size() < 3 ||
        shape.rank() > PENSTOCK_MAX_BATCH_RANK || !readNumbers(line, shape.a) ||
        !readNumbers(line, shape.b) || !readNumbers(line, shape.c) ||
        !readNumbers(line, accumulate) || shape.a.size() != shape.rank() + 2 ||
        shape.b.size() != shape.rank() + 2 ||
        shape.c.size() != shape.rank() + 2) {
      std::fprintf(stderr, "product_rate: not a product: %s\n", text.c_str());
      return 1;
    }
    shape.accumulate = accumulate.front() != 0;
    Contest strided(shape, copies), plain(shape.plain(), copies);
    strided.ways = libraryWays(shape);
    strided.ways.insert(strided.ways.begin(), ownWay(shape, threads));
    plain.ways = libraryWays(shape.plain());
    int count = std::max(1, int(2e8 / shape.flops() / copies)) * copies;
    for (int round = 0; round < kRounds; ++round) {
      strided.runRound(count);
      plain.runRound(count);
    }
    auto rate = [&](const std::vector<Way> &ways, size_t begin, size_t end) {
      return shape.flops() * 1e-9 / secondsOf(ways, begin, end);
    };
    std::printf("{\"gflops\": %.1f, \"best\": %.1f, \"plain\": %.1f}\n",
                rate(strided.ways, 0, 1),
                rate(strided.ways, 1, strided.ways.size()),
                rate(plain.ways, 0, plain.ways.size()));
    std::fflush(stdout);
  }
  return 0;
}
