//===- cpu.h - Configs of library calls on CPU devices ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `config` of a product or convolution points to where a CPU device runs
// it. The compiler writes it from #cpu.gemm and #cpu.conv; nothing but the CPU
// device reads it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_CPU_H
#define PENSTOCK_CPU_H

#include "penstock/abi.h"

enum {
  PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE = 0,
  /* The weights are the result of a call with PACK of the same convolution or
   * product. */
  PENSTOCK_CPU_WEIGHTS_PREPACKED = 1,
  /* The call brings the weights into the order that the library reads fastest
   * in the convolution or product that is described, writes them to its result,
   * and reads nothing else. */
  PENSTOCK_CPU_WEIGHTS_PREPACK = 2
};

/* With prepacked weights, B lies in panels of `panel` columns (the last one has
 * up to 15 more, or fewer), one behind the other, each with k rows that are
 * `stride` elements apart. There are no batch dimensions then. PREPACK makes
 * such panels at C of a B with the strides of the descriptor. */
typedef struct {
  uint32_t threads;
  uint32_t weights;
  int64_t panel;
  int64_t stride;
} penstock_cpu_gemm;

/* `algorithm` is one of PENSTOCK_CPU_CONV_*. */
typedef struct {
  uint32_t threads;
  uint32_t weights;
  uint64_t algorithm;
} penstock_cpu_conv;

enum {
  /* Tensors as they are in memory. */
  PENSTOCK_CPU_CONV_PLAIN = 0,
  /* Reordered in the call into what the library likes, and back. */
  PENSTOCK_CPU_CONV_LIBRARY = 1,
  /* Gathered in the call into matrices, of which the gradient of the weights is
   * the product; or, of large dense windows of one element, as they are. */
  PENSTOCK_CPU_CONV_COLUMNS = 2,
  /* By Winograd's minimal filtering of 4x4 outputs at a time, which multiplies
   * four times less and rounds more; reordered like LIBRARY. */
  PENSTOCK_CPU_CONV_WINOGRAD = 3,
  /* By the same algorithm with tiles of 2x2 outputs, as products of matrices,
   * from and to tensors as they are. */
  PENSTOCK_CPU_CONV_TILES_2X2 = 4,
  /* The same with 4x4 outputs. */
  PENSTOCK_CPU_CONV_TILES_4X4 = 5,
  /* The gradient of the weights of groups of one channel as a convolution of
   * every sample with its output as the window, reordered like LIBRARY. */
  PENSTOCK_CPU_CONV_OUTPUT_WINDOWS = 6,
  /* Several groups as one, with weights of zero between them, reordered like
   * LIBRARY. */
  PENSTOCK_CPU_CONV_COMBINED_GROUPS = 7,
  /* One spatial dimension as the first of two, reordered like LIBRARY. */
  PENSTOCK_CPU_CONV_UPRIGHT = 8
};

namespace penstock::runtime {

/// A product with its config. Strides of packed weights are those in a panel.
struct ProductCall : penstock_gemm_descriptor {
  uint32_t threads = 1;
  uint32_t weights = PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE;
  int64_t panel = 0;

  /// Without a config, the product is divided over the threads of the device.
  static ProductCall get(const penstock_gemm_descriptor &gemm,
                         uint32_t deviceThreads) {
    ProductCall call;
    static_cast<penstock_gemm_descriptor &>(call) = gemm;
    call.threads = deviceThreads;
    auto *config = static_cast<const penstock_cpu_gemm *>(gemm.config);
    if (!config)
      return call;
    call.threads = config->threads;
    call.weights = config->weights;
    call.panel = config->panel;
    int64_t *packed =
        call.weights == PENSTOCK_CPU_WEIGHTS_PREPACKED ? call.stride_b
        : call.weights == PENSTOCK_CPU_WEIGHTS_PREPACK ? call.stride_c
                                                       : nullptr;
    if (packed) {
      packed[0] = config->stride;
      packed[1] = 1;
    }
    return call;
  }
};

/// A convolution with its config. `layout` is the algorithm.
struct ConvolutionCall : penstock_conv_descriptor {
  uint32_t threads = 1;
  uint32_t weights = PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE;
  uint32_t layout = PENSTOCK_CPU_CONV_PLAIN;

  /// Without a config, tensors are as they are in memory.
  static ConvolutionCall get(const penstock_conv_descriptor &conv,
                             uint32_t deviceThreads) {
    ConvolutionCall call;
    static_cast<penstock_conv_descriptor &>(call) = conv;
    call.threads = deviceThreads;
    auto *config = static_cast<const penstock_cpu_conv *>(conv.config);
    if (!config)
      return call;
    call.threads = config->threads;
    call.weights = config->weights;
    call.layout = uint32_t(config->algorithm);
    return call;
  }
};

} // namespace penstock::runtime

#endif // PENSTOCK_CPU_H
