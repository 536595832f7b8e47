//===- PrepackedWeights.cpp - Weights as oneDNN likes them ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The slices of the weights that the parts of a convolution read, each in the
// layout of its primitive, one behind the other. Whether weights are prepacked
// or reordered in each call, the primitives and so the bits are the same.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/PartedState.h"

using namespace penstock::runtime;

uint64_t PartedConvolution::getPrepackedBytes() const {
  return state->prepackedBytes;
}

/// Where the reorders need scratch, nothing is prepacked: it is made while
/// other calls have theirs.
void PartedConvolution::State::placeWeights() {
  if (result == Weights)
    return;
  uint64_t bytes = 0;
  for (ConvolutionSlice &slice : slices[Weights]) {
    if (!slice.isReordered || slice.reorder.getScratchBytes())
      return;
    slice.place = bytes;
    bytes += slice.copyBytes();
  }
  prepackedBytes = bytes;
}

bool PartedConvolution::State::preparePrepacking() {
  const OneDnn &dnnl = oneDnn();
  if (dnnl.dnnl_stream_create(&stream, dnnl.engine,
                              dnnl_stream_default_flags) != dnnl_success)
    return false;
  for (ConvolutionSlice &slice : slices[Weights])
    if (!slice.prepare(/*isResult=*/false, nullptr, nullptr))
      return false;
  return true;
}

bool PartedConvolution::State::prepack(const float *weights,
                                       const float *prepacked) {
  const OneDnn &dnnl = oneDnn();
  for (ConvolutionSlice &slice : slices[Weights])
    if (dnnl.dnnl_memory_set_data_handle(
            slice.outsideMemory, const_cast<float *>(weights) + slice.offset) !=
            dnnl_success ||
        dnnl.dnnl_memory_set_data_handle(
            slice.insideMemory, atPlace(prepacked, slice)) != dnnl_success ||
        !slice.reorder.run(stream))
      return false;
  return true;
}
