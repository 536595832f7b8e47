//===- gemm_rate.cpp - The rate of an MLP's matrix products ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times the matrix products of one training step of an MLP and nothing else:
// forward, input gradient, weight gradient (accumulated) of every layer, with
// the layers' own buffers. What a training step reaches is a share of this.
// Each kind of product is computed in the way that is fastest on these buffers:
// as programs do, or in one call by an implementation of oneDNN.
//   gemm_rate [layers width batch [threads [callers]]]
// threads share one product; callers run steps of their own side by side.
//===----------------------------------------------------------------------===//

#include "ProductWays.h"

#include "penstock/onednn.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace penstock::bench;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The products of one step, and the buffers that they run over.
class Step {
public:
  enum Kind { Forward, WeightGradient, InputGradient, Kinds };
  /// The number of an implementation, for each kind.
  using Choice = std::array<size_t, Kinds>;

  Step(long layers, int64_t width, int64_t batch, int threads)
      : layers(layers), weights(buffers(layers, width * width, 1e-3f)),
        gradients(buffers(layers, width * width, 0.0f)),
        activations(buffers(layers + 1, batch * width, 0.5f)),
        cotangents(buffers(layers + 1, batch * width, 0.5f)) {
    const std::vector<int64_t> rows = {width, 1}, columns = {1, width};
    const Shape shapes[Kinds] = {
        {{batch, width, width}, rows, columns, rows, false},
        {{width, width, batch}, columns, rows, rows, true},
        {{batch, width, width}, rows, rows, rows, false}};
    for (int kind = 0; kind < Kinds; ++kind) {
      ways[kind] = libraryWays(shapes[kind]);
      ways[kind].insert(ways[kind].begin(), ownWay(shapes[kind], threads));
    }
  }

  void run(const Choice &choice) {
    for (long i = 0; i < layers; ++i)
      run(Forward, choice[Forward], i);
    for (long i = layers; i-- > 0;) {
      run(WeightGradient, choice[WeightGradient], i);
      if (i > 0) // Nothing asks for the gradient of the input.
        run(InputGradient, choice[InputGradient], i);
    }
  }

  /// The fastest way of each kind, in some rounds over all layers in turn.
  Choice choose(int rounds) {
    Choice choice = {};
    for (int round = 0; round < rounds; ++round)
      for (int kind = 0; kind < Kinds; ++kind)
        for (size_t i = 0; i < ways[kind].size(); ++i) {
          auto begin = Clock::now();
          for (long layer = 0; layer < layers; ++layer)
            run(Kind(kind), i, layer);
          double &best = ways[kind][i].best;
          best = std::min(best, secondsSince(begin));
          if (best < ways[kind][choice[kind]].best)
            choice[kind] = i;
        }
    return choice;
  }

  /// Keeps the numbers from growing until they are denormal or infinite.
  void reset() {
    for (Buffer &gradient : gradients)
      gradient.fill(0.0f);
  }

private:
  static std::vector<Buffer> buffers(long count, int64_t elements,
                                     float value) {
    std::vector<Buffer> result;
    for (long i = 0; i < count; ++i)
      result.emplace_back(size_t(elements), value);
    return result;
  }

  void run(Kind kind, size_t way, long i) {
    const Way &with = ways[kind][way];
    if (kind == Forward)
      with.run(activations[i].data(), weights[i].data(),
               activations[i + 1].data());
    else if (kind == WeightGradient)
      with.run(cotangents[i + 1].data(), activations[i].data(),
               gradients[i].data());
    else
      with.run(cotangents[i + 1].data(), weights[i].data(),
               cotangents[i].data());
  }

  long layers;
  std::vector<Buffer> weights, gradients, activations, cotangents;
  std::vector<Way> ways[Kinds];
};

} // namespace

int main(int argc, char **argv) {
  const penstock::runtime::OneDnn &dnnl = penstock::runtime::oneDnn();
  if (!dnnl.error.empty()) {
    std::fprintf(stderr, "gemm_rate: %s\n", dnnl.error.c_str());
    return 1;
  }
  long values[] = {8, 1024, 64, 1, 1};
  for (int i = 1; i < argc && i <= 5; ++i) {
    values[i - 1] = std::atol(argv[i]);
    if (values[i - 1] < 1) {
      std::fprintf(stderr, "gemm_rate: '%s' is not a count\n", argv[i]);
      return 1;
    }
  }
  auto [layers, width, batch, threads, callers] = values;

  // Rounds of a tenth of a second and more; the best one counts, as others are
  // disturbed by what else runs on the machine. As programs compute it and in
  // the fastest ways, in turn.
  constexpr int kRounds = 12;
  double flops = 2.0 * width * width * batch * (3 * layers - 1);
  int steps = std::max(1, int(2e10 * threads / flops));
  dnnl.setThreads(int(threads));
  Step::Choice choices[2] = {
      {}, Step(layers, width, batch, int(threads)).choose(kRounds)};
  double best[2] = {1e30, 1e30};
  std::barrier gate(callers);
  auto call = [&](bool isFirst) {
    dnnl.setThreads(int(threads));
    Step step(layers, width, batch, int(threads));
    for (int round = 0; round < kRounds; ++round)
      for (int which = 0; which < 2; ++which) {
        step.reset();
        step.run(choices[which]);
        gate.arrive_and_wait();
        auto begin = Clock::now();
        for (int i = 0; i < steps; ++i)
          step.run(choices[which]);
        gate.arrive_and_wait();
        if (isFirst)
          best[which] = std::min(best[which], secondsSince(begin));
      }
  };
  std::vector<std::thread> others;
  for (long i = 1; i < callers; ++i)
    others.emplace_back(call, false);
  call(true);
  for (std::thread &other : others)
    other.join();

  auto rate = [&](double seconds) {
    return flops * steps * callers / seconds * 1e-9;
  };
  std::printf("{\"layers\": %ld, \"width\": %ld, \"batch\": %ld, "
              "\"threads\": %ld, \"callers\": %ld, \"gflops\": %.1f, "
              "\"programs\": %.1f}\n",
              layers, width, batch, threads, callers,
              rate(std::min(best[0], best[1])), rate(best[0]));
  return 0;
}
