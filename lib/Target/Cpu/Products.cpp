//===- Products.cpp - Matrix products on a CPU ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills the runtime's descriptor and asks the code that the runtime will use.
// Whether packing pays is measured: docs/measurements/performance.md.
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

static std::vector<int64_t> encode(int64_t threads, uint32_t weights,
                                   int64_t width, int64_t stride) {
  return CallDescriptor::toWords(penstock_cpu_gemm{
      static_cast<uint32_t>(threads), weights, width, stride});
}

static std::optional<penstock_gemm_descriptor>
describeF32Shapes(kernel::GemmOp gemm) {
  std::optional<penstock_gemm_descriptor> shapes = describeShapes(gemm);
  bool isF32 = shapes && shapes->element == PENSTOCK_F32 &&
               shapes->result_element == PENSTOCK_F32;
  return isF32 ? shapes : std::nullopt;
}

/// A product that has a config, or would have this one.
static std::optional<CallDescriptor> describe(kernel::GemmOp gemm,
                                              GemmAttr config) {
  std::optional<penstock_gemm_descriptor> shapes = describeF32Shapes(gemm);
  if (!shapes)
    return std::nullopt;
  return CallDescriptor{*shapes, encode(config.getThreads(),
                                        gemm.getPacked()
                                            ? PENSTOCK_CPU_WEIGHTS_PREPACKED
                                            : PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE,
                                        config.getWidth(), config.getStride())};
}

std::optional<CallDescriptor> cpu::describeProduct(kernel::GemmOp gemm) {
  auto config = dyn_cast_or_null<GemmAttr>(gemm.getConfigAttr());
  return config ? describe(gemm, config) : std::nullopt;
}

FailureOr<LibraryPlan> cpu::planProduct(int64_t threads, kernel::GemmOp gemm,
                                        std::string &reason) {
  auto config = dyn_cast_or_null<GemmAttr>(gemm.getConfigAttr());
  if (!config)
    config = GemmAttr::get(gemm.getContext(), threads, 0, 0);
  std::optional<CallDescriptor> descriptor = describe(gemm, config);
  if (!descriptor) {
    reason = "it has too many batch dimensions, or is not of f32";
    return failure();
  }
  std::lock_guard<std::mutex> lock(getLibraryLock());
  // As the runtime reads it.
  auto shapes = std::get<penstock_gemm_descriptor>(descriptor->call);
  shapes.config = descriptor->config.data();
  auto call = runtime::ProductCall::get(shapes, /*deviceThreads=*/1);
  runtime::Product product(call, call.threads);
  reason = product.getError();
  if (!reason.empty())
    return failure();
  return LibraryPlan{config, static_cast<int64_t>(product.getScratchBytes())};
}

/// Returns whether copies in panels pay at all.
static bool paysFor(const penstock_gemm_descriptor &product,
                    const runtime::PrepackedProduct &prepacked) {
  return prepacked.gains && product.k * product.n >= kFewWeights &&
         product.m <= kManyRows;
}

std::optional<WeightPacking> cpu::planProductPacking(int64_t threads,
                                                     kernel::GemmOp gemm) {
  std::optional<penstock_gemm_descriptor> shapes =
      gemm.getPacked() ? std::nullopt : describeF32Shapes(gemm);
  if (!shapes)
    return std::nullopt;
  std::optional<runtime::PrepackedProduct> prepacked = runtime::prepackProduct(
      runtime::ProductCall::get(*shapes, /*deviceThreads=*/1));
  if (!prepacked)
    return std::nullopt;
  const runtime::ProductCall &packing = prepacked->prepack;
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
  result.pays = paysFor(*shapes, *prepacked);
  result.calls = kFewProducts;
  return result;
}

std::optional<PackedWeights> cpu::getPackedWeights(const ProductShape &shape) {
  runtime::ProductCall call = {};
  call.element = call.result_element = PENSTOCK_F32;
  call.m = shape.m, call.n = shape.n, call.k = shape.k;
  call.stride_a[0] = shape.k, call.stride_a[1] = 1;
  llvm::copy(shape.strides, call.stride_b);
  call.stride_c[0] = shape.n, call.stride_c[1] = 1;
  std::optional<runtime::PrepackedProduct> prepacked =
      runtime::prepackProduct(call);
  if (!prepacked || !paysFor(call, *prepacked))
    return std::nullopt;
  return PackedWeights{static_cast<double>(prepacked->bytes) +
                           static_cast<double>(sizeof(float) * call.k * call.n),
                       kFewProducts};
}

CallDescriptor cpu::describePacking(PanelsAttr panels) {
  penstock_gemm_descriptor shapes = {};
  shapes.element = PENSTOCK_F32;
  shapes.k = panels.getSizes()[0];
  shapes.n = panels.getSizes()[1];
  llvm::copy(panels.getStrides(), shapes.stride_b);
  return {shapes, encode(/*threads=*/1, PENSTOCK_CPU_WEIGHTS_PREPACK,
                         panels.getWidth(), panels.getStride())};
}
