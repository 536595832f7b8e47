//===- convolution_rate.cpp - The rates of a convolution's layouts --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times convolutions and their gradients in every layout, as the runtime calls
// them, and compares their errors with sums in f64 of some of the results.
//   convolution_rate [threads [batch inputs outputs size [window stride]]]
//   convolution_rate threads resnet18|unet
// Rates are products of the definition per second, so that layouts compare. Of
// a model's convolutions those that are chosen are timed, with one thread and
// with several, one after the other.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <vector>

using namespace penstock::runtime;

namespace {

/// Windows of three elements are padded by one on each side.
struct Shape {
  int64_t batch, inputs, outputs, size, window = 3, stride = 1;
  int count = 1; // in a model
};

// The models of bench/training_steps.py.
const std::vector<Shape> kResNet18 = {{16, 3, 64, 32},
                                      {16, 64, 64, 32, 3, 1, 4},
                                      {16, 64, 128, 32, 3, 2},
                                      {16, 128, 128, 16, 3, 1, 3},
                                      {16, 64, 128, 32, 1, 2},
                                      {16, 128, 256, 16, 3, 2},
                                      {16, 256, 256, 8, 3, 1, 3},
                                      {16, 128, 256, 16, 1, 2},
                                      {16, 256, 512, 8, 3, 2},
                                      {16, 512, 512, 4, 3, 1, 3},
                                      {16, 256, 512, 8, 1, 2}};
const std::vector<Shape> kUNet = {{4, 3, 32, 64},
                                  {4, 32, 32, 64, 3, 1, 2},
                                  {4, 32, 64, 32},
                                  {4, 64, 64, 32, 3, 1, 2},
                                  {4, 64, 128, 16},
                                  {4, 128, 128, 16},
                                  {4, 64, 128, 32, 2, 2, 1},
                                  {4, 128, 64, 32},
                                  {4, 32, 64, 64, 2, 2, 1},
                                  {4, 64, 32, 64},
                                  {4, 32, 5, 64, 1}};

const char *const kKinds[] = {"forward", "input gradient", "weight gradient"};
const char *const kLayouts[] = {"plain",    "library",   "columns",
                                "winograd", "tiles 2x2", "tiles 4x4"};

double seconds(int threads) {
  // Of the thread: others run, too.
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

/// A convolution that is ready to run with so many threads.
class Prepared {
public:
  Prepared(const ConvolutionCall &conv, int threads)
      : threads(threads), scratch(nullptr, std::free) {
    setConvolutionThreads(threads);
    if (!convolution.plan(conv).empty())
      return;
    // In large pages, like a device's arena.
    constexpr size_t kPage = 2 << 20;
    bytes = convolution.getScratchBytes();
    size_t pages = bytes / kPage + 1;
    scratch.reset(
        static_cast<char *>(std::aligned_alloc(kPage, pages * kPage)));
    madvise(scratch.get(), pages * kPage, MADV_HUGEPAGE);
    std::memset(scratch.get(), 0, bytes);
    isReady = convolution.prepare(scratch.get()).empty();
  }
  bool run(const std::vector<float> (&tensors)[3]) {
    setConvolutionThreads(threads);
    return convolution.run(tensors[0].data(), tensors[1].data(),
                           tensors[2].data());
  }

  bool isReady = false;
  size_t bytes = 0;

private:
  int threads;
  Convolution convolution;
  std::unique_ptr<char, decltype(&std::free)> scratch;
};

class Case {
public:
  Case(const Shape &shape, uint32_t kind);
  void run(int threads);
  /// Seconds with one thread and with so many, of what is chosen.
  std::pair<double, double> compare(int threads);

private:
  int64_t index(int tensor, int64_t n, int64_t channel, int64_t y,
                int64_t x) const {
    int64_t channels = tensor == 0 ? conv.input_channels : conv.output_channels;
    const int64_t *size = tensor == 0 ? conv.input : conv.output;
    return ((n * channels + channel) * size[0] + y) * size[1] + x;
  }
  int64_t weight(int64_t m, int64_t c, int64_t k, int64_t l) const {
    return ((m * conv.input_channels + c) * conv.kernel[0] + k) *
               conv.kernel[1] +
           l;
  }
  void print(const char *end) const;
  double products() const {
    return 2.0 * conv.batch * conv.input_channels * conv.output_channels *
           conv.output[0] * conv.output[1] * conv.kernel[0] * conv.kernel[1];
  }
  /// A result that is chosen at random, and where it stands.
  double sample(size_t &place);
  /// The root of the mean square of errors over that of the results.
  double error();

  ConvolutionCall conv = {};
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
    conv.input[i] = shape.size;
    conv.output[i] = shape.size / shape.stride;
    conv.kernel[i] = shape.window;
    conv.stride[i] = shape.stride;
    conv.dilation[i] = 1;
    conv.pad_before[i] = shape.window / 2;
    conv.pad_after[i] =
        std::max<int64_t>((conv.output[i] - 1) * shape.stride + shape.window -
                              shape.size - conv.pad_before[i],
                          0);
  }
  result = kind == PENSTOCK_CONV_FORWARD      ? 2
           : kind == PENSTOCK_CONV_INPUT_GRAD ? 0
                                              : 1;
  tensors[0].resize(index(0, shape.batch, 0, 0, 0));
  tensors[1].resize(weight(shape.outputs, 0, 0, 0));
  tensors[2].resize(index(2, shape.batch, 0, 0, 0));
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
  int64_t outputs = conv.output_channels, window = conv.kernel[0];
  int64_t n = below(conv.batch), c = below(inputs), m = below(outputs);
  int64_t k = below(window), l = below(window);
  int64_t end = result == 0 ? size : conv.output[0];
  int64_t y = below(end), x = below(end);
  place = result == 0   ? index(0, n, c, y, x)
          : result == 1 ? weight(m, c, k, l)
                        : index(2, n, m, y, x);
  double sum = 0;
  // The output is at y, x.
  auto add = [&](int64_t n, int64_t c, int64_t m, int64_t y, int64_t x,
                 int64_t k, int64_t l) {
    int64_t i = y * conv.stride[0] + k - conv.pad_before[0];
    int64_t j = x * conv.stride[1] + l - conv.pad_before[1];
    if (i < 0 || j < 0 || i >= size || j >= size)
      return;
    double factors[] = {tensors[0][index(0, n, c, i, j)],
                        tensors[1][weight(m, c, k, l)],
                        tensors[2][index(2, n, m, y, x)]};
    sum += factors[(result + 1) % 3] * factors[(result + 2) % 3];
  };
  // The output whose element k of the window is at y.
  auto locate = [&](int64_t y, int64_t k, int64_t &o) {
    o = y + conv.pad_before[0] - k;
    bool isOne = o >= 0 && o % conv.stride[0] == 0;
    o /= conv.stride[0];
    return isOne && o < conv.output[0];
  };
  if (result == 1) {
    for (int64_t n = 0; n < conv.batch; ++n)
      for (int64_t y = 0; y < conv.output[0]; ++y)
        for (int64_t x = 0; x < conv.output[0]; ++x)
          add(n, c, m, y, x, k, l);
    return sum;
  }
  for (int64_t other = 0; other < (result == 2 ? inputs : outputs); ++other)
    for (int64_t k = 0; k < window; ++k)
      for (int64_t l = 0; l < window; ++l) {
        int64_t i = 0, j = 0;
        if (result == 2)
          add(n, other, m, y, x, k, l);
        else if (locate(y, k, i) && locate(x, l, j))
          add(n, c, other, i, j, k, l);
      }
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

void Case::print(const char *end) const {
  auto print = [](const char *format, int64_t a, int64_t b) {
    std::printf(format, (long long)a, (long long)b);
  };
  print("%lld x %lld", conv.batch, conv.input_channels);
  print(" to %lld, %lldx", conv.output_channels, conv.output[0]);
  print("%lld, window %lld", conv.output[1], conv.kernel[0]);
  std::printf(", stride %lld, %s%s", (long long)conv.stride[0],
              kKinds[conv.kind], end);
}

void Case::run(int threads) {
  ConvolutionCall chosen = conv;
  setConvolutionThreads(threads);
  chooseConvolutionLayout(chosen);
  print(":");
  for (uint32_t layout = 0; layout < std::size(kLayouts); ++layout) {
    conv.layout = layout;
    Prepared prepared(conv, threads);
    if (!prepared.isReady)
      continue;
    std::fill(tensors[result].begin(), tensors[result].end(), 0.0f);
    if (!prepared.run(tensors))
      continue;
    double relative = error(), best = 1e9;
    int rounds = std::clamp(int(4e9 / products()), 8, 40);
    for (int i = 0; i < rounds; ++i) {
      double begin = seconds(threads);
      prepared.run(tensors);
      best = std::min(best, seconds(threads) - begin);
    }
    std::printf(" %s%s %.0f GF/s %.1e %.1f MB;",
                layout == chosen.layout ? "*" : "", kLayouts[layout],
                1e-9 * products() / best, relative, 1e-6 * prepared.bytes);
  }
  std::printf("\n");
  std::fflush(stdout);
}

std::pair<double, double> Case::compare(int threads) {
  setConvolutionThreads(1);
  chooseConvolutionLayout(conv);
  Prepared one(conv, 1), several(conv, threads);
  if (!one.isReady || !several.isReady)
    return {};
  double first = 1e9, second = 1e9;
  std::fill(tensors[result].begin(), tensors[result].end(), 0.0f);
  one.run(tensors);
  std::vector<float> expected = tensors[result];
  std::fill(tensors[result].begin(), tensors[result].end(), 0.0f);
  several.run(tensors);
  bool isSame = expected == tensors[result];
  int rounds = std::clamp(int(8e9 / products()), 8, 40);
  for (int i = 0; i < rounds; ++i)
    for (Prepared *each : {&one, &several}) {
      double begin = seconds(threads);
      each->run(tensors);
      double &best = each == &one ? first : second;
      best = std::min(best, seconds(threads) - begin);
    }
  print(":");
  std::printf(" %s, %.3f and %.3f ms, %.2f times, %.0f and %.0f GF/s%s\n",
              kLayouts[conv.layout], 1e3 * first, 1e3 * second, first / second,
              1e-9 * products() / first, 1e-9 * products() / second,
              isSame ? "" : ", other bits");
  std::fflush(stdout);
  return {first, second};
}

void compareModel(const std::vector<Shape> &shapes, int threads) {
  double first[3] = {}, second[3] = {};
  for (const Shape &shape : shapes)
    for (uint32_t kind = 0; kind < std::size(kKinds); ++kind) {
      // Nobody wants the gradient of the images.
      if (kind == PENSTOCK_CONV_INPUT_GRAD && shape.inputs == 3)
        continue;
      auto [one, several] = Case(shape, kind).compare(threads);
      first[kind] += shape.count * one;
      second[kind] += shape.count * several;
    }
  for (uint32_t kind = 0; kind < std::size(kKinds); ++kind)
    std::printf("%s: %.2f and %.2f ms, %.2f times\n", kKinds[kind],
                1e3 * first[kind], 1e3 * second[kind],
                first[kind] / second[kind]);
  double all = first[0] + first[1] + first[2];
  double allSeveral = second[0] + second[1] + second[2];
  std::printf("all: %.2f and %.2f ms, %.2f times\n", 1e3 * all,
              1e3 * allSeveral, all / allSeveral);
}

} // namespace

int main(int count, char **arguments) {
  auto number = [&](int i) { return std::atoll(arguments[i]); };
  int threads = count > 1 ? int(number(1)) : 1;
  if (count == 3) {
    compareModel(arguments[2][0] == 'r' ? kResNet18 : kUNet, threads);
    return 0;
  }
  std::vector<Shape> shapes = {
      {16, 64, 64, 32},  {16, 128, 128, 16}, {16, 256, 256, 8},
      {16, 512, 512, 4}, {4, 32, 32, 64},    {4, 64, 64, 32},
      {4, 128, 128, 16}, {8, 256, 256, 14},  {2, 128, 128, 28}};
  if (count > 5) {
    shapes = {{number(2), number(3), number(4), number(5)}};
    if (count > 7) {
      shapes[0].window = number(6);
      shapes[0].stride = number(7);
    }
  }
  for (const Shape &shape : shapes)
    for (uint32_t kind = 0; kind < std::size(kKinds); ++kind)
      Case(shape, kind).run(threads);
}
