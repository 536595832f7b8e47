//===- Sums.cpp - Adds up on the emulated GPU -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What device/cuda/SumKernels.cpp has as PTX, thread by thread.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Enqueue.h"
#include "runtime/device/emulated/Nccl.h"

using namespace penstock::runtime;
using namespace penstock::runtime::emulated;

extern "C" {
uint32_t ps_emulated_read_ptx_sreg_tid_x();
uint32_t ps_emulated_read_ptx_sreg_ctaid_x();
uint32_t ps_emulated_read_ptx_sreg_ntid_x();
}

template <typename T> static void add(void **parameters) {
  auto get = [&](int i) { return *static_cast<uint64_t *>(parameters[i]); };
  uint64_t stride = get(1), terms = get(2), count = get(4);
  uint64_t i = uint64_t(ps_emulated_read_ptx_sreg_ctaid_x()) *
                   ps_emulated_read_ptx_sreg_ntid_x() +
               ps_emulated_read_ptx_sreg_tid_x();
  if (i >= count)
    return;
  auto at = [](uint64_t address) {
    return atAddress(reinterpret_cast<T *>(address));
  };
  T sum = at(get(0))[i];
  for (uint64_t term = 1; term < terms; ++term)
    sum += at(get(0) + term * stride)[i];
  at(get(3))[i] = sum;
}

static constexpr penstock_emulated_kernel kKernels[] = {
    {"penstock_sum_f32", add<float>, 0, 0},
    {"penstock_sum_f64", add<double>, 0, 0}};

const penstock_image emulated::sums = {
    PENSTOCK_IMAGE_EMULATED, 0, 0, 0, kKernels, kKernels + 2};
