//===- ConvolutionSlices.h - Parts of a convolution's tensors ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which samples and channels a part of a convolution computes, and what it
// reads and writes of each tensor.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONSLICES_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONSLICES_H

#include "penstock/cpu.h"

#include "runtime/device/cpu/Step.h"

#include <vector>

namespace penstock::runtime {

/// The tensors of a convolution, in the order of the calls.
enum { Input, Weights, Output };

/// Which of them is computed.
inline int computedTensor(const ConvolutionCall &conv) {
  return conv.kind == PENSTOCK_CONV_FORWARD      ? Output
         : conv.kind == PENSTOCK_CONV_INPUT_GRAD ? Input
                                                 : Weights;
}

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// Into how many parts samples and channels are divided: by the shape alone, as
/// it is part of the numerics. Channels are those of the result, or of the
/// output for gradients of weights; or else groups.
struct ConvolutionDivision {
  int64_t samples = 1, channels = 1;

  int64_t count() const { return samples * channels; }
  Range getSamples(const ConvolutionCall &conv, int64_t index) const;
  Range getChannels(const ConvolutionCall &conv, int64_t index) const;
};

ConvolutionDivision divideConvolution(const ConvolutionCall &conv);

/// The slice of a tensor that a part reads or writes: as we hold it, and as the
/// primitive wants it.
struct ConvolutionSlice {
  dnnl_memory_desc_t outside, inside;
  int64_t offset;       // in the tensor, in floats
  bool isKnown = false; // how the primitive wants it
  bool isReordered = false;
  Step reorder;
  dnnl_memory_t outsideMemory = nullptr, insideMemory = nullptr;
  uint64_t place = 0; // of the reordered copy

  /// False when the library fails.
  bool cut(const ConvolutionCall &conv, int tensor, Range samples,
           Range channels);
  /// The wish for a dense tensor, or for whatever the library likes.
  bool wish(bool any, dnnl_memory_desc_t &result) const;
  bool planReorder(bool isResult, bool accumulates);
  bool prepare(bool isResult, char *copy, char *scratch);
  uint64_t copyBytes() const {
    return isReordered ? aligned(oneDnn().dnnl_memory_desc_get_size(&inside))
                       : 0;
  }
  dnnl_memory_t used() const {
    return isReordered ? insideMemory : outsideMemory;
  }
  void destroy();
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONSLICES_H
