//===- gemm_rate.cpp - The rate of oneDNN's matrix products ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times the matrix products of one training step of an MLP and nothing else:
// forward, input gradient, weight gradient (accumulated) of every layer, with
// the layers' own buffers. What a training step reaches is a share of this.
//   gemm_rate [layers width batch [threads [callers]]]
// threads share one product; callers run steps of their own side by side.
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <oneapi/dnnl/dnnl.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void check(dnnl_status_t status, const char *what) {
  if (status == dnnl_success)
    return;
  std::fprintf(stderr, "gemm_rate: %s: oneDNN status %d\n", what, int(status));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

/// Floats on huge pages where the system grants them, as a program's arena is:
/// the products run faster there, so anything else would flatter us.
class Buffer {
public:
  Buffer(size_t count, float value) : count(count) {
    constexpr size_t kHuge = 2 << 20;
    size_t bytes = (count * sizeof(float) + kHuge - 1) / kHuge * kHuge;
    floats.reset(static_cast<float *>(std::aligned_alloc(kHuge, bytes)));
    if (!floats) {
      std::fprintf(stderr, "gemm_rate: out of memory\n");
      std::exit(1);
    }
    madvise(floats.get(), bytes, MADV_HUGEPAGE); // advice: may be refused
    fill(value);
  }
  void fill(float value) { std::fill_n(floats.get(), count, value); }
  float *data() { return floats.get(); }

private:
  struct Free {
    void operator()(float *memory) const { std::free(memory); }
  };
  std::unique_ptr<float[], Free> floats;
  size_t count;
};

struct Matrix {
  dnnl_dim_t rows, columns;
  bool transposed; // stored as columns x rows
  dnnl_memory_desc_t description() const {
    dnnl_dims_t sizes = {rows, columns};
    dnnl_dims_t strides = {transposed ? 1 : columns, transposed ? rows : 1};
    dnnl_memory_desc_t result;
    CHECK(
        dnnl_memory_desc_init_by_strides(&result, 2, sizes, dnnl_f32, strides));
    return result;
  }
};

/// One prepared c = a b, or c += a b.
class Product {
public:
  Product(dnnl_engine_t engine, Matrix a, Matrix b, bool accumulate) {
    Matrix c = {a.rows, b.columns, false};
    dnnl_memory_desc_t da = a.description(), db = b.description();
    dnnl_memory_desc_t dc = c.description();
    dnnl_matmul_desc_t description;
    CHECK(dnnl_matmul_desc_init(&description, &da, &db, nullptr, &dc));

    dnnl_primitive_attr_t attributes;
    CHECK(dnnl_primitive_attr_create(&attributes));
    if (accumulate) {
      dnnl_post_ops_t sum;
      CHECK(dnnl_post_ops_create(&sum));
      CHECK(dnnl_post_ops_append_sum(sum, 1.0f));
      CHECK(dnnl_primitive_attr_set_post_ops(attributes, sum));
      dnnl_post_ops_destroy(sum);
    }
    dnnl_primitive_desc_t plan;
    CHECK(dnnl_primitive_desc_create(&plan, &description, attributes, engine,
                                     nullptr));
    const char *name = "";
    CHECK(dnnl_primitive_desc_query(plan, dnnl_query_impl_info_str, 0, &name));
    if (std::strncmp(name, "ref", 3) == 0) {
      std::fprintf(stderr, "gemm_rate: oneDNN offers only '%s'\n", name);
      std::exit(1);
    }
    CHECK(dnnl_primitive_create(&primitive, plan));
    dnnl_primitive_desc_destroy(plan);
    dnnl_primitive_attr_destroy(attributes);
    const dnnl_memory_desc_t *descriptions[] = {&da, &db, &dc};
    const int kinds[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    for (int i = 0; i < 3; ++i) {
      arguments[i].arg = kinds[i];
      CHECK(dnnl_memory_create(&arguments[i].memory, descriptions[i], engine,
                               DNNL_MEMORY_NONE));
    }
  }

  void run(dnnl_stream_t stream, Buffer &a, Buffer &b, Buffer &c) {
    float *data[] = {a.data(), b.data(), c.data()};
    for (int i = 0; i < 3; ++i)
      CHECK(dnnl_memory_set_data_handle(arguments[i].memory, data[i]));
    CHECK(dnnl_primitive_execute(primitive, stream, 3, arguments));
  }

private:
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t arguments[3];
};

/// The products of one step, and the buffers that they run over.
class Step {
public:
  Step(size_t layers, dnnl_dim_t width, dnnl_dim_t batch)
      : layers(layers), engine(makeEngine()), stream(makeStream(engine)),
        forward(engine, {batch, width, false}, {width, width, true}, false),
        inputGradient(engine, {batch, width, false}, {width, width, false},
                      false),
        weightGradient(engine, {width, batch, true}, {batch, width, false},
                       true),
        weights(buffers(layers, width * width, 1e-3f)),
        gradients(buffers(layers, width * width, 0.0f)),
        activations(buffers(layers + 1, batch * width, 0.5f)),
        cotangents(buffers(layers + 1, batch * width, 0.5f)) {}

  void run() {
    for (size_t i = 0; i < layers; ++i)
      forward.run(stream, activations[i], weights[i], activations[i + 1]);
    for (size_t i = layers; i-- > 0;) {
      weightGradient.run(stream, cotangents[i + 1], activations[i],
                         gradients[i]);
      if (i > 0) // Nothing asks for the gradient of the input.
        inputGradient.run(stream, cotangents[i + 1], weights[i], cotangents[i]);
    }
    CHECK(dnnl_stream_wait(stream));
  }

  /// Keeps the numbers from growing until they are denormal or infinite.
  void reset() {
    for (Buffer &gradient : gradients)
      gradient.fill(0.0f);
  }

private:
  static std::vector<Buffer> buffers(size_t count, size_t elements,
                                     float value) {
    std::vector<Buffer> result;
    for (size_t i = 0; i < count; ++i)
      result.emplace_back(elements, value);
    return result;
  }
  static dnnl_engine_t makeEngine() {
    dnnl_engine_t engine;
    CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    return engine;
  }
  static dnnl_stream_t makeStream(dnnl_engine_t engine) {
    dnnl_stream_t stream;
    CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    return stream;
  }

  size_t layers;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  Product forward, inputGradient, weightGradient;
  std::vector<Buffer> weights, gradients, activations, cotangents;
};

/// oneDNN brings its OpenMP library along; the setting is per calling thread.
void setThreads(int threads) {
  using Setter = void (*)(int);
  auto setter =
      reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (!setter) {
    std::fprintf(stderr, "gemm_rate: this oneDNN does not use OpenMP\n");
    std::exit(1);
  }
  setter(threads);
}

} // namespace

int main(int argc, char **argv) {
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
  // disturbed by what else runs on the machine.
  constexpr int kRounds = 12;
  double flops = 2.0 * width * width * batch * (3 * layers - 1);
  int steps = std::max(1, int(2e10 * threads / flops));
  std::vector<double> seconds(kRounds);
  std::barrier gate(callers);
  auto call = [&](bool isFirst) {
    setThreads(int(threads));
    Step step(layers, width, batch);
    step.run();
    for (double &best : seconds) {
      step.reset();
      gate.arrive_and_wait();
      auto begin = Clock::now();
      for (int i = 0; i < steps; ++i)
        step.run();
      gate.arrive_and_wait();
      if (isFirst)
        best = std::chrono::duration<double>(Clock::now() - begin).count();
    }
  };
  std::vector<std::thread> others;
  for (long i = 1; i < callers; ++i)
    others.emplace_back(call, false);
  call(true);
  for (std::thread &other : others)
    other.join();

  double best = *std::min_element(seconds.begin(), seconds.end());
  std::printf("{\"layers\": %ld, \"width\": %ld, \"batch\": %ld, "
              "\"threads\": %ld, \"callers\": %ld, \"gflops\": %.1f}\n",
              layers, width, batch, threads, callers,
              flops * steps * callers / best * 1e-9);
  return 0;
}
