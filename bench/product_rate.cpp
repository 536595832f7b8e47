//===- product_rate.cpp - Rates of single products by oneDNN --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads products as programs have them, one a line, and prints the rate of the
// implementation that the runtime takes beside the best rate that the library
// reaches on a product of these sizes: by any of its implementations, with
// these strides or with plain matrices, adding or not.
//   product_rate [threads] < lines of "batch... m n k | a | b | c | accumulate"
// with the strides of the operands, each with one per batch dimension and two.
//===----------------------------------------------------------------------===//

#include "penstock/onednn.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <sys/mman.h>
#include <vector>

using namespace penstock::runtime;
using Numbers = std::vector<int64_t>;

namespace {

constexpr int kRounds = 9;

struct Shape {
  Numbers sizes; // batch..., m, n, k
  Numbers a, b, c;
  bool accumulate;

  uint32_t rank() const { return uint32_t(sizes.size() - 3); }
  int64_t m() const { return sizes[rank()]; }
  int64_t n() const { return sizes[rank() + 1]; }
  int64_t k() const { return sizes[rank() + 2]; }
  double flops() const {
    double result = 2;
    for (int64_t size : sizes)
      result *= double(size);
    return result;
  }
  /// The same product of matrices one after the other.
  Shape plain() const {
    Shape result = *this;
    auto dense = [&](Numbers &strides, int64_t rows, int64_t columns) {
      strides[rank() + 1] = 1;
      strides[rank()] = columns;
      int64_t step = rows * columns;
      for (uint32_t i = rank(); i-- > 0; step *= sizes[i])
        strides[i] = step;
    };
    dense(result.a, m(), k());
    dense(result.b, k(), n());
    dense(result.c, m(), n());
    result.accumulate = false;
    return result;
  }
};

/// On huge pages where the system grants them, as a program's arena is.
class Buffer {
public:
  explicit Buffer(size_t count) {
    constexpr size_t kHuge = 2 << 20;
    size_t bytes = (count * sizeof(float) + kHuge - 1) / kHuge * kHuge;
    floats = static_cast<float *>(std::aligned_alloc(kHuge, bytes));
    if (!floats)
      std::exit(1);
    madvise(floats, bytes, MADV_HUGEPAGE); // advice: may be refused
    std::fill_n(floats, count, 1e-3f);
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { std::free(floats); }
  float *floats;
};

size_t spanOf(const Shape &shape, const Numbers &strides, int64_t rows,
              int64_t columns) {
  uint32_t rank = shape.rank();
  int64_t last = (rows - 1) * strides[rank] + (columns - 1) * strides[rank + 1];
  for (uint32_t i = 0; i < rank; ++i)
    last += (shape.sizes[i] - 1) * strides[i];
  return size_t(last + 1);
}

/// Seconds of one product by an implementation; takes the description.
double measure(const Shape &shape, dnnl_primitive_desc_t type) {
  const OneDnn &dnnl = oneDnn();
  dnnl_primitive_t primitive = nullptr;
  dnnl_stream_t stream = nullptr;
  dnnl.dnnl_primitive_create(&primitive, type);
  dnnl.dnnl_stream_create(&stream, dnnl.engine, dnnl_stream_default_flags);
  Buffer a(spanOf(shape, shape.a, shape.m(), shape.k())),
      b(spanOf(shape, shape.b, shape.k(), shape.n())),
      c(spanOf(shape, shape.c, shape.m(), shape.n())),
      scratch(scratchBytes(type) / sizeof(float) + 1);
  float *data[] = {a.floats, b.floats, c.floats, scratch.floats};
  const dnnl_query_t queries[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                  dnnl_query_dst_md, dnnl_query_scratchpad_md};
  const int kinds[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                       DNNL_ARG_SCRATCHPAD};
  dnnl_exec_arg_t arguments[4];
  for (int i = 0; i < 4; ++i) {
    arguments[i].arg = kinds[i];
    dnnl.dnnl_memory_create(
        &arguments[i].memory,
        dnnl.dnnl_primitive_desc_query_md(type, queries[i], 0), dnnl.engine,
        data[i]);
  }
  int count = std::max(1, int(5e8 / shape.flops()));
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
      dnnl.dnnl_primitive_execute(primitive, stream, 4, arguments);
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / count);
  }
  for (dnnl_exec_arg_t &argument : arguments)
    dnnl.dnnl_memory_destroy(argument.memory);
  dnnl.dnnl_primitive_destroy(primitive);
  dnnl.dnnl_stream_destroy(stream);
  dnnl.dnnl_primitive_desc_destroy(type);
  return best;
}

bool describe(const Shape &shape, dnnl_matmul_desc_t &result) {
  dnnl_memory_desc_t a, b, c;
  auto matrix = [&](const Numbers &strides, int64_t rows, int64_t columns,
                    dnnl_memory_desc_t &type) {
    return describeMatrix(shape.rank(), shape.sizes.data(), strides.data(),
                          rows, columns, type);
  };
  return matrix(shape.a, shape.m(), shape.k(), a) &&
         matrix(shape.b, shape.k(), shape.n(), b) &&
         matrix(shape.c, shape.m(), shape.n(), c) &&
         oneDnn().dnnl_matmul_desc_init(&result, &a, &b, nullptr, &c) ==
             dnnl_success;
}

/// The fastest of the library's implementations.
double measureBest(const Shape &shape) {
  const OneDnn &dnnl = oneDnn();
  dnnl_matmul_desc_t product;
  double best = 1e30;
  if (!describe(shape, product))
    return best;
  dnnl_primitive_attr_t attributes = makeAttributes(shape.accumulate);
  dnnl_primitive_desc_iterator_t each = nullptr;
  std::string former;
  for (dnnl_status_t status = dnnl.dnnl_primitive_desc_iterator_create(
           &each, &product, attributes, dnnl.engine, nullptr);
       status == dnnl_success;
       status = dnnl.dnnl_primitive_desc_iterator_next(each)) {
    dnnl_primitive_desc_t type = dnnl.dnnl_primitive_desc_iterator_fetch(each);
    const char *name = "";
    dnnl.dnnl_primitive_desc_query(type, dnnl_query_impl_info_str, 0, &name);
    bool isNew = former != name && slowImplementation(type).empty();
    former = name;
    if (isNew)
      best = std::min(best, measure(shape, type));
    else
      dnnl.dnnl_primitive_desc_destroy(type);
  }
  if (each)
    dnnl.dnnl_primitive_desc_iterator_destroy(each);
  dnnl.dnnl_primitive_attr_destroy(attributes);
  return best;
}

bool readNumbers(std::istringstream &line, Numbers &numbers) {
  for (std::string word; line >> word && word != "|";)
    numbers.push_back(std::atoll(word.c_str()));
  return !numbers.empty();
}

} // namespace

int main(int argc, char **argv) {
  const OneDnn &dnnl = oneDnn();
  if (!dnnl.error.empty()) {
    std::fprintf(stderr, "product_rate: %s\n", dnnl.error.c_str());
    return 1;
  }
  dnnl.setThreads(argc > 1 ? std::atoi(argv[1]) : 1);
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    Shape shape;
    Numbers accumulate;
    dnnl_matmul_desc_t product;
    if (!readNumbers(line, shape.sizes) || shape.sizes.size() < 3 ||
        !readNumbers(line, shape.a) || !readNumbers(line, shape.b) ||
        !readNumbers(line, shape.c) || !readNumbers(line, accumulate)) {
      std::fprintf(stderr, "product_rate: not a product: %s\n", text.c_str());
      return 1;
    }
    shape.accumulate = accumulate.front() != 0;
    if (!describe(shape, product)) {
      std::fprintf(stderr, "product_rate: not described: %s\n", text.c_str());
      return 1;
    }
    dnnl_primitive_desc_t chosen = chooseProduct(product, shape.accumulate);
    const char *name = "";
    if (!chosen || dnnl.dnnl_primitive_desc_query(
                       chosen, dnnl_query_impl_info_str, 0, &name) != 0) {
      std::fprintf(stderr, "product_rate: not computed: %s\n", text.c_str());
      return 1;
    }
    std::string implementation = name;
    double ours = measure(shape, chosen);
    double same = measureBest(shape), plain = measureBest(shape.plain());
    double scale = shape.flops() * 1e-9;
    std::printf("{\"implementation\": \"%s\", \"gflops\": %.1f, \"best\": "
                "%.1f, \"plain\": %.1f}\n",
                implementation.c_str(), scale / ours, scale / same,
                scale / plain);
    std::fflush(stdout);
  }
  return 0;
}
