//===- SumKernels.cpp - Adds up on the GPU --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only kernels that no compiler of ours makes: they are the runtime's, and
// the same for all programs. A thread adds up one element. As in compiled
// kernels, f32 below the smallest normal number is zero. The emulated GPU has
// its own in device/emulated/Sums.cpp.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/SumKernels.h"

#include "runtime/device/cuda/Libraries.h"

#include <utility>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

#define PENSTOCK_SUM(NAME, TYPE, ADD, SHIFT)                                   \
  ".visible .entry " NAME "(.param .u64 from, .param .u64 stride,\n"           \
  "                         .param .u64 terms, .param .u64 to,\n"              \
  "                         .param .u64 count) {\n"                            \
  "  .reg .pred %p;\n"                                                         \
  "  .reg ." TYPE " %sum, %term;\n"                                            \
  "  .reg .b32 %block, %size, %thread;\n"                                      \
  "  .reg .b64 %i, %j, %n, %at, %step, %left, %to;\n"                          \
  "  mov.u32 %block, %ctaid.x;\n"                                              \
  "  mov.u32 %size, %ntid.x;\n"                                                \
  "  mov.u32 %thread, %tid.x;\n"                                               \
  "  mul.wide.u32 %i, %block, %size;\n"                                        \
  "  cvt.u64.u32 %j, %thread;\n"                                               \
  "  add.u64 %i, %i, %j;\n"                                                    \
  "  ld.param.u64 %n, [count];\n"                                              \
  "  setp.ge.u64 %p, %i, %n;\n"                                                \
  "  @%p bra DONE;\n"                                                          \
  "  shl.b64 %i, %i, " SHIFT ";\n"                                             \
  "  ld.param.u64 %at, [from];\n"                                              \
  "  cvta.to.global.u64 %at, %at;\n"                                           \
  "  add.u64 %at, %at, %i;\n"                                                  \
  "  ld.param.u64 %step, [stride];\n"                                          \
  "  ld.param.u64 %left, [terms];\n"                                           \
  "  ld.global." TYPE " %sum, [%at];\n"                                        \
  "NEXT:\n"                                                                    \
  "  sub.u64 %left, %left, 1;\n"                                               \
  "  setp.eq.u64 %p, %left, 0;\n"                                              \
  "  @%p bra STORE;\n"                                                         \
  "  add.u64 %at, %at, %step;\n"                                               \
  "  ld.global." TYPE " %term, [%at];\n"                                       \
  "  " ADD " %sum, %sum, %term;\n"                                             \
  "  bra NEXT;\n"                                                              \
  "STORE:\n"                                                                   \
  "  ld.param.u64 %to, [to];\n"                                                \
  "  cvta.to.global.u64 %to, %to;\n"                                           \
  "  add.u64 %to, %to, %i;\n"                                                  \
  "  st.global." TYPE " [%to], %sum;\n"                                        \
  "DONE:\n"                                                                    \
  "  ret;\n"                                                                   \
  "}\n"

const char *const cuda::kSumPtx =
    ".version 7.0\n"
    ".target sm_80\n"
    ".address_size 64\n" PENSTOCK_SUM("penstock_sum_f32", "f32",
                                      "add.rn.ftz.f32", "2")
        PENSTOCK_SUM("penstock_sum_f64", "f64", "add.rn.f64", "3");

Error SumKernels::open(const Driver &driver) {
  const void *data = kSumPtx;
  if (emulatedLibraries)
    data = emulatedLibraries->sums;
  if (int status =
          driver.cuModuleLoadDataEx(&module, data, 0, nullptr, nullptr))
    return describeFailure(driver, status, "loading the kernels of sums");
  for (auto [i, name] :
       {std::pair(0, "penstock_sum_f32"), std::pair(1, "penstock_sum_f64")})
    if (int status = driver.cuModuleGetFunction(&functions[i], module, name))
      return describeFailure(driver, status, "loading the kernels of sums");
  return {};
}

void SumKernels::close(const Driver &driver) {
  if (module)
    (void)driver.cuModuleUnload(module);
  module = nullptr;
}

Error SumKernels::launch(const Driver &driver, bool isDouble, uint64_t from,
                         uint64_t stride, uint64_t terms, uint64_t to,
                         uint64_t count, Stream stream) const {
  constexpr unsigned kBlock = 256;
  // No value has more blocks than one dimension does.
  auto blocks = unsigned((count + kBlock - 1) / kBlock);
  void *parameters[] = {&from,  &stride, &terms, &to,
                        &count, nullptr}; // where the emulated driver stops
  int status = driver.cuLaunchKernel(functions[isDouble], blocks, 1, 1, kBlock,
                                     1, 1, 0, stream, parameters, nullptr);
  return status ? describeFailure(driver, status, "launching a sum") : Error();
}
