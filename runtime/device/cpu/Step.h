//===- Step.h - A primitive of oneDNN, ready to run -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one call of the runtime runs one or several of.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_STEP_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_STEP_H

#include "penstock/onednn.h"

#include <vector>

namespace penstock::runtime {

constexpr uint64_t kAlignment = 64;

inline uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A primitive, its scratch, and what it is called with.
struct Step {
  dnnl_primitive_desc_t type = nullptr;
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_t scratch = nullptr;
  std::vector<dnnl_exec_arg_t> arguments;

  const dnnl_memory_desc_t *query(dnnl_query_t what) const {
    return oneDnn().dnnl_primitive_desc_query_md(type, what, 0);
  }
  uint64_t getScratchBytes() const { return scratchBytes(type); }
  bool prepare(char *memory) {
    const OneDnn &dnnl = oneDnn();
    if (dnnl.dnnl_primitive_create(&primitive, type) != dnnl_success)
      return false;
    if (!getScratchBytes())
      return true;
    if (dnnl.dnnl_memory_create(&scratch, query(dnnl_query_scratchpad_md),
                                dnnl.engine, memory) != dnnl_success)
      return false;
    arguments.push_back({DNNL_ARG_SCRATCHPAD, scratch});
    return true;
  }
  bool run(dnnl_stream_t stream) const {
    return oneDnn().dnnl_primitive_execute(primitive, stream,
                                           static_cast<int>(arguments.size()),
                                           arguments.data()) == dnnl_success;
  }
  void destroy() {
    const OneDnn &dnnl = oneDnn();
    if (scratch)
      dnnl.dnnl_memory_destroy(scratch);
    if (primitive)
      dnnl.dnnl_primitive_destroy(primitive);
    if (type)
      dnnl.dnnl_primitive_desc_destroy(type);
    *this = Step();
  }
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_STEP_H
