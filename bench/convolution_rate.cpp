//===- convolution_rate.cpp - The rates of a convolution's layouts --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times a 3x3 convolution, padded by one, and its gradients in every layout, as
// the runtime calls them, and compares their errors with sums in f64 of some of
// the results.
//   convolution_rate [threads [batch inputs outputs size]]
// Rates are products of the definition per second, so that layouts compare.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

using namespace penstock::runtime;

namespace {

struct Shape {
  int64_t batch, inputs, outputs, size;
};

const char *const kKinds[] = {"forward", "input gradient", "weight gradient"};
const char *const kLayouts[] = {"plain",    "library",   "columns",
                                "winograd", "tiles 2x2", "tiles 4x4"};

double seconds(int threads) {
  // Of the thread: others run, too.
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

class Case {
public:
  Case(const Shape &shape, uint32_t kind);
  void run(int threads);

private:
  int64_t index(int tensor, int64_t n, int64_t channel, int64_t y,
                int64_t x) const {
    int64_t channels = tensor == 0 ? conv.input_channels : conv.output_channels;
    return ((n * channels + channel) * conv.input[0] + y) * conv.input[1] + x;
  }
  /// A result that is chosen at random, and where it stands.
  double sample(size_t &place);
  /// The root of the mean square of errors over that of the results.
  double error();

  penstock_conv_descriptor conv = {};
  std::vector<float> tensors[3];
  int result;
  std::mt19937 generator{7};
  std::vector<std::pair<size_t, double>> samples;
};

Case::Case(const Shape &shape, uint32_t kind) {
  conv.kind = kind;
  conv.element = PENSTOCK_F32;
  conv.spatial_rank = 2;
  conv.batch = shape.batch;
  conv.groups = 1;
  conv.input_channels = shape.inputs;
  conv.output_channels = shape.outputs;
  for (int i = 0; i < 2; ++i) {
    conv.input[i] = conv.output[i] = shape.size;
    conv.kernel[i] = 3;
    conv.stride[i] = conv.dilation[i] = 1;
    conv.pad_before[i] = conv.pad_after[i] = 1;
  }
  result = kind == PENSTOCK_CONV_FORWARD      ? 2
           : kind == PENSTOCK_CONV_INPUT_GRAD ? 0
                                              : 1;
  int64_t plane = shape.size * shape.size;
  tensors[0].resize(shape.batch * shape.inputs * plane);
  tensors[1].resize(shape.inputs * shape.outputs * 9);
  tensors[2].resize(shape.batch * shape.outputs * plane);
  std::normal_distribution<float> normal;
  for (std::vector<float> &tensor : tensors)
    for (float &value : tensor)
      value = normal(generator);
  for (int i = 0; i < 200; ++i) {
    size_t place;
    double value = sample(place);
    samples.emplace_back(place, value);
  }
}

double Case::sample(size_t &place) {
  auto below = [&](int64_t end) { return int64_t(generator() % end); };
  int64_t size = conv.input[0], inputs = conv.input_channels;
  int64_t outputs = conv.output_channels;
  // All products that have these indices, of which those below 0 run.
  int64_t n = below(conv.batch), c = below(inputs), m = below(outputs);
  int64_t y = below(size), x = below(size), k = below(3), l = below(3);
  place = result == 0   ? index(0, n, c, y, x)
          : result == 1 ? (m * inputs + c) * 9 + k * 3 + l
                        : index(2, n, m, y, x);
  double sum = 0;
  auto add = [&](int64_t n, int64_t c, int64_t m, int64_t y, int64_t x,
                 int64_t k, int64_t l) { // the output is at y, x
    int64_t i = y + k - 1, j = x + l - 1;
    if (y < 0 || x < 0 || y >= size || x >= size || i < 0 || j < 0 ||
        i >= size || j >= size)
      return;
    double factors[] = {tensors[0][index(0, n, c, i, j)],
                        tensors[1][(m * inputs + c) * 9 + k * 3 + l],
                        tensors[2][index(2, n, m, y, x)]};
    sum += factors[(result + 1) % 3] * factors[(result + 2) % 3];
  };
  if (result == 1) {
    for (int64_t n = 0; n < conv.batch; ++n)
      for (int64_t y = 0; y < size; ++y)
        for (int64_t x = 0; x < size; ++x)
          add(n, c, m, y, x, k, l);
    return sum;
  }
  for (int64_t other = 0; other < (result == 2 ? inputs : outputs); ++other)
    for (int64_t k = 0; k < 3; ++k)
      for (int64_t l = 0; l < 3; ++l)
        if (result == 2)
          add(n, other, m, y, x, k, l);
        else
          add(n, c, other, y - k + 1, x - l + 1, k, l);
  return sum;
}

double Case::error() {
  double errors = 0, values = 0;
  for (auto [place, value] : samples) {
    errors += std::pow(tensors[result][place] - value, 2);
    values += value * value;
  }
  return std::sqrt(errors / values);
}

void Case::run(int threads) {
  double products = 18.0 * conv.batch * conv.input_channels *
                    conv.output_channels * conv.input[0] * conv.input[1];
  penstock_conv_descriptor chosen = conv;
  chooseConvolutionLayout(chosen);
  std::printf("%lld x %lld to %lld, %lldx%lld, %s:", (long long)conv.batch,
              (long long)conv.input_channels, (long long)conv.output_channels,
              (long long)conv.input[0], (long long)conv.input[1],
              kKinds[conv.kind]);
  for (uint32_t layout = 0; layout < std::size(kLayouts); ++layout) {
    conv.layout = layout;
    Convolution convolution;
    if (!convolution.plan(conv).empty())
      continue;
    size_t bytes = (convolution.getScratchBytes() + 4096) / 4096 * 4096;
    std::unique_ptr<char, decltype(&std::free)> scratch(
        static_cast<char *>(std::aligned_alloc(4096, bytes)), std::free);
    if (!convolution.prepare(scratch.get()).empty())
      continue;
    auto call = [&] {
      return convolution.run(tensors[0].data(), tensors[1].data(),
                             tensors[2].data());
    };
    std::fill(tensors[result].begin(), tensors[result].end(), 0.0f);
    if (!call())
      continue;
    double relative = error(), best = 1e9;
    int rounds = std::clamp(int(4e9 / products), 8, 40);
    for (int i = 0; i < rounds; ++i) {
      double begin = seconds(threads);
      call();
      best = std::min(best, seconds(threads) - begin);
    }
    std::printf(" %s%s %.0f GF/s %.1e %.1f MB;",
                layout == chosen.layout ? "*" : "", kLayouts[layout],
                1e-9 * products / best, relative, 1e-6 * bytes);
  }
  std::printf("\n");
  std::fflush(stdout);
}

} // namespace

int main(int count, char **arguments) {
  auto number = [&](int i) { return std::atoll(arguments[i]); };
  int threads = count > 1 ? int(number(1)) : 1;
  std::vector<Shape> shapes = {
      {16, 64, 64, 32},  {16, 128, 128, 16}, {16, 256, 256, 8},
      {16, 512, 512, 4}, {4, 32, 32, 64},    {4, 64, 64, 32},
      {4, 128, 128, 16}, {8, 256, 256, 14},  {2, 128, 128, 28}};
  if (count > 5)
    shapes = {{number(2), number(3), number(4), number(5)}};
  setConvolutionThreads(threads);
  for (const Shape &shape : shapes)
    for (uint32_t kind = 0; kind < std::size(kKinds); ++kind)
      Case(shape, kind).run(threads);
}
