//===- onednn.h - The functions of oneDNN that we call ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loaded when first asked for, so that nothing starts with it. The compiler and
// the runtime describe what they compute through this one piece of code: other
// attributes or strides could choose another implementation.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_ONEDNN_H
#define PENSTOCK_ONEDNN_H

#include <cstdint>
#include <oneapi/dnnl/dnnl.h>
#include <string>

namespace penstock::runtime {

#define PENSTOCK_DNNL_FUNCTIONS(X)                                             \
  X(dnnl_engine_create)                                                        \
  X(dnnl_get_effective_cpu_isa)                                                \
  X(dnnl_set_max_cpu_isa)                                                      \
  X(dnnl_version)                                                              \
  X(dnnl_stream_create)                                                        \
  X(dnnl_stream_destroy)                                                       \
  X(dnnl_memory_desc_init_by_strides)                                          \
  X(dnnl_memory_desc_init_by_tag)                                              \
  X(dnnl_memory_desc_get_size)                                                 \
  X(dnnl_memory_desc_equal)                                                    \
  X(dnnl_memory_create)                                                        \
  X(dnnl_memory_destroy)                                                       \
  X(dnnl_memory_set_data_handle)                                               \
  X(dnnl_dilated_convolution_forward_desc_init)                                \
  X(dnnl_dilated_convolution_backward_data_desc_init)                          \
  X(dnnl_dilated_convolution_backward_weights_desc_init)                       \
  X(dnnl_matmul_desc_init)                                                     \
  X(dnnl_post_ops_create)                                                      \
  X(dnnl_post_ops_destroy)                                                     \
  X(dnnl_post_ops_append_sum)                                                  \
  X(dnnl_primitive_attr_create)                                                \
  X(dnnl_primitive_attr_destroy)                                               \
  X(dnnl_primitive_attr_set_post_ops)                                          \
  X(dnnl_primitive_attr_set_scratchpad_mode)                                   \
  X(dnnl_primitive_desc_create)                                                \
  X(dnnl_primitive_desc_iterator_create)                                       \
  X(dnnl_primitive_desc_iterator_next)                                         \
  X(dnnl_primitive_desc_iterator_fetch)                                        \
  X(dnnl_primitive_desc_iterator_destroy)                                      \
  X(dnnl_primitive_desc_destroy)                                               \
  X(dnnl_primitive_desc_query)                                                 \
  X(dnnl_primitive_desc_query_md)                                              \
  X(dnnl_reorder_primitive_desc_create)                                        \
  X(dnnl_primitive_create)                                                     \
  X(dnnl_primitive_destroy)                                                    \
  X(dnnl_primitive_execute)

struct OneDnn {
#define PENSTOCK_DNNL_POINTER(name) decltype(&::name) name = nullptr;
  PENSTOCK_DNNL_FUNCTIONS(PENSTOCK_DNNL_POINTER)
#undef PENSTOCK_DNNL_POINTER
  dnnl_engine_t engine = nullptr;
  /// Why it cannot be used, or nothing.
  std::string error;

  OneDnn();
  /// Returns true if all of its products add up a sum of up to 384 in one
  /// order. Those for AVX-512 do; others depend on rows, columns and
  /// transposition.
  bool roundsAlike() const;
  /// Its version and the instructions that it uses: what else bits depend on.
  std::string describe() const;
  /// The number of threads of this thread's calls.
  void setThreads(int threads) const;
  int getThreads() const;
  /// Calls body(closure, index, part) for all indices below `count`, divided
  /// into as many parts as there are threads. Calls of the library in it
  /// compute on their one thread.
  void runParts(int64_t count, void *closure,
                void (*body)(void *closure, int64_t index, int part)) const;
  /// Which of so many parts an index is in.
  static int getPart(int64_t index, int64_t count, int parts) {
    return int(((index + 1) * parts - 1) / count);
  }

private:
  /// Functions of the OpenMP runtime that the library loads.
  void (*setOpenMpThreads)(int) = nullptr;
  int (*getOpenMpThreads)() = nullptr;
  int (*getOpenMpMember)() = nullptr;
  int (*getOpenMpTeam)() = nullptr;
  void (*runOpenMp)(void (*body)(void *), void *, unsigned, unsigned) = nullptr;
};

/// Lives as long as the process.
const OneDnn &oneDnn();

/// Lets oneDNN use AVX-512 only for code that does, so that a program has the
/// same algorithms, scratch and bits on every machine that runs it. `features`
/// are those of the code, "+avx,+avx2"; null where nobody said. Only the first
/// call of a process decides.
void limitOneDnn(const char *features);

/// The number of threads of this thread's calls, for as long as it lives.
class WithThreads {
public:
  explicit WithThreads(int threads) : former(oneDnn().getThreads()) {
    oneDnn().setThreads(threads);
  }
  ~WithThreads() { oneDnn().setThreads(former); }
  WithThreads(const WithThreads &) = delete;
  WithThreads &operator=(const WithThreads &) = delete;

private:
  int former;
};

/// Attributes with scratch that the caller gives; optionally adding to the
/// result.
dnnl_primitive_attr_t makeAttributes(bool accumulate);

/// A matrix of `rows` x `columns` per index of the batch; `strides` are of the
/// batch, of rows and of columns. Zero repeats one matrix. The form is the one
/// in which oneDNN sees what is contiguous.
bool describeMatrix(uint32_t batchRank, const int64_t *batch,
                    const int64_t *strides, int64_t rows, int64_t columns,
                    dnnl_memory_desc_t &result);

/// The library's blockwise implementation, whose bits do not depend on strides
/// if sums are short (product.h). They must not: what is a slice of a larger
/// tensor in one place is a tensor of its own on the other side of a cut. The
/// library's newer kernels take dense matrices only, and round otherwise. Null
/// where the library has none.
dnnl_primitive_desc_t chooseProduct(const dnnl_matmul_desc_t &product,
                                    bool accumulate);

/// A slow implementation, hundreds of times slower than others, and what it is
/// called. Empty for a fast one.
std::string slowImplementation(const_dnnl_primitive_desc_t type);

/// Returns the bytes of scratch.
uint64_t scratchBytes(const_dnnl_primitive_desc_t type);

} // namespace penstock::runtime

#endif // PENSTOCK_ONEDNN_H
