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
#include <dlfcn.h>
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
  oneDnn().dnnl_primitive_desc_query(type, dnnl_query_impl_info_str, 0, &name);
  return name;
}

/// The library prefers its newer kernels, which pack a right operand that lies
/// by rows as a whole before they begin, and read a result that they add to
/// late and at once. Its older ones do both block by block: from a few hundred
/// summands on they are 1.0 to 1.7 times as fast on such products, and already
/// from 64 on where gradients of weights are made, which mostly add
/// (docs/performance.md). Not by whether this product adds: zeros that it adds
/// to may be written beforehand in one place and not in another.
static bool prefersBlockwise(const dnnl_matmul_desc_t &product) {
  const dnnl_memory_desc_t &a = product.src_desc, &b = product.weights_desc;
  if (a.ndims != 2)
    return false;
  int64_t m = a.dims[0], k = a.dims[1], n = b.dims[1];
  bool isTransposed = a.format_desc.blocking.strides[1] != 1;
  constexpr int64_t kLeast = 32, kLeastWork = int64_t(1) << 22;
  return b.format_desc.blocking.strides[1] == 1 && m >= kLeast && n >= kLeast &&
         k >= (isTransposed ? 64 : 256) && m * n * k >= kLeastWork;
}

/// The matrices of a descriptor within larger ones of twice their width.
static dnnl_memory_desc_t spread(const dnnl_memory_desc_t &matrix) {
  dnnl_memory_desc_t result = matrix;
  int last = matrix.ndims - 1;
  dnnl_dim_t *strides = result.format_desc.blocking.strides;
  int within = strides[last] == 1 ? last : last - 1;
  for (int i = 0; i <= last; ++i)
    if (i != within)
      strides[i] *= 2;
  return result;
}

/// The implementation of that name, or the library's first without one.
static dnnl_primitive_desc_t findProduct(const dnnl_matmul_desc_t &product,
                                         dnnl_primitive_attr_t attributes,
                                         const char *wanted) {
  const OneDnn &dnnl = oneDnn();
  dnnl_primitive_desc_iterator_t each = nullptr;
  if (dnnl.dnnl_primitive_desc_iterator_create(
          &each, &product, attributes, dnnl.engine, nullptr) != dnnl_success)
    return nullptr;
  dnnl_primitive_desc_t found = nullptr;
  do {
    found = dnnl.dnnl_primitive_desc_iterator_fetch(each);
    if (!wanted || implementationName(found) == wanted)
      break;
    dnnl.dnnl_primitive_desc_destroy(found);
    found = nullptr;
  } while (dnnl.dnnl_primitive_desc_iterator_next(each) == dnnl_success);
  dnnl.dnnl_primitive_desc_iterator_destroy(each);
  return found;
}

dnnl_primitive_desc_t
penstock::runtime::chooseProduct(const dnnl_matmul_desc_t &product,
                                 bool accumulate) {
  const OneDnn &dnnl = oneDnn();
  dnnl_primitive_attr_t attributes = makeAttributes(accumulate);
  // What a matrix is part of depends on the cut: it may be a tensor by itself,
  // or a slice of a larger one. The newer kernels take some products of dense
  // matrices only, and each implementation rounds in its own way, whatever the
  // strides are. So the choice is the one for slices.
  std::string name = "gemm:jit";
  if (!prefersBlockwise(product)) {
    dnnl_memory_desc_t a = spread(product.src_desc),
                       b = spread(product.weights_desc),
                       c = spread(product.dst_desc);
    dnnl_matmul_desc_t slices;
    dnnl_primitive_desc_t first = nullptr;
    if (dnnl.dnnl_matmul_desc_init(&slices, &a, &b, nullptr, &c) ==
        dnnl_success)
      first = findProduct(slices, attributes, nullptr);
    if (first) {
      name = implementationName(first);
      dnnl.dnnl_primitive_desc_destroy(first);
    }
  }
  dnnl_primitive_desc_t chosen = findProduct(product, attributes, name.c_str());
  if (!chosen)
    chosen = findProduct(product, attributes, nullptr);
  dnnl.dnnl_primitive_attr_destroy(attributes);
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
