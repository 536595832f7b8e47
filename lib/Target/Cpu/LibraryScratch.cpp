//===- LibraryScratch.cpp - What a library call needs ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By the same code that the runtime computes with.
//===----------------------------------------------------------------------===//

#include "penstock/Target/Cpu/LibraryScratch.h"

#include "penstock/Target/Cpu/ConvolutionLibrary.h"

#include "penstock/product.h"

#include <mutex>

using namespace mlir;
using namespace penstock;

std::optional<penstock_gemm_descriptor>
penstock::describeProduct(pipeline::GemmOp gemm) {
  ArrayRef<int64_t> sizes = gemm.getSizes();
  ArrayRef<int64_t> batch = sizes.drop_back(3);
  auto element = cast<MemRefType>(gemm.getA().getType()).getElementType();
  if (batch.size() > PENSTOCK_MAX_BATCH_RANK || !element.isF32())
    return std::nullopt;
  penstock_gemm_descriptor result = {};
  result.element = PENSTOCK_F32;
  result.batch_rank = static_cast<uint32_t>(batch.size());
  llvm::copy(batch, result.batch);
  llvm::copy(gemm.getStridesA(), result.stride_a);
  llvm::copy(gemm.getStridesB(), result.stride_b);
  llvm::copy(gemm.getStridesC(), result.stride_c);
  result.m = sizes[batch.size()];
  result.n = sizes[batch.size() + 1];
  result.k = sizes[batch.size() + 2];
  result.accumulate = gemm.getAccumulate();
  if (std::optional<uint64_t> panel = gemm.getPanels()) {
    result.weights = PENSTOCK_WEIGHTS_PREPACKED;
    result.panel = static_cast<int64_t>(*panel);
  }
  return result;
}

penstock_gemm_descriptor
penstock::describePacking(pipeline::PanelsAttr panels) {
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

std::optional<ProductPanels> penstock::choosePanels(pipeline::GemmOp gemm) {
  std::optional<penstock_gemm_descriptor> descriptor = describeProduct(gemm);
  if (!descriptor)
    return std::nullopt;
  std::optional<runtime::PrepackedProduct> prepacked =
      runtime::prepackProduct(*descriptor);
  if (!prepacked)
    return std::nullopt;
  const penstock_gemm_descriptor &packing = prepacked->prepack;
  auto panels =
      pipeline::PanelsAttr::get(gemm.getContext(), {packing.k, packing.n},
                                ArrayRef(packing.stride_b).take_front(2),
                                packing.panel, packing.stride_c[0]);
  return ProductPanels{panels,
                       static_cast<int64_t>(prepacked->bytes / sizeof(float)),
                       prepacked->gains};
}

static FailureOr<int64_t> query(pipeline::GemmOp gemm, int64_t threads,
                                std::string &reason) {
  std::optional<penstock_gemm_descriptor> descriptor = describeProduct(gemm);
  if (!descriptor) {
    reason = "it has too many batch dimensions";
    return failure();
  }
  runtime::Product product(*descriptor, threads);
  if (!product.getError().empty()) {
    reason = product.getError();
    return failure();
  }
  return static_cast<int64_t>(product.getScratchBytes());
}

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
  if (auto conv = nn::Convolution::match(op)) {
    std::optional<LibraryConvolution> planned =
        planLibraryConvolution(*conv, threads, reason);
    if (!planned)
      return failure();
    return std::optional<int64_t>(planned->scratchBytes);
  }
  auto gemm = dyn_cast<pipeline::GemmOp>(op);
  if (!gemm)
    return std::optional<int64_t>();
  return gemmScratchBytes(gemm, threads, reason);
}
