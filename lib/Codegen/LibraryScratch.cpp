//===- LibraryScratch.cpp - What a library call needs ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Creates the same oneDNN primitive descriptor as runtime/device/cpu, with the
// same attributes: a different one could choose another implementation.
//===----------------------------------------------------------------------===//

#include "penstock/Codegen/LibraryScratch.h"

#include "penstock/Codegen/ConvolutionLibrary.h"

#include "penstock/onednn.h"

#include <mutex>

using namespace mlir;
using namespace penstock;

static FailureOr<int64_t> query(pipeline::GemmOp gemm, int64_t threads,
                                std::string &reason) {
  const runtime::OneDnn &dnnl = runtime::oneDnn();
  if (!dnnl.error.empty()) {
    reason = dnnl.error;
    return failure();
  }
  dnnl.setThreads(static_cast<int>(threads));
  ArrayRef<int64_t> sizes = gemm.getSizes();
  ArrayRef<int64_t> batch = sizes.drop_back(3);
  int64_t m = sizes[batch.size()], n = sizes[batch.size() + 1],
          k = sizes[batch.size() + 2];

  reason = "oneDNN does not take this product";
  auto describe = [&](ArrayRef<int64_t> strides, int64_t rows, int64_t columns,
                      dnnl_memory_desc_t &result) {
    return runtime::describeMatrix(batch.size(), batch.data(), strides.data(),
                                   rows, columns, result);
  };
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t operation;
  if (!describe(gemm.getStridesA(), m, k, a) ||
      !describe(gemm.getStridesB(), k, n, b) ||
      !describe(gemm.getStridesC(), m, n, c) ||
      dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr, &c) !=
          dnnl_success)
    return failure();
  dnnl_primitive_desc_t implementation =
      runtime::chooseProduct(operation, gemm.getAccumulate());
  if (!implementation)
    return failure();

  bool isSlow = !runtime::slowImplementation(implementation).empty();
  auto bytes = static_cast<int64_t>(runtime::scratchBytes(implementation));
  dnnl.dnnl_primitive_desc_destroy(implementation);
  if (isSlow) {
    reason = "oneDNN has only its reference implementation";
    return failure();
  }
  return bytes;
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
  FailureOr<int64_t> bytes = gemmScratchBytes(gemm, threads, reason);
  if (failed(bytes))
    return failure();
  return std::optional<int64_t>(*bytes);
}
