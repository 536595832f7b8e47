//===- Gemm.cpp - Matrix products by oneDNN -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks what the plan says, and runs the parts of a product on the threads of
// the device.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Gemm.h"

#include "penstock/onednn.h"

#include "runtime/device/LibraryCalls.h"

#include <algorithm>
#include <atomic>

using namespace penstock::runtime;

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

Error Gemms::prepare(const penstock_program &program, uint32_t device,
                     char *arena) {
  auto isHere = [&](const penstock_gemm_descriptor &gemm) {
    return isCalledOn(gemm, device);
  };
  bool isNeeded =
      std::any_of(program.gemms, program.gemms + program.gemm_count, isHere);
  if (!isNeeded)
    return {};
  limitOneDnn(program.devices[device].features);
  if (!oneDnn().error.empty())
    return userError("%s", oneDnn().error.c_str());
  threads = std::max(program.devices[device].threads, 1u);
  products.resize(program.gemm_count);
  for (uint32_t i = 0; i < program.gemm_count; ++i) {
    const penstock_gemm_descriptor &gemm = program.gemms[i];
    if (!isHere(gemm))
      continue;
    if (gemm.element != PENSTOCK_F32 ||
        gemm.batch_rank > PENSTOCK_MAX_BATCH_RANK)
      return defect("a product that is not f32 or has more than %d batch "
                    "dimensions: %s",
                    PENSTOCK_MAX_BATCH_RANK, shapeText(gemm).c_str());
    auto call = ProductCall::get(gemm, threads);
    Product &product = products[i].emplace(call, call.threads);
    if (!product.getError().empty())
      return defect("%s: the product %s", product.getError().c_str(),
                    shapeText(gemm).c_str());
    if (product.getScratchBytes() > gemm.scratch.bytes)
      return userError(
          "the product %s needs %llu bytes of scratch, the plan has "
          "%llu: oneDNN takes another algorithm here than where this program "
          "was compiled; compile again here",
          shapeText(gemm).c_str(),
          (unsigned long long)product.getScratchBytes(),
          (unsigned long long)gemm.scratch.bytes);
    if (!product.prepare(arena + scratchOffset(gemm.scratch, device)))
      return defect("oneDNN cannot prepare the product %s",
                    shapeText(gemm).c_str());
  }
  return {};
}

bool Gemms::run(penstock_device *device, uint32_t id, const float *a,
                const float *b, float *c) {
  if (threads <= 1 && products[id]->getParts() <= 1)
    return products[id]->run(0, a, b, c);
  struct Call {
    const Product &product;
    const float *a, *b;
    float *c;
    std::atomic<bool> hasFailed{false};
    void run(int64_t part) {
      if (!product.run(part, a, b, c))
        hasFailed.store(true, std::memory_order_relaxed);
    }
  } call = {*products[id], a, b, c};
  if (call.product.getParts() > 1) {
    penstock_parallel(
        device,
        [](void *closure, int64_t part) {
          static_cast<Call *>(closure)->run(part);
        },
        &call, call.product.getParts());
  } else {
    // The library would divide it by its own rules.
    if (threads > 1)
      oneDnn().setThreads(1);
    call.run(0);
    if (threads > 1)
      oneDnn().setThreads(int(threads));
  }
  return !call.hasFailed.load(std::memory_order_relaxed);
}
