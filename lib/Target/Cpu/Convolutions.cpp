//===- Convolutions.cpp - Convolutions on a CPU ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills the runtime's descriptor and asks the code that the runtime will use.
// Whether packing pays is measured: docs/measurements/performance.md.
//===----------------------------------------------------------------------===//

#include "Library.h"

#include "penstock/convolution.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;
using namespace penstock;
using namespace penstock::cpu;

using Algorithm = ConvolutionAlgorithm;
static_assert(int(PENSTOCK_CPU_CONV_PLAIN) == int(Algorithm::Plain) &&
              int(PENSTOCK_CPU_CONV_LIBRARY) == int(Algorithm::Library) &&
              int(PENSTOCK_CPU_CONV_COLUMNS) == int(Algorithm::Columns) &&
              int(PENSTOCK_CPU_CONV_WINOGRAD) == int(Algorithm::Winograd) &&
              int(PENSTOCK_CPU_CONV_TILES_2X2) == int(Algorithm::Tiles2x2) &&
              int(PENSTOCK_CPU_CONV_TILES_4X4) == int(Algorithm::Tiles4x4) &&
              int(PENSTOCK_CPU_CONV_OUTPUT_WINDOWS) ==
                  int(Algorithm::OutputWindows) &&
              int(PENSTOCK_CPU_CONV_COMBINED_GROUPS) ==
                  int(Algorithm::CombinedGroups) &&
              int(PENSTOCK_CPU_CONV_UPRIGHT) == int(Algorithm::Upright));

/// Where more windows meet each weight, reordering is less than 3 % of a call.
static constexpr int64_t kManyWindows = 256;

FailureOr<ConvolutionPlan>
cpu::planConvolution(MLIRContext *context, int64_t threads,
                     const kernel::ConvolutionShape &shape, ConvAttr config,
                     bool readsPacked, bool isDirect, std::string &reason) {
  std::optional<penstock_conv_descriptor> shapes = describeShapes(shape);
  if (!shapes || shapes->element != PENSTOCK_F32) {
    reason = "not a dense f32 convolution in one to three dimensions";
    return failure();
  }
  if (config)
    threads = config.getThreads();
  auto call =
      runtime::ConvolutionCall::get(*shapes, static_cast<uint32_t>(threads));
  if (readsPacked)
    call.weights = PENSTOCK_CPU_WEIGHTS_PREPACKED;
  std::lock_guard<std::mutex> lock(getLibraryLock());
  runtime::setConvolutionThreads(static_cast<int>(threads));
  if (config)
    call.layout = static_cast<uint32_t>(config.getAlgorithm());
  else
    reason = runtime::chooseConvolutionLayout(call, isDirect);
  runtime::Convolution planned;
  if (reason.empty())
    reason = planned.plan(call);
  if (!reason.empty())
    return failure();
  return ConvolutionPlan{
      ConvAttr::get(context, static_cast<Algorithm>(call.layout), threads),
      static_cast<int64_t>(planned.getScratchBytes()),
      static_cast<int64_t>(planned.getPrepackedBytes())};
}

FailureOr<ConvolutionPlan> cpu::planConvolution(int64_t threads,
                                                kernel::ConvOp conv,
                                                std::string &reason) {
  auto packed = dyn_cast_or_null<TypedValue<MemRefType>>(conv.getPacked());
  FailureOr<ConvolutionPlan> plan = planConvolution(
      conv.getContext(), threads, kernel::ConvolutionShape::get(conv),
      dyn_cast_or_null<ConvAttr>(conv.getConfigAttr()), bool(packed),
      asksForDirectConvolution(conv), reason);
  if (failed(plan) || !packed)
    return plan;
  int64_t bytes =
      packed.getType().getNumElements() * static_cast<int64_t>(sizeof(float));
  if (bytes == plan->packedBytes)
    return plan;
  reason = llvm::formatv("its packed weights have {0} bytes, the library wants "
                         "{1}",
                         bytes, plan->packedBytes);
  return failure();
}

/// A copy earns itself back where two calls read it.
static constexpr int64_t kFewCalls = 2;

/// Returns whether packed weights pay at all.
static bool paysFor(const kernel::ConvolutionShape &shape) {
  int64_t windows = shape.output.front() *
                    ShapedType::getNumElements(shape.output.drop_front(2));
  return ShapedType::getNumElements(shape.weights) >= kFewWeights &&
         windows <= kManyWindows;
}

std::optional<PackedWeights>
cpu::getPackedWeights(MLIRContext *context, int64_t threads,
                      const kernel::ConvolutionShape &shape, bool isDirect) {
  if (shape.kind == kernel::ConvolutionKind::WeightGrad || !paysFor(shape))
    return std::nullopt;
  std::string reason;
  FailureOr<ConvolutionPlan> plan =
      planConvolution(context, threads, shape, /*config=*/{},
                      /*readsPacked=*/false, isDirect, reason);
  if (failed(plan) || plan->packedBytes == 0)
    return std::nullopt;
  auto bytes = static_cast<double>(sizeof(float) *
                                   ShapedType::getNumElements(shape.weights));
  return PackedWeights{bytes + static_cast<double>(plan->packedBytes),
                       kFewCalls};
}

FailureOr<std::optional<WeightPacking>>
cpu::planConvolutionPacking(int64_t threads, kernel::ConvOp conv,
                            std::string &reason) {
  if (conv.getPacked() || conv.getKind() == kernel::ConvolutionKind::WeightGrad)
    return std::optional<WeightPacking>();
  FailureOr<ConvolutionPlan> plan = planConvolution(threads, conv, reason);
  if (failed(plan))
    return failure();
  if (!plan->packedBytes)
    return std::optional<WeightPacking>();
  auto shape = kernel::ConvolutionShape::get(conv);
  WeightPacking packing;
  packing.order = BlockedAttr::get(
      conv.getContext(), shape.kind == kernel::ConvolutionKind::InputGrad,
      shape.input, shape.weights, shape.output, shape.strides, shape.dilations,
      shape.pads, shape.groups, plan->config);
  packing.config = plan->config;
  packing.elements = plan->packedBytes / static_cast<int64_t>(sizeof(float));
  packing.pays = paysFor(shape);
  packing.calls = kFewCalls;
  return std::optional(packing);
}

/// Bytes in caches that the transforms of Winograd's algorithm take as long as,
/// per byte that they read or write, with the arithmetic in between; those of
/// the library go over all of a tensor at a time. Measured on an AMD Zen 5, and
/// those of large tiles on a Zen 4, which computes vectors by halves
/// (docs/measurements/planning.md).
static constexpr double kTransform = 1.65, kHalvedTransform = 2.8,
                        kLibraryTransform = 3.3;

/// Asks the library which algorithm it takes, once per shape: a search for cuts
/// asks often. None where it takes none.
static std::optional<uint32_t> findLayout(runtime::ConvolutionCall call,
                                          bool isDirect) {
  static std::map<std::string, std::optional<uint32_t>> known;
  const penstock_conv_descriptor &shapes = call;
  std::string key(reinterpret_cast<const char *>(&shapes), sizeof(shapes));
  key += std::to_string(call.threads) + (isDirect ? " direct" : "");
  std::lock_guard<std::mutex> lock(getLibraryLock());
  auto [found, isNew] = known.try_emplace(key);
  if (!isNew)
    return found->second;
  runtime::setConvolutionThreads(static_cast<int>(call.threads));
  if (runtime::chooseConvolutionLayout(call, isDirect).empty())
    found->second = call.layout;
  return found->second;
}

OpCost cpu::getConvolutionCost(int64_t threads,
                               const kernel::ConvolutionShape &shape,
                               bool isDirect, bool isHalved, OpCost plain) {
  // 1. The algorithm.
  std::optional<penstock_conv_descriptor> shapes = describeShapes(shape);
  if (!shapes || shapes->element != PENSTOCK_F32)
    return plain;
  auto call =
      runtime::ConvolutionCall::get(*shapes, static_cast<uint32_t>(threads));
  std::optional<uint32_t> layout = findLayout(call, isDirect);
  bool isLibrary = layout == PENSTOCK_CPU_CONV_WINOGRAD;
  bool isLarge = isLibrary || layout == PENSTOCK_CPU_CONV_TILES_4X4;
  if (!isLarge && layout != PENSTOCK_CPU_CONV_TILES_2X2)
    return plain;

  // 2. Winograd's: a product per point of a transformed tile. Tensors are read
  // or written once as they are, twice as tiles.
  int64_t size = isLarge ? 4 : 2;
  auto points = static_cast<double>((size + 2) * (size + 2));
  auto tiles = static_cast<double>(call.batch);
  const int64_t *plane =
      call.kind == PENSTOCK_CONV_INPUT_GRAD ? call.input : call.output;
  for (uint32_t i = 0; i < call.spatial_rank; ++i)
    tiles *= static_cast<double>((plane[i] + size - 1) / size);
  auto inputs = static_cast<double>(call.input_channels);
  auto outputs = static_cast<double>(call.output_channels);
  OpCost cost;
  cost.contraction = true;
  cost.flops = 2 * tiles * points * inputs * outputs;
  double transformed =
      sizeof(float) * points * (tiles * (inputs + outputs) + inputs * outputs);
  double perByte = isLibrary             ? kLibraryTransform
                   : isLarge && isHalved ? kHalvedTransform
                                         : kTransform;
  cost.bytes = (plain.bytes + 2 * transformed) * perByte;
  return cost;
}

static std::vector<int64_t> encode(ConvAttr config, uint32_t weights) {
  return CallDescriptor::toWords(
      penstock_cpu_conv{static_cast<uint32_t>(config.getThreads()), weights,
                        static_cast<uint64_t>(config.getAlgorithm())});
}

std::optional<CallDescriptor> cpu::describeConvolution(kernel::ConvOp conv) {
  auto config = dyn_cast_or_null<ConvAttr>(conv.getConfigAttr());
  std::optional<penstock_conv_descriptor> shapes =
      describeShapes(kernel::ConvolutionShape::get(conv));
  if (!config || !shapes)
    return std::nullopt;
  return CallDescriptor{*shapes,
                        encode(config, conv.getPacked()
                                           ? PENSTOCK_CPU_WEIGHTS_PREPACKED
                                           : PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE)};
}

std::optional<CallDescriptor> cpu::describePacking(BlockedAttr blocked) {
  std::optional<penstock_conv_descriptor> shapes = describeShapes(
      {blocked.getInputGrad() ? kernel::ConvolutionKind::InputGrad
                              : kernel::ConvolutionKind::Forward,
       Float32Type::get(blocked.getContext()), blocked.getInput(),
       blocked.getWeights(), blocked.getOutput(), blocked.getStrides(),
       blocked.getDilations(), blocked.getPads(), blocked.getGroups()});
  if (!shapes)
    return std::nullopt;
  return CallDescriptor{
      *shapes, encode(blocked.getConfig(), PENSTOCK_CPU_WEIGHTS_PREPACK)};
}
