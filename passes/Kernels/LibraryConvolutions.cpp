//===- LibraryConvolutions.cpp - What a library computes ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See LibraryConvolutions.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/LibraryConvolutions.h"

#include "penstock/Target/Target.h"

using namespace mlir;
using namespace penstock;

bool penstock::takesConvolution(Operation *op, const nn::Convolution &conv,
                                Type element, StringRef instead) {
  TargetAttrInterface attribute = pipeline::getTarget(op);
  const Target *target = attribute ? Target::get(attribute) : nullptr;
  if (!target)
    return false;
  kernel::ConvolutionShape shape{
      static_cast<kernel::ConvolutionKind>(conv.kind),
      element,
      conv.getType(conv.input).getShape(),
      conv.getType(conv.weights).getShape(),
      conv.getType(conv.output).getShape(),
      conv.strides,
      conv.dilations,
      conv.pads,
      conv.groups};
  std::string reason;
  if (target->takesConvolution(attribute, shape, asksForDirectConvolution(op),
                               reason))
    return true;
  op->emitRemark(instead) << ": " << reason;
  return false;
}
