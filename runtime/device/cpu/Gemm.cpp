//===- Gemm.cpp - Matrix products by oneDNN -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matmul primitive through the C API; accumulation is a "sum" post-op.
// Reference implementations, hundreds of times slower, are refused.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Gemm.h"

#include "penstock/onednn.h"

#include "runtime/device/cpu/Arena.h"

#include <algorithm>
#include <vector>

using namespace penstock::runtime;

namespace {

struct Product {
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_t a = nullptr, b = nullptr, c = nullptr, scratch = nullptr;
  dnnl_exec_arg_t arguments[4];
};

/// One operand with the descriptor's strides.
bool describe(const penstock_gemm_descriptor &gemm, const int64_t *strides,
              int64_t rows, int64_t columns, dnnl_memory_desc_t &result) {
  return describeMatrix(gemm.batch_rank, gemm.batch, strides, rows, columns,
                        result);
}

} // namespace

struct Gemms::State {
  dnnl_stream_t stream = nullptr;
  std::vector<Product> products; // by descriptor, empty for other devices

  Error prepare(const penstock_gemm_descriptor &gemm, char *scratch,
                Product &product);
  ~State();
};

std::string penstock::runtime::shapeText(const penstock_gemm_descriptor &gemm) {
  auto strides = [&](const int64_t *list) {
    std::string text;
    for (uint32_t i = 0; i < gemm.batch_rank + 2; ++i)
      text += format(i ? ", %lld" : "%lld", (long long)list[i]);
    return text;
  };
  std::string batch;
  for (uint32_t i = 0; i < gemm.batch_rank; ++i)
    batch += format("%lld x ", (long long)gemm.batch[i]);
  return format("%s(%lld x %lld by %lld x %lld), strides [%s], [%s], [%s]",
                batch.c_str(), (long long)gemm.m, (long long)gemm.k,
                (long long)gemm.k, (long long)gemm.n,
                strides(gemm.stride_a).c_str(), strides(gemm.stride_b).c_str(),
                strides(gemm.stride_c).c_str());
}

Gemms::Gemms() = default;
Gemms::~Gemms() = default;
void Gemms::clear() { state = nullptr; }

Gemms::State::~State() {
  const OneDnn &dnnl = oneDnn();
  for (Product &product : products) {
    if (product.primitive)
      dnnl.dnnl_primitive_destroy(product.primitive);
    for (dnnl_memory_t memory :
         {product.a, product.b, product.c, product.scratch})
      if (memory)
        dnnl.dnnl_memory_destroy(memory);
  }
  if (stream)
    dnnl.dnnl_stream_destroy(stream);
}

Error Gemms::State::prepare(const penstock_gemm_descriptor &gemm, char *scratch,
                            Product &product) {
  const OneDnn &dnnl = oneDnn();
  auto failed = [&](const char *what) {
    return defect("oneDNN cannot %s the product %s", what,
                  shapeText(gemm).c_str());
  };
  if (gemm.element != PENSTOCK_F32 || gemm.batch_rank > PENSTOCK_MAX_BATCH_RANK)
    return defect("a product that is not f32 or has more than %d batch "
                  "dimensions: %s",
                  PENSTOCK_MAX_BATCH_RANK, shapeText(gemm).c_str());

  // 1. Operands and attributes.
  dnnl_memory_desc_t a, b, c;
  if (!describe(gemm, gemm.stride_a, gemm.m, gemm.k, a) ||
      !describe(gemm, gemm.stride_b, gemm.k, gemm.n, b) ||
      !describe(gemm, gemm.stride_c, gemm.m, gemm.n, c))
    return failed("describe");
  dnnl_matmul_desc_t operation;
  if (dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr, &c) !=
      dnnl_success)
    return failed("describe");
  // 2. The implementation, which must be a fast one within its scratch.
  dnnl_primitive_desc_t implementation =
      chooseProduct(operation, gemm.accumulate);
  if (!implementation)
    return failed("compute");
  uint64_t scratchSize = scratchBytes(implementation);
  Error error;
  if (std::string slow = slowImplementation(implementation); !slow.empty())
    error = defect("oneDNN has only its slow reference implementation (%s) "
                   "for the product %s",
                   slow.c_str(), shapeText(gemm).c_str());
  else if (scratchSize > gemm.scratch.bytes)
    error = defect("the product %s needs %llu bytes of scratch, the plan has "
                   "%llu",
                   shapeText(gemm).c_str(), (unsigned long long)scratchSize,
                   (unsigned long long)gemm.scratch.bytes);
  else if (dnnl.dnnl_primitive_create(&product.primitive, implementation) !=
               dnnl_success ||
           (scratchSize && dnnl.dnnl_memory_create(
                               &product.scratch,
                               dnnl.dnnl_primitive_desc_query_md(
                                   implementation, dnnl_query_scratchpad_md, 0),
                               dnnl.engine, scratch) != dnnl_success))
    error = failed("prepare");
  dnnl.dnnl_primitive_desc_destroy(implementation);
  if (error)
    return error;

  // 3. Handles to rebind.
  if (dnnl.dnnl_memory_create(&product.a, &a, dnnl.engine, nullptr) !=
          dnnl_success ||
      dnnl.dnnl_memory_create(&product.b, &b, dnnl.engine, nullptr) !=
          dnnl_success ||
      dnnl.dnnl_memory_create(&product.c, &c, dnnl.engine, nullptr) !=
          dnnl_success)
    return failed("prepare");
  product.arguments[0] = {DNNL_ARG_SRC, product.a};
  product.arguments[1] = {DNNL_ARG_WEIGHTS, product.b};
  product.arguments[2] = {DNNL_ARG_DST, product.c};
  product.arguments[3] = {DNNL_ARG_SCRATCHPAD, product.scratch};
  return {};
}

Error Gemms::prepare(const penstock_program &program, uint32_t device,
                     char *arena) {
  auto isHere = [&](const penstock_gemm_descriptor &gemm) {
    return gemm.device == device || gemm.device == PENSTOCK_EVERY_DEVICE;
  };
  bool isNeeded =
      std::any_of(program.gemms, program.gemms + program.gemm_count, isHere);
  if (!isNeeded)
    return {};
  const OneDnn &dnnl = oneDnn();
  if (!dnnl.error.empty())
    return userError("%s", dnnl.error.c_str());
  state = std::make_unique<State>();
  if (dnnl.dnnl_stream_create(&state->stream, dnnl.engine,
                              dnnl_stream_default_flags) != dnnl_success)
    return defect("oneDNN cannot create a stream");
  state->products.resize(program.gemm_count);
  for (uint32_t i = 0; i < program.gemm_count; ++i)
    if (isHere(program.gemms[i]))
      if (Error error = state->prepare(
              program.gemms[i],
              arena + scratchOffset(program.gemms[i].scratch, device),
              state->products[i]))
        return error;
  return {};
}

bool Gemms::run(uint32_t id, const float *a, const float *b, float *c) {
  const OneDnn &dnnl = oneDnn();
  Product &product = state->products[id];
  return dnnl.dnnl_memory_set_data_handle(product.a, const_cast<float *>(a)) ==
             dnnl_success &&
         dnnl.dnnl_memory_set_data_handle(product.b, const_cast<float *>(b)) ==
             dnnl_success &&
         dnnl.dnnl_memory_set_data_handle(product.c, c) == dnnl_success &&
         dnnl.dnnl_primitive_execute(product.primitive, state->stream,
                                     product.scratch ? 4 : 3,
                                     product.arguments) == dnnl_success;
}
