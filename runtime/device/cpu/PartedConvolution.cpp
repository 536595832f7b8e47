//===- PartedConvolution.cpp - A convolution by oneDNN, in parts ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The convolution primitives through the C API. Tensors come with the spatial
// dimensions last; where the library is faster in layouts of its own, they are
// reordered into scratch memory before and after. Gradients of weights are
// added to what is there, those of several ranges of samples one after the
// other.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/PartedState.h"

using namespace penstock::runtime;

PartedConvolution::PartedConvolution() = default;
PartedConvolution::~PartedConvolution() = default;

PartedConvolution::State::~State() {
  const OneDnn &dnnl = oneDnn();
  for (std::vector<ConvolutionSlice> &each : slices)
    for (ConvolutionSlice &slice : each)
      slice.destroy();
  for (ConvolutionPart &part : parts) {
    part.compute.destroy();
    if (part.stream)
      dnnl.dnnl_stream_destroy(part.stream);
  }
  if (stream)
    dnnl.dnnl_stream_destroy(stream);
}

int64_t PartedConvolution::State::sliceCount(int tensor) const {
  if (isSummed(tensor))
    return division.count();
  // Only the result's channels, or groups, are divided.
  int channeled = conv.kind == PENSTOCK_CONV_INPUT_GRAD ? Input : Output;
  bool hasChannels =
      conv.groups > 1 || tensor == Weights || tensor == channeled;
  return (tensor == Weights ? 1 : division.samples) *
         (hasChannels ? division.channels : 1);
}

int64_t PartedConvolution::State::getSlice(int tensor, int64_t part) const {
  int64_t count = sliceCount(tensor);
  if (count == division.count())
    return part;
  if (count == 1)
    return 0;
  return tensor == Weights ? part % division.channels
                           : part / division.channels;
}

bool PartedConvolution::State::cutSlices() {
  for (int tensor : {Input, Weights, Output})
    slices[tensor].resize(sliceCount(tensor));
  parts.resize(division.count());
  for (int64_t i = 0; i < division.count(); ++i)
    for (int tensor : {Input, Weights, Output}) {
      ConvolutionSlice &slice = slices[tensor][getSlice(tensor, i)];
      parts[i].slices[tensor] = &slice;
      if (!slice.cut(conv, tensor, division.getSamples(conv, i),
                     division.getChannels(conv, i)))
        return false;
    }
  return true;
}

/// The descriptor of the convolution, by way of the forward one, which the
/// others want as a hint.
bool PartedConvolution::State::createCompute(ConvolutionPart &part) {
  const OneDnn &dnnl = oneDnn();
  uint32_t rank = conv.spatial_rank;
  dnnl_memory_desc_t wished[3];
  for (int i : {Input, Weights, Output})
    if (!part.slices[i]->wish(conv.layout != PENSTOCK_CPU_CONV_PLAIN,
                              wished[i]))
      return false;
  dnnl_dims_t dilates;
  for (uint32_t i = 0; i < rank; ++i)
    dilates[i] = conv.dilation[i] - 1;

  dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
  if (conv.layout == PENSTOCK_CPU_CONV_WINOGRAD) {
    algorithm = dnnl_convolution_winograd;
    // The library takes other paddings and computes wrong gradients of the
    // input for them (2.6.3).
    for (uint32_t i = 0; i < rank; ++i)
      if (conv.pad_before[i] != 1 || conv.pad_after[i] != 1)
        return false;
  }
  // As a hint, too, the direct one: its layouts are those of the gradients.
  dnnl_alg_kind_t first =
      conv.kind == PENSTOCK_CONV_FORWARD ? algorithm : dnnl_convolution_direct;
  dnnl_convolution_desc_t operation;
  if (dnnl.dnnl_dilated_convolution_forward_desc_init(
          &operation, dnnl_forward_training, first, &wished[Input],
          &wished[Weights], nullptr, &wished[Output], conv.stride, dilates,
          conv.pad_before, conv.pad_after) != dnnl_success)
    return false;
  dnnl_primitive_attr_t attributes = makeAttributes(false);
  dnnl_primitive_desc_t forward = nullptr;
  bool done =
      dnnl.dnnl_primitive_desc_create(&forward, &operation, attributes,
                                      dnnl.engine, nullptr) == dnnl_success;
  if (done && conv.kind == PENSTOCK_CONV_FORWARD) {
    part.compute.type = forward;
  } else if (done) {
    dnnl_status_t status =
        conv.kind == PENSTOCK_CONV_INPUT_GRAD
            ? dnnl.dnnl_dilated_convolution_backward_data_desc_init(
                  &operation, algorithm, &wished[Input], &wished[Weights],
                  &wished[Output], conv.stride, dilates, conv.pad_before,
                  conv.pad_after)
            : dnnl.dnnl_dilated_convolution_backward_weights_desc_init(
                  &operation, algorithm, &wished[Input], &wished[Weights],
                  nullptr, &wished[Output], conv.stride, dilates,
                  conv.pad_before, conv.pad_after);
    done = status == dnnl_success &&
           dnnl.dnnl_primitive_desc_create(&part.compute.type, &operation,
                                           attributes, dnnl.engine,
                                           forward) == dnnl_success;
    dnnl.dnnl_primitive_desc_destroy(forward);
  }
  dnnl.dnnl_primitive_attr_destroy(attributes);
  return done;
}

/// How the part's primitive wants its tensors, and reorders where that is not
/// how they are.
std::string PartedConvolution::State::planSlices(ConvolutionPart &part) {
  static constexpr dnnl_query_t kQueries[3][3] = {
      {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
      {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
      {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
  for (int i : {Input, Weights, Output}) {
    ConvolutionSlice &slice = *part.slices[i];
    const dnnl_memory_desc_t &wanted =
        *part.compute.query(kQueries[conv.kind][i]);
    if (slice.isKnown &&
        !oneDnn().dnnl_memory_desc_equal(&slice.inside, &wanted))
      return fail("divide");
    slice.inside = wanted;
    slice.isKnown = true;
    // Nobody else works while weights are prepacked.
    WithThreads team(isShared(i) || prepacks() ? threads : ownThreads());
    if (!slice.planReorder(i == result, i == result && i == Weights))
      return fail("reorder the tensors of");
  }
  return "";
}

/// The copies that several parts read, or that are added in the end, and behind
/// them those of each thread.
void PartedConvolution::State::place() {
  for (int tensor : {Input, Weights, Output})
    for (ConvolutionSlice &slice : slices[tensor])
      if (isShared(tensor))
        stepBytes = std::max(stepBytes, slice.reorder.getScratchBytes());
  commonBytes = aligned(stepBytes);
  for (int tensor : {Input, Weights, Output})
    for (ConvolutionSlice &slice : slices[tensor])
      if (isCommon(tensor) && !isPrepacked(tensor)) {
        slice.place = commonBytes;
        commonBytes += slice.copyBytes();
      }
  for (ConvolutionPart &part : parts) {
    uint64_t bytes = part.compute.getScratchBytes();
    for (int tensor : {Input, Weights, Output})
      if (!isShared(tensor) && part.slices[tensor]->isReordered)
        bytes = std::max(bytes, part.slices[tensor]->reorder.getScratchBytes());
    bytes = aligned(bytes);
    for (int tensor : {Input, Weights, Output})
      if (!isCommon(tensor) && !isPrepacked(tensor)) {
        part.slices[tensor]->place = bytes;
        bytes += part.slices[tensor]->copyBytes();
      }
    threadBytes = std::max(threadBytes, bytes);
  }
}

std::string PartedConvolution::State::plan() {
  if (!cutSlices())
    return fail("take");
  for (ConvolutionPart &part : parts) {
    WithThreads own(ownThreads());
    if (!createCompute(part))
      return fail("compute");
    const char *name = "";
    oneDnn().dnnl_primitive_desc_query(part.compute.type,
                                       dnnl_query_impl_info_str, 0,
                                       static_cast<void *>(&name));
    implementation = name;
    if (!slowImplementation(part.compute.type).empty())
      return "oneDNN has only its slow reference implementation (" +
             implementation + ") for the " + describe(conv);
    if (std::string error = planSlices(part); !error.empty())
      return error;
  }
  placeWeights();
  place();
  return "";
}

bool PartedConvolution::State::prepare(char *scratch) {
  const OneDnn &dnnl = oneDnn();
  static constexpr int kArguments[3][3] = {
      {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
      {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
      {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
  auto createStream = [&](dnnl_stream_t &result) {
    return dnnl.dnnl_stream_create(&result, dnnl.engine,
                                   dnnl_stream_default_flags) == dnnl_success;
  };
  if (!createStream(stream))
    return false;
  for (int tensor : {Input, Weights, Output})
    for (ConvolutionSlice &slice : slices[tensor])
      if (isShared(tensor) &&
          !slice.prepare(tensor == result, scratch + slice.place, scratch))
        return false;
  WithThreads own(ownThreads());
  for (int64_t i = 0; i < division.count(); ++i) {
    ConvolutionPart &part = parts[i];
    char *area = scratch + commonBytes + getArea(i) * threadBytes;
    if (!createStream(part.stream))
      return false;
    for (int tensor : {Input, Weights, Output}) {
      ConvolutionSlice &slice = *part.slices[tensor];
      char *copy = (isCommon(tensor) ? scratch : area) + slice.place;
      if (!isShared(tensor) && !slice.prepare(tensor == result, copy, area))
        return false;
      part.compute.arguments.push_back(
          {kArguments[conv.kind][tensor], slice.used()});
    }
    if (!part.compute.prepare(area))
      return false;
  }
  return true;
}

/// Says where the tensors are, and reorders what several parts read.
bool PartedConvolution::State::bind(const float *const (&data)[3]) {
  for (int tensor : {Input, Weights, Output})
    for (ConvolutionSlice &slice : slices[tensor]) {
      if (oneDnn().dnnl_memory_set_data_handle(
              slice.outsideMemory,
              const_cast<float *>(data[tensor]) + slice.offset) != dnnl_success)
        return false;
      if (!slice.isReordered)
        continue;
      if (isPrepacked(tensor)
              ? oneDnn().dnnl_memory_set_data_handle(
                    slice.insideMemory, atPlace(data[tensor], slice)) !=
                    dnnl_success
              : isShared(tensor) && !slice.reorder.run(stream))
        return false;
    }
  return true;
}

void PartedConvolution::State::runPart(ConvolutionPart &part) {
  bool done = true;
  auto reorder = [&](int tensor) {
    ConvolutionSlice &slice = *part.slices[tensor];
    if (slice.isReordered && !isCommon(tensor) && !isPrepacked(tensor))
      done &= slice.reorder.run(part.stream);
  };
  for (int tensor : {Input, Weights, Output})
    if (tensor != result)
      reorder(tensor);
  done &= part.compute.run(part.stream);
  reorder(result);
  if (!done)
    hasFailed.store(true, std::memory_order_relaxed);
}

/// The gradients of some weights, in the order of samples.
void PartedConvolution::State::addSums(int64_t channels) {
  for (int64_t i = channels; i < division.count(); i += division.channels)
    if (!parts[i].slices[result]->reorder.run(parts[i].stream))
      hasFailed.store(true, std::memory_order_relaxed);
}

/// The same in two dimensions, of which the second has one element: the library
/// has its kernels for groups of one channel in two dimensions only, and those
/// for long windows in the first of them.
static ConvolutionCall upright(ConvolutionCall conv) {
  conv.spatial_rank = 2;
  conv.input[1] = conv.kernel[1] = conv.output[1] = 1;
  conv.stride[1] = conv.dilation[1] = 1;
  conv.pad_before[1] = conv.pad_after[1] = 0;
  return conv;
}

std::string PartedConvolution::plan(const ConvolutionCall &descriptor) {
  bool isUpright = descriptor.layout == PENSTOCK_CPU_CONV_UPRIGHT;
  const std::string message =
      "oneDNN has no upright kernel for the " + describe(descriptor);
  if (isUpright && descriptor.spatial_rank != 1)
    return message;
  const ConvolutionCall conv = isUpright ? upright(descriptor) : descriptor;
  ConvolutionDivision division = divideConvolution(conv);
  state = std::make_unique<State>(conv, division);
  std::string error = state->plan();
  if (!error.empty() && division.count() != 1) {
    // Parts have other shapes, which the library may not take.
    state = std::make_unique<State>(conv, ConvolutionDivision());
    error = state->plan();
  }
  if (isUpright && error.empty() &&
      state->implementation.find("jit_dw") == std::string::npos)
    return message;
  return error;
}

std::string PartedConvolution::getImplementation() const {
  return state->implementation;
}

uint64_t PartedConvolution::getScratchBytes() const {
  if (state->prepacks())
    return 0;
  return state->commonBytes + state->areas() * state->threadBytes;
}

bool PartedConvolution::prepare(char *scratch) {
  return state->prepacks() ? state->preparePrepacking()
                           : state->prepare(scratch);
}

bool PartedConvolution::run(const float *input, const float *weights,
                            const float *output) {
  if (state->prepacks())
    return state->prepack(weights, output);
  const OneDnn &dnnl = oneDnn();
  state->hasFailed.store(false, std::memory_order_relaxed);
  if (!state->bind({input, weights, output}))
    return false;
  if (state->isWhole())
    state->runPart(state->parts[0]);
  else
    dnnl.runParts(state->division.count(), state.get(),
                  [](void *closure, int64_t index, int) {
                    State &state = *static_cast<State *>(closure);
                    state.runPart(state.parts[index]);
                  });
  if (state->isSummed(state->result))
    dnnl.runParts(state->division.channels, state.get(),
                  [](void *closure, int64_t index, int) {
                    static_cast<State *>(closure)->addSums(index);
                  });
  return !state->hasFailed.load(std::memory_order_relaxed);
}
