//===- Prepacking.cpp - Weights as library calls like them ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a copy pays is measured: docs/performance.md.
//===----------------------------------------------------------------------===//

#include "passes/Program/Bufferize/Prepacking.h"

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Target/Cpu/ConvolutionLibrary.h"
#include "penstock/Target/Cpu/LibraryScratch.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// Fewer weights are reordered in microseconds, which a call of its own takes,
/// too.
static constexpr int64_t kFewWeights = 1 << 14;
/// Where more windows or rows meet each weight, reordering is less than 3 % of
/// a call.
static constexpr int64_t kManyWindows = 256, kManyRows = 256;
/// A product reorders in the caches, a copy writes and reads memory: fewer
/// calls do not earn that back.
static constexpr int64_t kFewProducts = 4;

using Result = FailureOr<std::optional<Prepacking>>;

/// The argument that a buffer is, in another shape.
static BlockArgument getArgument(Value buffer) {
  for (Operation *op = buffer.getDefiningOp();
       isa_and_nonnull<memref::CollapseShapeOp, memref::ExpandShapeOp>(op);
       op = buffer.getDefiningOp())
    buffer = op->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(buffer);
  auto type = argument ? cast<MemRefType>(argument.getType()) : MemRefType();
  return type && type.getLayout().isIdentity() ? argument : BlockArgument();
}

static Result readConvolution(Operation *op, nn::Convolution conv,
                              int64_t threads) {
  auto weights = dyn_cast<BlockArgument>(conv.weights);
  if (conv.kind == nn::Convolution::WeightGrad || !weights)
    return std::optional<Prepacking>();
  FailureOr<LibraryConvolution> planned =
      requireLibraryConvolution(op, threads);
  if (failed(planned))
    return failure();
  conv.layout = static_cast<nn::ConvolutionLayout>(planned->descriptor.layout);
  // Decided once; who asks again gets the same.
  nn::Convolution::setLayout(op, *conv.layout);
  if (!planned->prepackedBytes)
    return std::optional<Prepacking>();
  ArrayRef<int64_t> output = conv.typeOf(conv.output).getShape();
  int64_t windows =
      output.front() * ShapedType::getNumElements(output.drop_front(2));
  bool pays = conv.typeOf(conv.weights).getNumElements() >= kFewWeights &&
              windows <= kManyWindows;
  return std::optional(
      Prepacking{weights, conv.getPrepacking(),
                 static_cast<int64_t>(planned->prepackedBytes / sizeof(float)),
                 pays, /*calls=*/2});
}

static std::optional<Prepacking> readProduct(GemmOp gemm) {
  BlockArgument weights = getArgument(gemm.getB());
  std::optional<ProductPanels> chosen = choosePanels(gemm);
  if (!weights || !chosen)
    return std::nullopt;
  ArrayRef<int64_t> sizes = gemm.getSizes();
  bool pays = chosen->gains && sizes[1] * sizes[2] >= kFewWeights &&
              sizes[0] <= kManyRows;
  return Prepacking{weights, chosen->panels, chosen->floats, pays,
                    kFewProducts};
}

Result penstock::readPrepacking(Operation *op, int64_t threads) {
  if (isPrepacked(op))
    return std::optional<Prepacking>();
  if (auto gemm = dyn_cast<GemmOp>(op))
    return readProduct(gemm);
  if (std::optional<nn::Convolution> conv = nn::Convolution::match(op))
    return readConvolution(op, *conv, threads);
  return std::optional<Prepacking>();
}

bool penstock::isPrepacked(Operation *op) {
  if (auto gemm = dyn_cast<GemmOp>(op))
    return gemm.getPanels().has_value();
  std::optional<nn::Convolution> conv = nn::Convolution::match(op);
  return conv && conv->prepacked;
}

void penstock::setPrepacked(Operation *op, Attribute form, Value prepacked) {
  auto panels = dyn_cast<PanelsAttr>(form);
  if (!panels)
    return nn::Convolution::setPrepacked(op, prepacked);
  auto gemm = cast<GemmOp>(op);
  gemm.getBMutable().assign(prepacked);
  gemm.setStridesB({panels.getStride(), 1});
  gemm.setPanels(panels.getWidth());
}

void penstock::createPrepacking(OpBuilder &builder, Location loc,
                                Attribute form, Value weights,
                                Value prepacked) {
  if (auto panels = dyn_cast<PanelsAttr>(form))
    PackPanelsOp::create(builder, loc, weights, prepacked, panels);
  else
    nn::PrepackWeightsOp::create(builder, loc, weights, prepacked,
                                 cast<nn::PrepackingAttr>(form));
}

StringRef penstock::getPrepackedSuffix(Attribute form) {
  auto panels = dyn_cast<PanelsAttr>(form);
  if (panels)
    return panels.getStrides()[0] == 1 ? ".panels_transposed" : ".panels";
  return cast<nn::PrepackingAttr>(form).getInputGrad() ? ".prepacked_backward"
                                                       : ".prepacked";
}
