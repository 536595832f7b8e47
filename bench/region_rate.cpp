//===- region_rate.cpp - Elementwise and row kernels in plain C++ ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   region_rate gelu|softmax|layer-norm|adamw ROWS COLUMNS
//
// A yardstick of the machine for kernel_rates.py: one pass over rows, written
// by hand, which the C++ compiler vectorizes with fast-math and the vector
// functions of the C library. Prints microseconds of the thread's time: one
// number, or forward and backward. They take turns as in a training, with a
// pass between them that writes what the next one reads, so that each finds its
// operands where a training leaves them; the least mean of several rounds
// counts.
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <vector>

namespace {

using Matrix = std::vector<float>;

struct Size {
  size_t rows, columns;
  size_t count() const { return rows * columns; }
};

double threadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

/// Microseconds of each of these calls, run in turn; those between them are not
/// counted.
template <size_t kinds>
std::array<double, kinds>
bestMicroseconds(const std::function<void()> (&calls)[kinds],
                 const std::function<void()> &between) {
  constexpr int rounds = 5;
  constexpr double secondsOfRound = 0.2;
  std::array<double, kinds> best;
  best.fill(std::numeric_limits<double>::max());
  for (int round = 0; round < rounds; ++round) {
    std::array<double, kinds> sums = {};
    int turns = 0;
    for (double start = threadSeconds();
         threadSeconds() - start < secondsOfRound; ++turns)
      for (size_t kind = 0; kind < kinds; ++kind) {
        double begin = threadSeconds();
        calls[kind]();
        sums[kind] += threadSeconds() - begin;
        between();
      }
    for (size_t kind = 0; kind < kinds; ++kind)
      best[kind] = std::min(best[kind], 1e6 * sums[kind] / turns);
  }
  return best;
}

Matrix makeMatrix(size_t count) {
  Matrix result(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
  return result;
}

/// The normal distribution up to h, by Abramowitz and Stegun 7.1.26, and its
/// exponential: the C library has no vectors of erf that compilers know.
struct Normal {
  float distribution, exponential;
};

inline Normal normal(float h) {
  float x = std::fabs(h) * 0.70710678f, t = 1.0f / (1.0f + 0.3275911f * x);
  float exponential = std::exp(-x * x);
  float tail =
      0.5f * exponential * t *
      (0.254829592f +
       t * (-0.284496736f +
            t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return {h < 0 ? tail : 1.0f - tail, exponential};
}

/// y = gelu(h) with h = x + bias, which stays for the backward.
void geluForward(Size size, float *__restrict h, const float *__restrict bias,
                 float *__restrict y) {
  for (size_t i = 0; i < size.rows; ++i)
    for (size_t j = 0; j < size.columns; ++j) {
      size_t at = i * size.columns + j;
      h[at] += bias[j];
      y[at] = h[at] * normal(h[at]).distribution;
    }
}

void geluBackward(Size size, const float *__restrict h,
                  const float *__restrict dy, float *__restrict dx,
                  float *__restrict dBias) {
  for (size_t i = 0; i < size.rows; ++i)
    for (size_t j = 0; j < size.columns; ++j) {
      size_t at = i * size.columns + j;
      auto [distribution, exponential] = normal(h[at]);
      dx[at] = dy[at] * (distribution + h[at] * 0.39894228f * exponential);
      dBias[j] += dx[at];
    }
}

void softmaxForward(Size size, const float *__restrict x, float *__restrict y) {
  for (size_t i = 0; i < size.rows; ++i, x += size.columns, y += size.columns) {
    float largest = -std::numeric_limits<float>::max(), sum = 0;
    for (size_t j = 0; j < size.columns; ++j)
      largest = std::max(largest, x[j]);
    for (size_t j = 0; j < size.columns; ++j)
      sum += y[j] = std::exp(x[j] - largest);
    float inverse = 1.0f / sum;
    for (size_t j = 0; j < size.columns; ++j)
      y[j] *= inverse;
  }
}

void softmaxBackward(Size size, const float *__restrict y,
                     const float *__restrict dy, float *__restrict dx) {
  for (size_t i = 0; i < size.rows;
       ++i, y += size.columns, dy += size.columns, dx += size.columns) {
    float sum = 0;
    for (size_t j = 0; j < size.columns; ++j)
      sum += y[j] * dy[j];
    for (size_t j = 0; j < size.columns; ++j)
      dx[j] = y[j] * (dy[j] - sum);
  }
}

struct Statistics {
  float mean, inverseDeviation;
};

void layerNormForward(Size size, const float *__restrict x,
                      const float *__restrict scale,
                      const float *__restrict bias, float *__restrict y,
                      Statistics *__restrict statistics) {
  auto columns = static_cast<float>(size.columns);
  for (size_t i = 0; i < size.rows; ++i, x += size.columns, y += size.columns) {
    float sum = 0, squares = 0;
    for (size_t j = 0; j < size.columns; ++j)
      sum += x[j];
    float mean = sum / columns;
    for (size_t j = 0; j < size.columns; ++j)
      squares += (x[j] - mean) * (x[j] - mean);
    float inverse = 1.0f / std::sqrt(squares / columns + 1e-5f);
    statistics[i] = {mean, inverse};
    for (size_t j = 0; j < size.columns; ++j)
      y[j] = (x[j] - mean) * inverse * scale[j] + bias[j];
  }
}

void layerNormBackward(Size size, const float *__restrict x,
                       const float *__restrict scale,
                       const Statistics *__restrict statistics,
                       const float *__restrict dy, float *__restrict dx,
                       float *__restrict dScale, float *__restrict dBias) {
  auto columns = static_cast<float>(size.columns);
  for (size_t i = 0; i < size.rows;
       ++i, x += size.columns, dy += size.columns, dx += size.columns) {
    auto [mean, inverse] = statistics[i];
    float sum = 0, along = 0;
    for (size_t j = 0; j < size.columns; ++j) {
      float normalized = (x[j] - mean) * inverse, scaled = dy[j] * scale[j];
      sum += scaled;
      along += scaled * normalized;
      dScale[j] += dy[j] * normalized;
      dBias[j] += dy[j];
    }
    sum /= columns;
    along /= columns;
    for (size_t j = 0; j < size.columns; ++j) {
      float normalized = (x[j] - mean) * inverse;
      dx[j] = (dy[j] * scale[j] - sum - normalized * along) * inverse;
    }
  }
}

void adamw(size_t count, float *__restrict weight,
           const float *__restrict gradient, float *__restrict first,
           float *__restrict second) {
  for (size_t i = 0; i < count; ++i) {
    first[i] += 0.1f * (gradient[i] - first[i]);
    second[i] = 0.999f * second[i] + 0.001f * gradient[i] * gradient[i];
    weight[i] = 0.99999f * weight[i] -
                1e-3f * first[i] / (std::sqrt(second[i]) + 1e-8f);
  }
}

/// Results are of use to somebody, as far as the compiler knows.
void keep(const Matrix &values) {
  asm volatile("" : : "r"(values.data()) : "memory");
}

/// Writes `to` anew, as happens between forward and backward, and between two
/// updates.
void rewrite(const Matrix &from, Matrix &to) {
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = 1e-3f * (from[i] - to[i]);
}

template <size_t kinds> void print(const std::array<double, kinds> &times) {
  const char *separator = "[";
  for (double time : times) {
    std::printf("%s%.1f", separator, time);
    separator = ", ";
  }
  std::printf("]\n");
}

int run(const char *kind, Size size) {
  Matrix x = makeMatrix(size.count()), dy = makeMatrix(size.count()),
         y(size.count()), dx(size.count());
  Matrix scale = makeMatrix(size.columns), bias(size.columns),
         dScale(size.columns), dBias(size.columns);
  auto loss = [&] { rewrite(y, dy); };
  if (!std::strcmp(kind, "gelu")) {
    print(bestMicroseconds(
        {[&] { geluForward(size, x.data(), bias.data(), y.data()); },
         [&] {
           geluBackward(size, x.data(), dy.data(), dx.data(), dBias.data());
         }},
        loss));
  } else if (!std::strcmp(kind, "softmax")) {
    print(bestMicroseconds(
        {[&] { softmaxForward(size, x.data(), y.data()); },
         [&] { softmaxBackward(size, y.data(), dy.data(), dx.data()); }},
        loss));
  } else if (!std::strcmp(kind, "layer-norm")) {
    std::vector<Statistics> statistics(size.rows);
    print(bestMicroseconds(
        {[&] {
           layerNormForward(size, x.data(), scale.data(), bias.data(), y.data(),
                            statistics.data());
         },
         [&] {
           layerNormBackward(size, x.data(), scale.data(), statistics.data(),
                             dy.data(), dx.data(), dScale.data(), dBias.data());
         }},
        loss));
  } else if (!std::strcmp(kind, "adamw")) {
    Matrix first(size.count()), second(size.count(), 1.0f);
    print(bestMicroseconds<1>({[&] {
                                adamw(size.count(), x.data(), dy.data(),
                                      first.data(), second.data());
                              }},
                              [&] { rewrite(x, dy); }));
    keep(first);
  } else {
    std::fprintf(stderr, "region_rate: no kernel '%s'\n", kind);
    return 2;
  }
  for (const Matrix *values : {&x, &y, &dx, &dScale, &dBias})
    keep(*values);
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: region_rate gelu|softmax|layer-norm|adamw "
                         "ROWS COLUMNS\n");
    return 2;
  }
  return run(arguments[1], {std::strtoull(arguments[2], nullptr, 10),
                            std::strtoull(arguments[3], nullptr, 10)});
}
