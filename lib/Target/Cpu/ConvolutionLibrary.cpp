//===- ConvolutionLibrary.cpp - Convolutions by the library ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills the runtime's descriptor and asks the code that the runtime will use.
//===----------------------------------------------------------------------===//

#include "penstock/Target/Cpu/ConvolutionLibrary.h"

#include "dialects/Pipeline/DiscardableAttributes.h"

#include "penstock/convolution.h"

#include "llvm/Support/FormatVariadic.h"

#include <mutex>

using namespace mlir;
using namespace penstock;

static_assert(int(PENSTOCK_CONV_FORWARD) == nn::Convolution::Forward &&
              int(PENSTOCK_CONV_INPUT_GRAD) == nn::Convolution::InputGrad &&
              int(PENSTOCK_CONV_WEIGHT_GRAD) == nn::Convolution::WeightGrad);
using Layout = nn::ConvolutionLayout;
static_assert(int(PENSTOCK_CONV_PLAIN) == int(Layout::Plain) &&
              int(PENSTOCK_CONV_LIBRARY) == int(Layout::Library) &&
              int(PENSTOCK_CONV_COLUMNS) == int(Layout::Columns) &&
              int(PENSTOCK_CONV_WINOGRAD) == int(Layout::Winograd) &&
              int(PENSTOCK_CONV_TILES_2X2) == int(Layout::Tiles2x2) &&
              int(PENSTOCK_CONV_TILES_4X4) == int(Layout::Tiles4x4) &&
              int(PENSTOCK_CONV_OUTPUT_WINDOWS) == int(Layout::OutputWindows) &&
              int(PENSTOCK_CONV_COMBINED_GROUPS) ==
                  int(Layout::CombinedGroups) &&
              int(PENSTOCK_CONV_UPRIGHT) == int(Layout::Upright));

/// None where the runtime's descriptor has no place for it, or layout for none.
static std::optional<penstock_conv_descriptor>
describe(uint32_t kind, nn::PrepackingAttr conv) {
  unsigned rank = conv.getStrides().size();
  ArrayRef<int64_t> input = conv.getInput(), weights = conv.getWeights(),
                    output = conv.getOutput();
  if (rank > PENSTOCK_MAX_SPATIAL_RANK)
    return std::nullopt;
  penstock_conv_descriptor result = {};
  result.kind = kind;
  result.element = PENSTOCK_F32;
  result.layout = static_cast<uint32_t>(conv.getLayout());
  result.spatial_rank = rank;
  result.batch = input[0];
  result.groups = conv.getGroups();
  result.input_channels = input[1];
  result.output_channels = output[1];
  for (unsigned i = 0; i < rank; ++i) {
    result.input[i] = input[i + 2];
    result.kernel[i] = weights[i + 2];
    result.output[i] = output[i + 2];
    result.stride[i] = conv.getStrides()[i];
    result.dilation[i] = conv.getDilations()[i];
    result.pad_before[i] = conv.getPads()[i];
    // What the last window reaches; where it leaves elements, none.
    int64_t reach = (result.output[i] - 1) * result.stride[i] +
                    (result.kernel[i] - 1) * result.dilation[i] + 1;
    result.pad_after[i] =
        std::max<int64_t>(reach - result.input[i] - result.pad_before[i], 0);
  }
  return result;
}

static std::optional<penstock_conv_descriptor> describe(nn::Convolution conv) {
  for (Value value : {conv.input, conv.weights, conv.output}) {
    ShapedType type = conv.typeOf(value);
    if (!type.getElementType().isF32() || type.getNumElements() == 0)
      return std::nullopt;
    if (auto memref = dyn_cast<MemRefType>(type))
      if (!memref.getLayout().isIdentity())
        return std::nullopt;
  }
  if (!conv.layout)
    conv.layout = Layout::Plain;
  auto result = describe(conv.kind, conv.getPrepacking());
  if (result && conv.prepacked)
    result->weights = PENSTOCK_WEIGHTS_PREPACKED;
  return result;
}

std::optional<penstock_conv_descriptor>
penstock::describeConvolution(const nn::Convolution &conv) {
  return conv.layout ? describe(conv) : std::nullopt;
}

std::optional<penstock_conv_descriptor>
penstock::describePrepacking(nn::PrepackingAttr prepacking) {
  auto result = describe(prepacking.getInputGrad() ? PENSTOCK_CONV_INPUT_GRAD
                                                   : PENSTOCK_CONV_FORWARD,
                         prepacking);
  if (result)
    result->weights = PENSTOCK_WEIGHTS_PREPACK;
  return result;
}

/// Whether the program asks for it.
static bool isDirect(const nn::Convolution &conv) {
  Value input = conv.input;
  Operation *module = input.getParentRegion()->getParentOp();
  while (module->getParentOp())
    module = module->getParentOp();
  return module->hasAttr(pipeline::kDirectConvolutionAttr);
}

std::optional<LibraryConvolution>
penstock::planLibraryConvolution(const nn::Convolution &conv, int64_t threads,
                                 std::string *reason) {
  auto fail = [&](std::string text) {
    if (reason)
      *reason = std::move(text);
    return std::nullopt;
  };
  std::optional<penstock_conv_descriptor> descriptor = describe(conv);
  if (!descriptor)
    return fail("not a dense f32 convolution in one to three dimensions");
  // The number of threads is a setting of the calling thread.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  runtime::setConvolutionThreads(static_cast<int>(threads));
  std::string error;
  if (!conv.layout)
    error = runtime::chooseConvolutionLayout(*descriptor, isDirect(conv));
  runtime::Convolution planned;
  if (error.empty())
    error = planned.plan(*descriptor);
  if (!error.empty())
    return fail(std::move(error));
  uint64_t prepackedBytes = planned.getPrepackedBytes();
  if (conv.prepacked) {
    uint64_t bytes =
        conv.typeOf(conv.prepacked).getNumElements() * sizeof(float);
    if (bytes != prepackedBytes)
      return fail(llvm::formatv("its prepacked weights have {0} bytes, the "
                                "library wants {1}",
                                bytes, prepackedBytes));
  }
  return LibraryConvolution{*descriptor, planned.getScratchBytes(),
                            prepackedBytes};
}

FailureOr<LibraryConvolution>
penstock::requireLibraryConvolution(Operation *op, int64_t threads) {
  std::string reason;
  std::optional<LibraryConvolution> planned =
      planLibraryConvolution(*nn::Convolution::match(op), threads, &reason);
  if (!planned)
    return op->emitError("no library can compute this convolution: ") << reason;
  return *planned;
}
