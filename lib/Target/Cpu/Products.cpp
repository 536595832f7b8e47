//===- Products.cpp - Matrix products on a CPU ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills the runtime's descriptor and asks the code that the runtime will use.
// Whether packing pays is measured: docs/performance.md.
//===----------------------------------------------------------------------===//

#include "Library.h"

#include "penstock/product.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::cpu;

/// Where more rows meet each weight, reordering is less than 3 % of a call.
static constexpr int64_t kManyRows = 256;
/// A product reorders in the caches, a copy writes and reads memory: fewer
/// calls do not earn that back.
static constexpr int64_t kFewProducts = 4;

std::mutex &cpu::getLibraryLock() {
  static std::mutex mutex;
  return mutex;
}

/// A product that has a config, or would have this one.
static std::optional<penstock_gemm_descriptor> describe(kernel::GemmOp gemm,
                                                        GemmAttr config) {
  std::optional<penstock_gemm_descriptor> result = describeShapes(gemm);
  if (result && gemm.getPacked()) {
    result->weights = PENSTOCK_WEIGHTS_PREPACKED;
    result->panel = config.getWidth();
    result->stride_b[0] = config.getStride();
    result->stride_b[1] = 1;
  }
  return result;
}

std::optional<penstock_gemm_descriptor>
cpu::describeProduct(kernel::GemmOp gemm) {
  auto config = dyn_cast_or_null<GemmAttr>(gemm.getConfigAttr());
  return config ? describe(gemm, config) : std::nullopt;
}

FailureOr<LibraryPlan> cpu::planProduct(int64_t threads, kernel::GemmOp gemm,
                                        std::string &reason) {
  auto config = dyn_cast_or_null<GemmAttr>(gemm.getConfigAttr());
  if (!config)
    config = GemmAttr::get(gemm.getContext(), threads, 0, 0);
  std::optional<penstock_gemm_descriptor> descriptor = describe(gemm, config);
  if (!descriptor) {
    reason = "it has too many batch dimensions";
    return failure();
  }
  std::lock_guard<std::mutex> lock(getLibraryLock());
  runtime::Product product(*descriptor, config.getThreads());
  reason = product.getError();
  if (!reason.empty())
    return failure();
  return LibraryPlan{config, static_cast<int64_t>(product.getScratchBytes())};
}

std::optional<WeightPacking> cpu::planProductPacking(int64_t threads,
                                                     kernel::GemmOp gemm) {
  std::optional<penstock_gemm_descriptor> descriptor =
      gemm.getPacked() ? std::nullopt : describeShapes(gemm);
  if (!descriptor)
    return std::nullopt;
  std::optional<runtime::PrepackedProduct> prepacked =
      runtime::prepackProduct(*descriptor);
  if (!prepacked)
    return std::nullopt;
  const penstock_gemm_descriptor &packing = prepacked->prepack;
  if (auto config = dyn_cast_or_null<GemmAttr>(gemm.getConfigAttr()))
    threads = config.getThreads();
  MLIRContext *context = gemm.getContext();
  WeightPacking result;
  result.order = PanelsAttr::get(context, {packing.k, packing.n},
                                 ArrayRef(packing.stride_b).take_front(2),
                                 packing.panel, packing.stride_c[0]);
  result.config =
      GemmAttr::get(context, threads, packing.panel, packing.stride_c[0]);
  result.elements = static_cast<int64_t>(prepacked->bytes / sizeof(float));
  result.pays = prepacked->gains && packing.k * packing.n >= kFewWeights &&
                descriptor->m <= kManyRows;
  result.calls = kFewProducts;
  return result;
}

penstock_gemm_descriptor cpu::describePacking(PanelsAttr panels) {
  penstock_gemm_descriptor result = {};
  result.element = PENSTOCK_F32;
  result.k = panels.getSizes()[0];
  result.n = panels.getSizes()[1];
  llvm::copy(panels.getStrides(), result.stride_b);
  result.stride_c[0] = panels.getStride();
  result.stride_c[1] = 1;
  result.weights = PENSTOCK_WEIGHTS_PREPACK;
  result.panel = panels.getWidth();
  return result;
}
