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

#include "penstock/onednn.h"
#include "penstock/product.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
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
    floats.reset(static_cast<float *>(std::aligned_alloc(kHuge, bytes)));
    if (!floats)
      std::exit(1);
    madvise(floats.get(), bytes, MADV_HUGEPAGE); // advice: may be refused
    std::fill_n(floats.get(), count, 1e-3f);
  }
  float *data() const { return floats.get(); }

private:
  struct Free {
    void operator()(float *memory) const { std::free(memory); }
  };
  std::unique_ptr<float[], Free> floats;
};

size_t spanOf(const Shape &shape, const Numbers &strides, int64_t rows,
              int64_t columns) {
  uint32_t rank = shape.rank();
  int64_t last = (rows - 1) * strides[rank] + (columns - 1) * strides[rank + 1];
  for (uint32_t i = 0; i < rank; ++i)
    last += (shape.sizes[i] - 1) * strides[i];
  return size_t(last + 1);
}

/// A, B and C of every copy.
struct Operands {
  std::vector<Buffer> a, b, c;
  Operands(const Shape &shape, int copies) {
    for (int i = 0; i < copies; ++i) {
      a.emplace_back(spanOf(shape, shape.a, shape.m(), shape.k()));
      b.emplace_back(spanOf(shape, shape.b, shape.k(), shape.n()));
      c.emplace_back(spanOf(shape, shape.c, shape.m(), shape.n()));
    }
  }
};

/// One way to compute a product; called with the number of a copy.
struct Way {
  std::function<void(int)> run;
  double best = 1e30; ///< Seconds.
};

/// As programs do.
Way ownWay(const Shape &shape, const Operands &operands, int threads) {
  penstock_gemm_descriptor descriptor = {};
  descriptor.batch_rank = shape.rank();
  std::copy_n(shape.sizes.begin(), shape.rank(), descriptor.batch);
  descriptor.m = shape.m(), descriptor.n = shape.n(), descriptor.k = shape.k();
  std::copy(shape.a.begin(), shape.a.end(), descriptor.stride_a);
  std::copy(shape.b.begin(), shape.b.end(), descriptor.stride_b);
  std::copy(shape.c.begin(), shape.c.end(), descriptor.stride_c);
  descriptor.accumulate = shape.accumulate;
  auto product = std::make_shared<Product>(descriptor, threads);
  auto scratch =
      std::make_shared<Buffer>(product->getScratchBytes() / sizeof(float) + 1);
  if (!product->getError().empty() ||
      !product->prepare(reinterpret_cast<char *>(scratch->data()))) {
    std::fprintf(stderr, "product_rate: a product cannot be computed\n");
    std::exit(1);
  }
  return {[product, scratch, threads, &operands](int copy) {
    struct Call {
      const Product &product;
      const Operands &operands;
      int copy;
    } call = {*product, operands, copy};
    auto runPart = [](void *closure, int64_t part, int) {
      const Call &call = *static_cast<const Call *>(closure);
      call.product.run(part, call.operands.a[call.copy].data(),
                       call.operands.b[call.copy].data(),
                       call.operands.c[call.copy].data());
    };
    const OneDnn &dnnl = oneDnn();
    if (product->getParts() > 1)
      return dnnl.runParts(product->getParts(), &call, runPart);
    dnnl.setThreads(1);
    runPart(&call, 0, 0);
    dnnl.setThreads(threads);
  }};
}

/// By an implementation of the library; takes the description.
Way libraryWay(const Operands &operands, dnnl_primitive_desc_t type) {
  struct Prepared {
    dnnl_primitive_t primitive = nullptr;
    dnnl_stream_t stream = nullptr;
    dnnl_exec_arg_t arguments[4];
    Buffer scratch;
    explicit Prepared(dnnl_primitive_desc_t type)
        : scratch(scratchBytes(type) / sizeof(float) + 1) {
      const OneDnn &dnnl = oneDnn();
      dnnl.dnnl_primitive_create(&primitive, type);
      dnnl.dnnl_stream_create(&stream, dnnl.engine, dnnl_stream_default_flags);
      const dnnl_query_t queries[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                      dnnl_query_dst_md,
                                      dnnl_query_scratchpad_md};
      const int kinds[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                           DNNL_ARG_SCRATCHPAD};
      for (int i = 0; i < 4; ++i) {
        arguments[i].arg = kinds[i];
        dnnl.dnnl_memory_create(
            &arguments[i].memory,
            dnnl.dnnl_primitive_desc_query_md(type, queries[i], 0), dnnl.engine,
            scratch.data());
      }
      dnnl.dnnl_primitive_desc_destroy(type);
    }
    ~Prepared() {
      const OneDnn &dnnl = oneDnn();
      for (dnnl_exec_arg_t &argument : arguments)
        dnnl.dnnl_memory_destroy(argument.memory);
      dnnl.dnnl_primitive_destroy(primitive);
      dnnl.dnnl_stream_destroy(stream);
    }
  };
  auto prepared = std::make_shared<Prepared>(type);
  return {[=, &operands](int copy) {
    const OneDnn &dnnl = oneDnn();
    float *data[] = {operands.a[copy].data(), operands.b[copy].data(),
                     operands.c[copy].data()};
    for (int i = 0; i < 3; ++i)
      dnnl.dnnl_memory_set_data_handle(prepared->arguments[i].memory, data[i]);
    dnnl.dnnl_primitive_execute(prepared->primitive, prepared->stream, 4,
                                prepared->arguments);
  }};
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

/// All of the library's fast implementations.
std::vector<Way> libraryWays(const Shape &shape, const Operands &operands) {
  const OneDnn &dnnl = oneDnn();
  std::vector<Way> ways;
  dnnl_matmul_desc_t product;
  if (!describe(shape, product))
    return ways;
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
      ways.push_back(libraryWay(operands, type));
    else
      dnnl.dnnl_primitive_desc_destroy(type);
  }
  if (each)
    dnnl.dnnl_primitive_desc_iterator_destroy(each);
  dnnl.dnnl_primitive_attr_destroy(attributes);
  return ways;
}

void measure(const Shape &shape, int copies, std::vector<Way> &ways) {
  int count = std::max(1, int(2e8 / shape.flops() / copies)) * copies;
  for (int round = 0; round < kRounds; ++round)
    for (Way &way : ways) {
      // What the way before this one has left in the caches is not its fault.
      for (int i = 0; i < copies; ++i)
        way.run(i);
      auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < count; ++i)
        way.run(i % copies);
      std::chrono::duration<double> time =
          std::chrono::steady_clock::now() - begin;
      way.best = std::min(way.best, time.count() / count);
    }
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
  int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  int copies = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
  dnnl.setThreads(threads);
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    Shape shape;
    Numbers accumulate;
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
    Shape plain = shape.plain();
    Operands operands(shape, copies), dense(plain, copies);
    std::vector<Way> ways = {ownWay(shape, operands, threads)};
    for (Way &way : libraryWays(shape, operands))
      ways.push_back(std::move(way));
    size_t firstPlain = ways.size();
    for (Way &way : libraryWays(plain, dense))
      ways.push_back(std::move(way));
    measure(shape, copies, ways);
    auto best = [&](size_t begin, size_t end) {
      double seconds = 1e30;
      for (size_t i = begin; i < end; ++i)
        seconds = std::min(seconds, ways[i].best);
      return shape.flops() * 1e-9 / seconds;
    };
    std::printf("{\"gflops\": %.1f, \"best\": %.1f, \"plain\": %.1f}\n",
                best(0, 1), best(1, firstPlain), best(firstPlain, ways.size()));
    std::fflush(stdout);
  }
  return 0;
}
