//===- Gemm.cpp - Matrix products by oneDNN -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matmul primitive through the C API. Accumulation is a "sum" post-op: it
// rounds like a product followed by an addition. Reference implementations,
// hundreds of times slower, are refused.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Gemm.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <vector>

using namespace penstock::runtime;

namespace {

/// The functions of the library that we call.
struct Library {
#define PENSTOCK_DNNL_FUNCTIONS(X)                                             \
  X(dnnl_engine_create)                                                        \
  X(dnnl_engine_destroy)                                                       \
  X(dnnl_stream_create)                                                        \
  X(dnnl_stream_destroy)                                                       \
  X(dnnl_memory_desc_init_by_strides)                                          \
  X(dnnl_memory_desc_get_size)                                                 \
  X(dnnl_memory_create)                                                        \
  X(dnnl_memory_destroy)                                                       \
  X(dnnl_memory_set_data_handle)                                               \
  X(dnnl_matmul_desc_init)                                                     \
  X(dnnl_post_ops_create)                                                      \
  X(dnnl_post_ops_destroy)                                                     \
  X(dnnl_post_ops_append_sum)                                                  \
  X(dnnl_primitive_attr_create)                                                \
  X(dnnl_primitive_attr_destroy)                                               \
  X(dnnl_primitive_attr_set_post_ops)                                          \
  X(dnnl_primitive_attr_set_scratchpad_mode)                                   \
  X(dnnl_primitive_desc_create)                                                \
  X(dnnl_primitive_desc_destroy)                                               \
  X(dnnl_primitive_desc_query)                                                 \
  X(dnnl_primitive_desc_query_md)                                              \
  X(dnnl_primitive_create)                                                     \
  X(dnnl_primitive_destroy)                                                    \
  X(dnnl_primitive_execute)
#define PENSTOCK_DNNL_POINTER(name) decltype(&::name) name = nullptr;
  PENSTOCK_DNNL_FUNCTIONS(PENSTOCK_DNNL_POINTER)
#undef PENSTOCK_DNNL_POINTER

  std::string error;

  Library() {
    void *handle = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      error = dlerror();
      return;
    }
#define PENSTOCK_DNNL_LOAD(name)                                               \
  name = reinterpret_cast<decltype(name)>(dlsym(handle, #name));               \
  if (!name)                                                                   \
    error = #name " is missing in libdnnl.so.2";
    PENSTOCK_DNNL_FUNCTIONS(PENSTOCK_DNNL_LOAD)
#undef PENSTOCK_DNNL_LOAD
  }
};

/// Loaded at the first use, for the life of the process.
const Library &library() {
  static const Library loaded;
  return loaded;
}

struct Product {
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_t a = nullptr, b = nullptr, c = nullptr, scratch = nullptr;
  dnnl_exec_arg_t arguments[4];
};

/// One operand: `rows` x `columns` with the descriptor's strides (batch, row,
/// column), in the form that lets oneDNN see what is contiguous.
bool describe(const penstock_gemm_descriptor &gemm, const int64_t *strides,
              int64_t rows, int64_t columns, dnnl_memory_desc_t &result) {
  dnnl_dims_t dims, steps;
  uint32_t rank = gemm.batch_rank;
  for (uint32_t i = 0; i < rank; ++i) {
    // Stride 0 repeats one matrix: a dimension of 1, which is broadcast.
    dims[i] = strides[i] == 0 ? 1 : gemm.batch[i];
    steps[i] = strides[i];
  }
  int64_t row = strides[rank], column = strides[rank + 1];
  // The stride of a dimension of 1 says nothing; give it its usual value.
  if (columns == 1)
    column = 1;
  if (rows == 1)
    row = column == 1 ? columns : 1;
  dims[rank] = rows;
  dims[rank + 1] = columns;
  steps[rank] = row;
  steps[rank + 1] = column;
  int64_t span = std::max(rows * row, columns * column);
  for (uint32_t i = rank; i-- > 0;) {
    if (dims[i] == 1)
      steps[i] = span;
    span = std::max(span, dims[i] * steps[i]);
  }
  return library().dnnl_memory_desc_init_by_strides(
             &result, rank + 2, dims, dnnl_f32, steps) == dnnl_success;
}

} // namespace

struct Gemms::State {
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  std::vector<Product> products; // by descriptor, empty for other devices

  Error prepare(const penstock_gemm_descriptor &gemm,
                const penstock_device_descriptor &device, char *scratch,
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
  const Library &dnnl = library();
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
  if (engine)
    dnnl.dnnl_engine_destroy(engine);
}

Error Gemms::State::prepare(const penstock_gemm_descriptor &gemm,
                            const penstock_device_descriptor &device,
                            char *scratch, Product &product) {
  const Library &dnnl = library();
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
  dnnl_primitive_attr_t attributes = nullptr;
  dnnl_post_ops_t postOps = nullptr;
  dnnl.dnnl_primitive_attr_create(&attributes);
  dnnl.dnnl_primitive_attr_set_scratchpad_mode(attributes,
                                               dnnl_scratchpad_mode_user);
  if (gemm.accumulate) {
    dnnl.dnnl_post_ops_create(&postOps);
    dnnl.dnnl_post_ops_append_sum(postOps, 1.0f);
    dnnl.dnnl_primitive_attr_set_post_ops(attributes, postOps);
    dnnl.dnnl_post_ops_destroy(postOps);
  }

  // 2. The implementation, which must be a fast one within its scratch.
  dnnl_primitive_desc_t implementation = nullptr;
  dnnl_status_t status = dnnl.dnnl_primitive_desc_create(
      &implementation, &operation, attributes, engine, nullptr);
  dnnl.dnnl_primitive_attr_destroy(attributes);
  if (status != dnnl_success)
    return failed("compute");
  const char *name = "";
  dnnl.dnnl_primitive_desc_query(implementation, dnnl_query_impl_info_str, 0,
                                 &name);
  const dnnl_memory_desc_t *scratchType = dnnl.dnnl_primitive_desc_query_md(
      implementation, dnnl_query_scratchpad_md, 0);
  uint64_t scratchBytes =
      scratchType ? dnnl.dnnl_memory_desc_get_size(scratchType) : 0;
  Error error;
  if (std::strncmp(name, "ref", 3) == 0)
    error = defect("oneDNN has only its slow reference implementation (%s) "
                   "for the product %s",
                   name, shapeText(gemm).c_str());
  else if (scratchBytes > device.library_scratch)
    error = defect("the product %s needs %llu bytes of scratch, the plan has "
                   "%llu",
                   shapeText(gemm).c_str(), (unsigned long long)scratchBytes,
                   (unsigned long long)device.library_scratch);
  else if (dnnl.dnnl_primitive_create(&product.primitive, implementation) !=
               dnnl_success ||
           (scratchBytes &&
            dnnl.dnnl_memory_create(&product.scratch, scratchType, engine,
                                    scratch) != dnnl_success))
    error = failed("prepare");
  dnnl.dnnl_primitive_desc_destroy(implementation);
  if (error)
    return error;

  // 3. Handles to rebind.
  if (dnnl.dnnl_memory_create(&product.a, &a, engine, nullptr) !=
          dnnl_success ||
      dnnl.dnnl_memory_create(&product.b, &b, engine, nullptr) !=
          dnnl_success ||
      dnnl.dnnl_memory_create(&product.c, &c, engine, nullptr) != dnnl_success)
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
  const Library &dnnl = library();
  if (!dnnl.error.empty())
    return userError("cannot load oneDNN: %s (on Debian: apt-get install "
                     "libdnnl2)",
                     dnnl.error.c_str());
  state = std::make_unique<State>();
  if (dnnl.dnnl_engine_create(&state->engine, dnnl_cpu, 0) != dnnl_success ||
      dnnl.dnnl_stream_create(&state->stream, state->engine,
                              dnnl_stream_default_flags) != dnnl_success)
    return defect("oneDNN finds no CPU engine");
  const penstock_device_descriptor &descriptor = program.devices[device];
  state->products.resize(program.gemm_count);
  for (uint32_t i = 0; i < program.gemm_count; ++i)
    if (isHere(program.gemms[i]))
      if (Error error = state->prepare(program.gemms[i], descriptor,
                                       arena + descriptor.library_offset,
                                       state->products[i]))
        return error;
  return {};
}

bool Gemms::run(uint32_t id, const float *a, const float *b, float *c) {
  const Library &dnnl = library();
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
