//===- LibraryScratch.cpp - What a library call needs ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Creates the same oneDNN primitive descriptor as runtime/device/cpu, with the
// same attributes: a different one could choose another implementation. The
// library is loaded when first asked, so that tools start without it.
//===----------------------------------------------------------------------===//

#include "penstock/Codegen/LibraryScratch.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <oneapi/dnnl/dnnl.h>

using namespace mlir;
using namespace penstock;

namespace {

/// What we call of the library, and one engine.
struct Library {
#define PENSTOCK_DNNL_FUNCTIONS(X)                                             \
  X(dnnl_engine_create)                                                        \
  X(dnnl_memory_desc_init_by_strides)                                          \
  X(dnnl_memory_desc_get_size)                                                 \
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
  X(dnnl_primitive_desc_query_md)
#define PENSTOCK_DNNL_POINTER(name) decltype(&::name) name = nullptr;
  PENSTOCK_DNNL_FUNCTIONS(PENSTOCK_DNNL_POINTER)
#undef PENSTOCK_DNNL_POINTER
  void (*setThreads)(int) = nullptr;
  dnnl_engine_t engine = nullptr;
  std::string error;

  Library() {
    void *handle = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      error = dlerror();
      return;
    }
#define PENSTOCK_DNNL_LOAD(name)                                               \
  name = reinterpret_cast<decltype(name)>(dlsym(handle, #name));               \
  if (!name) {                                                                 \
    error = #name " is missing in libdnnl.so.2";                               \
    return;                                                                    \
  }
    PENSTOCK_DNNL_FUNCTIONS(PENSTOCK_DNNL_LOAD)
#undef PENSTOCK_DNNL_LOAD
    // From the OpenMP runtime that the library brings.
    setThreads =
        reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
      error = "oneDNN finds no CPU engine";
  }
};

const Library &library() {
  static const Library loaded;
  return loaded;
}

/// One operand of `rows` x `columns` per batch index. Strides of dimensions of
/// one element say nothing and get their usual value; a batch stride of zero
/// repeats one matrix.
bool describe(ArrayRef<int64_t> batch, ArrayRef<int64_t> strides, int64_t rows,
              int64_t columns, dnnl_memory_desc_t &result) {
  dnnl_dims_t dims, steps;
  size_t rank = batch.size();
  for (size_t i = 0; i < rank; ++i) {
    dims[i] = strides[i] == 0 ? 1 : batch[i];
    steps[i] = strides[i];
  }
  int64_t row = strides[rank], column = strides[rank + 1];
  if (columns == 1)
    column = 1;
  if (rows == 1)
    row = column == 1 ? columns : 1;
  dims[rank] = rows;
  dims[rank + 1] = columns;
  steps[rank] = row;
  steps[rank + 1] = column;
  int64_t span = std::max(rows * row, columns * column);
  for (size_t i = rank; i-- > 0;) {
    if (dims[i] == 1)
      steps[i] = span;
    span = std::max(span, dims[i] * steps[i]);
  }
  return library().dnnl_memory_desc_init_by_strides(
             &result, static_cast<int>(rank + 2), dims, dnnl_f32, steps) ==
         dnnl_success;
}

FailureOr<int64_t> query(pipeline::GemmOp gemm, int64_t threads,
                         std::string &reason) {
  const Library &dnnl = library();
  if (!dnnl.error.empty()) {
    reason = dnnl.error;
    return failure();
  }
  if (dnnl.setThreads)
    dnnl.setThreads(static_cast<int>(threads));
  ArrayRef<int64_t> sizes = gemm.getSizes();
  ArrayRef<int64_t> batch = sizes.drop_back(3);
  int64_t m = sizes[batch.size()], n = sizes[batch.size() + 1],
          k = sizes[batch.size() + 2];

  reason = "oneDNN does not take this product";
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t operation;
  if (!describe(batch, gemm.getStridesA(), m, k, a) ||
      !describe(batch, gemm.getStridesB(), k, n, b) ||
      !describe(batch, gemm.getStridesC(), m, n, c) ||
      dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr, &c) !=
          dnnl_success)
    return failure();
  dnnl_primitive_attr_t attributes = nullptr;
  dnnl.dnnl_primitive_attr_create(&attributes);
  dnnl.dnnl_primitive_attr_set_scratchpad_mode(attributes,
                                               dnnl_scratchpad_mode_user);
  if (gemm.getAccumulate()) {
    dnnl_post_ops_t postOps = nullptr;
    dnnl.dnnl_post_ops_create(&postOps);
    dnnl.dnnl_post_ops_append_sum(postOps, 1.0f);
    dnnl.dnnl_primitive_attr_set_post_ops(attributes, postOps);
    dnnl.dnnl_post_ops_destroy(postOps);
  }
  dnnl_primitive_desc_t implementation = nullptr;
  dnnl_status_t status = dnnl.dnnl_primitive_desc_create(
      &implementation, &operation, attributes, dnnl.engine, nullptr);
  dnnl.dnnl_primitive_attr_destroy(attributes);
  if (status != dnnl_success)
    return failure();

  const char *name = "";
  dnnl.dnnl_primitive_desc_query(implementation, dnnl_query_impl_info_str, 0,
                                 &name);
  bool isReference = std::strncmp(name, "ref", 3) == 0;
  const dnnl_memory_desc_t *scratch = dnnl.dnnl_primitive_desc_query_md(
      implementation, dnnl_query_scratchpad_md, 0);
  int64_t bytes =
      scratch ? static_cast<int64_t>(dnnl.dnnl_memory_desc_get_size(scratch))
              : 0;
  dnnl.dnnl_primitive_desc_destroy(implementation);
  if (isReference) {
    reason = "oneDNN has only its reference implementation";
    return failure();
  }
  return bytes;
}

} // namespace

FailureOr<int64_t> penstock::gemmScratchBytes(pipeline::GemmOp gemm,
                                              int64_t threads,
                                              std::string *reason) {
  // The number of threads is a setting of the calling thread; the rest of the
  // library is safe to call from several, but nothing is gained by it.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::string message;
  FailureOr<int64_t> bytes = query(gemm, threads, message);
  if (failed(bytes) && reason)
    *reason = message;
  return bytes;
}

FailureOr<std::optional<int64_t>>
penstock::libraryScratchBytes(Operation *op, int64_t threads,
                              std::string *reason) {
  auto gemm = dyn_cast<pipeline::GemmOp>(op);
  if (!gemm)
    return std::optional<int64_t>();
  FailureOr<int64_t> bytes = gemmScratchBytes(gemm, threads, reason);
  if (failed(bytes))
    return failure();
  return std::optional<int64_t>(*bytes);
}
