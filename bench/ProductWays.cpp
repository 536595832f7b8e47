//===- ProductWays.cpp - Ways to compute a matrix product -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything is prepared beforehand, as it is in a program.
//===----------------------------------------------------------------------===//

#include "ProductWays.h"

#include "penstock/onednn.h"
#include "penstock/product.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>

using namespace penstock::bench;
using namespace penstock::runtime;

[[noreturn]] static void fail(const char *why) {
  std::fprintf(stderr, "%s\n", why);
  std::exit(1);
}

double Shape::flops() const {
  double result = 2;
  for (int64_t size : sizes)
    result *= double(size);
  return result;
}

Shape Shape::plain() const {
  Shape result = *this;
  auto dense = [&](std::vector<int64_t> &strides, int64_t rows,
                   int64_t columns) {
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

Buffer::Buffer(size_t count, float value) : count(count) {
  constexpr size_t kHuge = 2 << 20;
  size_t bytes = (count * sizeof(float) + kHuge - 1) / kHuge * kHuge;
  floats.reset(static_cast<float *>(std::aligned_alloc(kHuge, bytes)));
  if (!floats)
    fail("out of memory");
  madvise(floats.get(), bytes, MADV_HUGEPAGE); // advice: may be refused
  fill(value);
}

void Buffer::fill(float value) { std::fill_n(floats.get(), count, value); }

void Buffer::Free::operator()(float *memory) const { std::free(memory); }

Way penstock::bench::ownWay(const Shape &shape, int threads) {
  ProductCall descriptor = {};
  descriptor.batch_rank = shape.rank();
  std::copy_n(shape.sizes.begin(), shape.rank(), descriptor.batch);
  descriptor.m = shape.m(), descriptor.n = shape.n(), descriptor.k = shape.k();
  std::copy(shape.a.begin(), shape.a.end(), descriptor.stride_a);
  std::copy(shape.b.begin(), shape.b.end(), descriptor.stride_b);
  std::copy(shape.c.begin(), shape.c.end(), descriptor.stride_c);
  descriptor.accumulate = shape.accumulate;
  auto product = std::make_shared<Product>(descriptor, threads);
  auto scratch = std::make_shared<Buffer>(
      product->getScratchBytes() / sizeof(float) + 1, 0.0f);
  if (!product->getError().empty() ||
      !product->prepare(reinterpret_cast<char *>(scratch->data())))
    fail("a product cannot be computed");
  return {
      [product, scratch, threads](const float *a, const float *b, float *c) {
        struct Call {
          const Product &product;
          const float *a, *b;
          float *c;
        } call = {*product, a, b, c};
        auto runPart = [](void *closure, int64_t part, int) {
          const Call &call = *static_cast<const Call *>(closure);
          call.product.run(part, call.a, call.b, call.c);
        };
        const OneDnn &dnnl = oneDnn();
        if (product->getParts() > 1)
          return dnnl.runParts(product->getParts(), &call, runPart);
        if (threads > 1)
          dnnl.setThreads(1);
        runPart(&call, 0, 0);
        if (threads > 1)
          dnnl.setThreads(threads);
      }};
}

namespace {

/// A primitive with its arguments; takes the description.
struct Prepared {
  dnnl_primitive_t primitive = nullptr;
  dnnl_stream_t stream = nullptr;
  dnnl_exec_arg_t arguments[4];
  Buffer scratch;

  explicit Prepared(dnnl_primitive_desc_t type)
      : scratch(scratchBytes(type) / sizeof(float) + 1, 0.0f) {
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

} // namespace

static Way libraryWay(dnnl_primitive_desc_t type) {
  auto prepared = std::make_shared<Prepared>(type);
  return {[prepared](const float *a, const float *b, float *c) {
    const OneDnn &dnnl = oneDnn();
    float *data[] = {const_cast<float *>(a), const_cast<float *>(b), c};
    for (int i = 0; i < 3; ++i)
      dnnl.dnnl_memory_set_data_handle(prepared->arguments[i].memory, data[i]);
    dnnl.dnnl_primitive_execute(prepared->primitive, prepared->stream, 4,
                                prepared->arguments);
  }};
}

static bool describe(const Shape &shape, dnnl_matmul_desc_t &result) {
  dnnl_memory_desc_t a, b, c;
  auto matrix = [&](const std::vector<int64_t> &strides, int64_t rows,
                    int64_t columns, dnnl_memory_desc_t &type) {
    return describeMatrix(shape.rank(), shape.sizes.data(), strides.data(),
                          rows, columns, type);
  };
  return matrix(shape.a, shape.m(), shape.k(), a) &&
         matrix(shape.b, shape.k(), shape.n(), b) &&
         matrix(shape.c, shape.m(), shape.n(), c) &&
         oneDnn().dnnl_matmul_desc_init(&result, &a, &b, nullptr, &c) ==
             dnnl_success;
}

std::vector<Way> penstock::bench::libraryWays(const Shape &shape) {
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
      ways.push_back(libraryWay(type));
    else
      dnnl.dnnl_primitive_desc_destroy(type);
  }
  if (each)
    dnnl.dnnl_primitive_desc_iterator_destroy(each);
  dnnl.dnnl_primitive_attr_destroy(attributes);
  return ways;
}
