//===- OneDnn.cpp - The functions of oneDNN that we call ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Its C API, by name.
//===----------------------------------------------------------------------===//

#include "penstock/onednn.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <type_traits>

using namespace penstock::runtime;

OneDnn::OneDnn() {
  void *handle = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    error = std::string("cannot load oneDNN: ") + dlerror() +
            " (on Debian: apt-get install libdnnl2)";
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
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(handle, name));
    return function != nullptr;
  };
  if (!find(setOpenMpThreads, "omp_set_num_threads") ||
      !find(getOpenMpThreads, "omp_get_max_threads") ||
      !find(getOpenMpMember, "omp_get_thread_num") ||
      !find(getOpenMpTeam, "omp_get_num_threads") ||
      !find(runOpenMp, "GOMP_parallel")) {
    error = "libdnnl.so.2 does not use GCC's OpenMP runtime";
    return;
  }
  if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
    error = "oneDNN finds no CPU engine";
}

bool OneDnn::roundsAlike() const {
  return error.empty() &&
         (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) ==
             dnnl_cpu_isa_avx512_core;
}

std::string OneDnn::describe() const {
  if (!error.empty())
    return error;
  const dnnl_version_t *version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." +
         std::to_string(version->minor) + "." + std::to_string(version->patch) +
         " with instruction set " +
         std::to_string(dnnl_get_effective_cpu_isa());
}

void OneDnn::setThreads(int threads) const {
  if (error.empty())
    setOpenMpThreads(threads);
}

int OneDnn::getThreads() const {
  return error.empty() ? getOpenMpThreads() : 1;
}

namespace {

struct PartedCall {
  void (*body)(void *closure, int64_t index, int part);
  void *closure;
  int64_t count;
  int parts;
  int (*getMember)();
  int (*getTeam)();
  // What the team's own barrier orders, in terms that tools see (Calls.cpp).
  std::atomic<int> order{0};
};

void runMember(void *data) {
  PartedCall &call = *static_cast<PartedCall *>(data);
  call.order.load(std::memory_order_acquire);
  // The team may have come out smaller.
  for (int part = call.getMember(); part < call.parts; part += call.getTeam())
    for (int64_t i = call.count * part / call.parts,
                 end = call.count * (part + 1) / call.parts;
         i < end; ++i)
      call.body(call.closure, i, part);
  call.order.fetch_add(1, std::memory_order_release);
}

} // namespace

void OneDnn::runParts(int64_t count, void *closure,
                      void (*body)(void *closure, int64_t index,
                                   int part)) const {
  int parts = getThreads();
  if (parts <= 1) {
    for (int64_t i = 0; i < count; ++i)
      body(closure, i, 0);
    return;
  }
  PartedCall call = {body,  closure,         count,
                     parts, getOpenMpMember, getOpenMpTeam};
  call.order.store(1, std::memory_order_release);
  runOpenMp(runMember, &call, parts, 0);
  call.order.load(std::memory_order_acquire);
}

const OneDnn &penstock::runtime::oneDnn() {
  static const OneDnn loaded;
  return loaded;
}

dnnl_primitive_attr_t penstock::runtime::makeAttributes(bool accumulate) {
  const OneDnn &dnnl = oneDnn();
  dnnl_primitive_attr_t attributes = nullptr;
  dnnl.dnnl_primitive_attr_create(&attributes);
  dnnl.dnnl_primitive_attr_set_scratchpad_mode(attributes,
                                               dnnl_scratchpad_mode_user);
  if (!accumulate)
    return attributes;
  dnnl_post_ops_t postOps = nullptr;
  dnnl.dnnl_post_ops_create(&postOps);
  dnnl.dnnl_post_ops_append_sum(postOps, 1.0f);
  dnnl.dnnl_primitive_attr_set_post_ops(attributes, postOps);
  dnnl.dnnl_post_ops_destroy(postOps);
  return attributes;
}

bool penstock::runtime::describeMatrix(uint32_t batchRank, const int64_t *batch,
                                       const int64_t *strides, int64_t rows,
                                       int64_t columns,
                                       dnnl_memory_desc_t &result) {
  dnnl_dims_t dims, steps;
  for (uint32_t i = 0; i < batchRank; ++i) {
    // A dimension of 1 is broadcast.
    dims[i] = strides[i] == 0 ? 1 : batch[i];
    steps[i] = strides[i];
  }
  int64_t row = strides[batchRank], column = strides[batchRank + 1];
  // The stride of a dimension of 1 says nothing; give it its usual value.
  if (columns == 1)
    column = 1;
  if (rows == 1)
    row = column == 1 ? columns : 1;
  dims[batchRank] = rows;
  dims[batchRank + 1] = columns;
  steps[batchRank] = row;
  steps[batchRank + 1] = column;
  int64_t span = std::max(rows * row, columns * column);
  for (uint32_t i = batchRank; i-- > 0;) {
    if (dims[i] == 1)
      steps[i] = span;
    span = std::max(span, dims[i] * steps[i]);
  }
  return oneDnn().dnnl_memory_desc_init_by_strides(
             &result, static_cast<int>(batchRank + 2), dims, dnnl_f32, steps) ==
         dnnl_success;
}

static std::string implementationName(const_dnnl_primitive_desc_t type) {
  const char *name = "";
  oneDnn().dnnl_primitive_desc_query(type, dnnl_query_impl_info_str, 0,
                                     static_cast<void *>(&name));
  return name;
}

dnnl_primitive_desc_t
penstock::runtime::chooseProduct(const dnnl_matmul_desc_t &product,
                                 bool accumulate) {
  const OneDnn &dnnl = oneDnn();
  dnnl_primitive_attr_t attributes = makeAttributes(accumulate);
  dnnl_primitive_desc_iterator_t each = nullptr;
  dnnl_status_t status = dnnl.dnnl_primitive_desc_iterator_create(
      &each, &product, attributes, dnnl.engine, nullptr);
  dnnl.dnnl_primitive_attr_destroy(attributes);
  if (status != dnnl_success)
    return nullptr;
  dnnl_primitive_desc_t chosen = dnnl.dnnl_primitive_desc_iterator_fetch(each);
  while (dnnl.dnnl_primitive_desc_iterator_next(each) == dnnl_success) {
    dnnl_primitive_desc_t other = dnnl.dnnl_primitive_desc_iterator_fetch(each);
    bool isBlockwise = implementationName(other) == "gemm:jit";
    dnnl.dnnl_primitive_desc_destroy(isBlockwise ? chosen : other);
    if (!isBlockwise)
      continue;
    chosen = other;
    break;
  }
  dnnl.dnnl_primitive_desc_iterator_destroy(each);
  return chosen;
}

std::string
penstock::runtime::slowImplementation(const_dnnl_primitive_desc_t type) {
  std::string name = implementationName(type);
  return name.rfind("ref", 0) == 0 ? name : "";
}

uint64_t penstock::runtime::scratchBytes(const_dnnl_primitive_desc_t type) {
  const OneDnn &dnnl = oneDnn();
  const dnnl_memory_desc_t *memory =
      dnnl.dnnl_primitive_desc_query_md(type, dnnl_query_scratchpad_md, 0);
  return memory ? dnnl.dnnl_memory_desc_get_size(memory) : 0;
}

void penstock::runtime::limitOneDnn(const char *features) {
  static std::once_flag once;
  std::call_once(once, [&] {
    if (features && !std::strstr(features, "+avx512f") &&
        oneDnn().error.empty())
      oneDnn().dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  });
}
