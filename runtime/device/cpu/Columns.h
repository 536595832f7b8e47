//===- Columns.h - A convolution's tensors as matrices ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the weights is a product of two matrices whose common
// dimension runs over the windows of all samples.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_COLUMNS_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_COLUMNS_H

#include "penstock/cpu.h"

namespace penstock::runtime {

/// The sizes of the matrices.
struct ColumnSizes {
  int64_t channels; ///< Of the output: rows of the one.
  int64_t taps;     ///< Input channels times elements of the window: the other.
  int64_t windows;  ///< Of all samples: columns of both.
};

ColumnSizes columnSizes(const ConvolutionCall &conv);

/// rows[channel][window] of one channel of the output.
void gatherChannel(const ConvolutionCall &conv, const float *output,
                   int64_t channel, float *rows);

/// rows[tap][window] of one channel of the input: what the tap reads, zero
/// outside of it.
void gatherTaps(const ConvolutionCall &conv, const float *input,
                int64_t channel, float *rows);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_COLUMNS_H
