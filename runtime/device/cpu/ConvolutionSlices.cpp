//===- ConvolutionSlices.cpp - Parts of a convolution's tensors -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ConvolutionSlices.h.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/ConvolutionSlices.h"

#include <algorithm>

using namespace penstock::runtime;

/// A tensor's sizes; weights of several groups have a dimension for them.
static std::vector<int64_t> getShape(const ConvolutionCall &conv, int tensor) {
  std::vector<int64_t> shape;
  const int64_t *space = conv.kernel;
  if (tensor == Weights) {
    shape = {conv.output_channels / conv.groups,
             conv.input_channels / conv.groups};
    if (conv.groups != 1)
      shape.insert(shape.begin(), conv.groups);
  } else {
    bool isInput = tensor == Input;
    shape = {conv.batch, isInput ? conv.input_channels : conv.output_channels};
    space = isInput ? conv.input : conv.output;
  }
  shape.insert(shape.end(), space, space + conv.spatial_rank);
  return shape;
}

static bool isDepthwise(const ConvolutionCall &conv) {
  return conv.groups > 1 && conv.input_channels == conv.groups &&
         conv.output_channels == conv.groups;
}

/// Returns the number of channels, or groups, that are divided among parts;
/// channelUnit() of them stay together.
static int64_t channelsToDivide(const ConvolutionCall &conv) {
  if (conv.groups > 1)
    return conv.groups;
  return conv.kind == PENSTOCK_CONV_INPUT_GRAD ? conv.input_channels
                                               : conv.output_channels;
}
static int64_t channelUnit(const ConvolutionCall &conv) {
  constexpr int64_t kVector = 16;
  return conv.groups == 1 || isDepthwise(conv) ? kVector : 1;
}

static Range getRange(int64_t size, int64_t unit, int64_t parts,
                      int64_t index) {
  int64_t units = (size + unit - 1) / unit;
  return {units * index / parts * unit,
          std::min(size, units * (index + 1) / parts * unit)};
}

Range ConvolutionDivision::getSamples(const ConvolutionCall &conv,
                                      int64_t index) const {
  return getRange(conv.batch, 1, samples, index / channels);
}

Range ConvolutionDivision::getChannels(const ConvolutionCall &conv,
                                       int64_t index) const {
  return getRange(channelsToDivide(conv), channelUnit(conv), channels,
                  index % channels);
}

ConvolutionDivision
penstock::runtime::divideConvolution(const ConvolutionCall &conv) {
  // Parts for as many threads as are likely; smaller ones would not pay. Where
  // samples make several, channels are not divided: parts would share tensors.
  constexpr int64_t kMost = 8, kMostGradients = 4, kSeveral = 4;
  constexpr double kFewMultiplications = 1 << 22;
  // With fewer channels the library's kernels lose, and with fewer windows the
  // sum over parts takes too much of the time.
  constexpr int64_t kFewChannels = 32, kFewWindows = 512;
  int64_t weights = conv.output_channels * (conv.input_channels / conv.groups);
  int64_t inputs = conv.batch * conv.input_channels, windows = conv.batch;
  for (uint32_t i = 0; i < conv.spatial_rank; ++i) {
    weights *= conv.kernel[i];
    inputs *= conv.input[i];
    windows *= conv.output[i];
  }
  bool isWeightGrad = conv.kind == PENSTOCK_CONV_WEIGHT_GRAD;
  int64_t wanted = std::clamp<int64_t>(
      int64_t(double(windows) * double(weights) / kFewMultiplications), 1,
      isWeightGrad ? kMostGradients : kMost);
  int64_t least = conv.groups == 1 ? kFewChannels : channelUnit(conv);
  int64_t channels = std::max<int64_t>(channelsToDivide(conv) / least, 1);
  int64_t samples = std::min(conv.batch, wanted);
  bool isForward = conv.kind == PENSTOCK_CONV_FORWARD;
  if (conv.layout == PENSTOCK_CPU_CONV_WINOGRAD)
    return {1, isWeightGrad && channels > 1 ? 2 : 1};
  if (isWeightGrad) {
    samples = std::clamp<int64_t>(windows / kFewWindows, 1, samples);
  } else if (weights > (isForward ? inputs : windows * conv.output_channels)) {
    // Each part would read all weights, which are more than the tensor that
    // parts by channels read.
    channels = std::min(channels, wanted);
    return {std::min(samples, wanted / channels), channels};
  }
  if (samples >= kSeveral)
    channels = 1;
  return {samples, std::min(channels, wanted / samples)};
}

bool ConvolutionSlice::cut(const ConvolutionCall &conv, int tensor,
                           Range samples, Range channels) {
  std::vector<int64_t> shape = getShape(conv, tensor);
  dnnl_dims_t dims, strides;
  int rank = static_cast<int>(shape.size());
  for (int64_t i = rank, stride = 1; i-- > 0; stride *= shape[i]) {
    dims[i] = shape[i];
    strides[i] = stride;
  }
  offset = 0;
  auto take = [&](int dimension, int64_t begin, int64_t size) {
    dims[dimension] = size;
    offset += begin * strides[dimension];
  };
  if (tensor != Weights)
    take(0, samples.begin, samples.size());
  if (conv.groups > 1) {
    int64_t each = tensor == Weights ? 1 : shape[1] / conv.groups;
    take(tensor == Weights ? 0 : 1, channels.begin * each,
         channels.size() * each);
  } else {
    bool areInputs = conv.kind == PENSTOCK_CONV_INPUT_GRAD;
    if (tensor == Weights)
      take(areInputs ? 1 : 0, channels.begin, channels.size());
    else if (tensor == (areInputs ? Input : Output))
      take(1, channels.begin, channels.size());
  }
  return oneDnn().dnnl_memory_desc_init_by_strides(
             &outside, rank, dims, dnnl_f32, strides) == dnnl_success;
}

bool ConvolutionSlice::wish(bool any, dnnl_memory_desc_t &result) const {
  const OneDnn &dnnl = oneDnn();
  if (isKnown) {
    result = inside;
    return true;
  }
  if (any)
    return dnnl.dnnl_memory_desc_init_by_tag(
               &result, outside.ndims, outside.dims, dnnl_f32,
               dnnl_format_tag_any) == dnnl_success;
  dnnl_dims_t strides;
  for (int64_t i = outside.ndims, stride = 1; i-- > 0;
       stride *= outside.dims[i])
    strides[i] = stride;
  return dnnl.dnnl_memory_desc_init_by_strides(&result, outside.ndims,
                                               outside.dims, dnnl_f32,
                                               strides) == dnnl_success;
}

bool ConvolutionSlice::planReorder(bool isResult, bool accumulates) {
  const OneDnn &dnnl = oneDnn();
  isReordered = accumulates || !dnnl.dnnl_memory_desc_equal(&outside, &inside);
  if (!isReordered || reorder.type)
    return true;
  dnnl_primitive_attr_t attributes = makeAttributes(accumulates);
  const dnnl_memory_desc_t *from = &outside, *to = &inside;
  if (isResult)
    std::swap(from, to);
  dnnl_status_t status = dnnl.dnnl_reorder_primitive_desc_create(
      &reorder.type, from, dnnl.engine, to, dnnl.engine, attributes);
  dnnl.dnnl_primitive_attr_destroy(attributes);
  return status == dnnl_success;
}

bool ConvolutionSlice::prepare(bool isResult, char *copy, char *scratch) {
  const OneDnn &dnnl = oneDnn();
  if (dnnl.dnnl_memory_create(&outsideMemory, &outside, dnnl.engine, nullptr) !=
      dnnl_success)
    return false;
  if (!isReordered)
    return true;
  if (dnnl.dnnl_memory_create(&insideMemory, &inside, dnnl.engine, copy) !=
      dnnl_success)
    return false;
  reorder.arguments = {{DNNL_ARG_FROM, isResult ? insideMemory : outsideMemory},
                       {DNNL_ARG_TO, isResult ? outsideMemory : insideMemory}};
  return reorder.prepare(scratch);
}

void ConvolutionSlice::destroy() {
  reorder.destroy();
  for (dnnl_memory_t *memory : {&outsideMemory, &insideMemory})
    if (*memory) {
      oneDnn().dnnl_memory_destroy(*memory);
      *memory = nullptr;
    }
}
