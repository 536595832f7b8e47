//===- Products.cpp - Matrix products by cuBLASLt -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime says which strides a call can have; it chooses the algorithm when
// the program opens, within the workspace that is planned here.
//===----------------------------------------------------------------------===//

#include "Library.h"

#include "penstock/cuda.h"
#include "penstock/cuda_product.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::cuda;

FailureOr<LibraryPlan> cuda::planProduct(TargetAttr target, kernel::GemmOp gemm,
                                         std::string &reason) {
  std::optional<penstock_gemm_descriptor> shapes = describeShapes(gemm);
  if (!shapes) {
    reason =
        "it has too many batch dimensions, or is neither of f32 nor of bf16";
    return failure();
  }
  runtime::cuda::ProductCalls calls;
  reason = runtime::cuda::planProductCalls(*shapes, calls);
  if (!reason.empty())
    return failure();
  auto config = dyn_cast_or_null<GemmAttr>(gemm.getConfigAttr());
  if (!config)
    // The emulated library adds in the order of the definition.
    config = GemmAttr::get(gemm.getContext(), target.getTf32(),
                           target.isEmulated() ? 0 : target.getWorkspace());
  return LibraryPlan{config, config.getWorkspace()};
}

std::optional<CallDescriptor> cuda::describeProduct(kernel::GemmOp gemm) {
  std::optional<penstock_gemm_descriptor> shapes = describeShapes(gemm);
  auto config = dyn_cast_or_null<GemmAttr>(gemm.getConfigAttr());
  if (!shapes || !config)
    return std::nullopt;
  return CallDescriptor{*shapes,
                        CallDescriptor::toWords(penstock_cuda_gemm{
                            config.getTf32(), static_cast<bool>(gemm.getBias()),
                            gemm.getRelu()})};
}
