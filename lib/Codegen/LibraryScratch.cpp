//===- LibraryScratch.cpp - What a library call needs ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By the same code that the runtime computes with.
//===----------------------------------------------------------------------===//

#include "penstock/Codegen/LibraryScratch.h"

#include "penstock/Codegen/ConvolutionLibrary.h"

#include "penstock/product.h"

#include <mutex>

using namespace mlir;
using namespace penstock;

static FailureOr<int64_t> query(pipeline::GemmOp gemm, int64_t threads,
                                std::string &reason) {
  ArrayRef<int64_t> sizes = gemm.getSizes();
  ArrayRef<int64_t> batch = sizes.drop_back(3);
  penstock_gemm_descriptor descriptor = {};
  descriptor.element = PENSTOCK_F32;
  descriptor.batch_rank = static_cast<uint32_t>(batch.size());
  if (batch.size() > PENSTOCK_MAX_BATCH_RANK) {
    reason = "it has too many batch dimensions";
    return failure();
  }
  llvm::copy(batch, descriptor.batch);
  llvm::copy(gemm.getStridesA(), descriptor.stride_a);
  llvm::copy(gemm.getStridesB(), descriptor.stride_b);
  llvm::copy(gemm.getStridesC(), descriptor.stride_c);
  descriptor.m = sizes[batch.size()];
  descriptor.n = sizes[batch.size() + 1];
  descriptor.k = sizes[batch.size() + 2];
  descriptor.accumulate = gemm.getAccumulate();
  runtime::Product product(descriptor, threads);
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
