//===- Kernel.h - The kernel dialect ----------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the dialect, its interfaces and its ops; see KernelOps.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_KERNEL_KERNEL_H
#define PENSTOCK_DIALECTS_KERNEL_KERNEL_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Kernel/KernelDialect.h.inc"
#include "dialects/Kernel/KernelEnums.h.inc"

#include "dialects/Kernel/KernelAttrInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttributes.h.inc"

#include "dialects/Kernel/KernelOpInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.h.inc"

namespace penstock::kernel {

/// A PackingAttrInterface, on a variable of role prepacked: the order in which
/// it holds the weights that `pipeline.parameter` names.
inline constexpr llvm::StringLiteral kPackingAttr = "kernel.packing";

/// The mathematics of a convolution, on tensors or buffers. Shapes are those of
/// the op: batch or output channels first, spatial dimensions last.
struct ConvolutionShape {
  ConvolutionKind kind;
  mlir::Type element;
  llvm::ArrayRef<int64_t> input, weights, output;
  llvm::ArrayRef<int64_t> strides, dilations, pads;
  int64_t groups;

  static ConvolutionShape get(ConvOp conv);
  unsigned getSpatialRank() const { return strides.size(); }
};

} // namespace penstock::kernel

#endif // PENSTOCK_DIALECTS_KERNEL_KERNEL_H
