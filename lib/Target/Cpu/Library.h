//===- Library.h - Library calls on a CPU -----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans products and convolutions by the code that the runtime computes with,
// so that what is planned is what runs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_TARGET_CPU_LIBRARY_H
#define PENSTOCK_LIB_TARGET_CPU_LIBRARY_H

#include "dialects/Cpu/Cpu.h"
#include "penstock/Target/Target.h"

#include <mutex>

namespace penstock::cpu {

/// Packing fewer weights takes microseconds, which a call of its own takes,
/// too.
inline constexpr int64_t kFewWeights = 1 << 14;

/// Returns the lock for questions to the library: the number of threads is a
/// setting of the calling thread, and nothing is gained by asking from several.
std::mutex &getLibraryLock();

mlir::FailureOr<LibraryPlan> planProduct(int64_t threads, kernel::GemmOp gemm,
                                         std::string &reason);
std::optional<WeightPacking> planProductPacking(int64_t threads,
                                                kernel::GemmOp gemm);
std::optional<CallDescriptor> describeProduct(kernel::GemmOp gemm);
CallDescriptor describePacking(PanelsAttr panels);

/// How the library computes a convolution, and its weights in the library's
/// blocked layout: 0 bytes where it reads them as they are.
struct ConvolutionPlan {
  ConvAttr config;
  int64_t scratchBytes = 0, packedBytes = 0;
};

/// Keeps `config` if there is one; plans for `threads` otherwise.
mlir::FailureOr<ConvolutionPlan>
planConvolution(mlir::MLIRContext *context, int64_t threads,
                const kernel::ConvolutionShape &shape, ConvAttr config,
                bool readsPacked, bool isDirect, std::string &reason);
mlir::FailureOr<ConvolutionPlan>
planConvolution(int64_t threads, kernel::ConvOp conv, std::string &reason);
mlir::FailureOr<std::optional<WeightPacking>>
planConvolutionPacking(int64_t threads, kernel::ConvOp conv,
                       std::string &reason);
/// Returns `plain`, the cost by the definition, or that of the algorithm that
/// the library takes for this shape. `isHalved`: the processor computes the
/// halves of a vector one after the other.
OpCost getConvolutionCost(int64_t threads,
                          const kernel::ConvolutionShape &shape, bool isDirect,
                          bool isHalved, OpCost plain);
/// Returns what packing takes where it pays; none where calls take weights as
/// they are.
std::optional<PackedWeights>
getPackedWeights(mlir::MLIRContext *context, int64_t threads,
                 const kernel::ConvolutionShape &shape, bool isDirect);
std::optional<PackedWeights> getPackedWeights(const ProductShape &shape);
std::optional<CallDescriptor> describeConvolution(kernel::ConvOp conv);
std::optional<CallDescriptor> describePacking(BlockedAttr blocked);

} // namespace penstock::cpu

#endif // PENSTOCK_LIB_TARGET_CPU_LIBRARY_H
