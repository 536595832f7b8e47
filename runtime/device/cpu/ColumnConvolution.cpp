//===- ColumnConvolution.cpp - A convolution as a product -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the weights as a product of two matrices, which are gathered
// first where the tensors are not such matrices.
//
// Threads gather channels, and compute parts of the product.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"
#include "penstock/product.h"

#include "runtime/device/cpu/Columns.h"
#include "runtime/device/cpu/ConvolutionMethod.h"
#include "runtime/device/cpu/Step.h"

#include <atomic>
#include <optional>

using namespace penstock::runtime;

namespace {

class ColumnConvolution : public ConvolutionMethod {
public:
  /// Fails for what is not a gradient of weights of one group, or when the
  /// library has no fast product.
  std::string plan(const ConvolutionCall &descriptor) override;
  std::string getImplementation() const override { return "columns"; }
  uint64_t getScratchBytes() const override;
  bool prepare(char *scratch) override;
  /// Adds to the weights' gradient.
  bool run(const float *input, const float *weights,
           const float *output) override;

private:
  void gather(int64_t channel);
  void multiply(int64_t part);

  ConvolutionCall conv;
  bool gathers = true;
  std::optional<Product> product;
  uint64_t productBytes = 0;
  float *inputRows = nullptr, *outputRows = nullptr;
  /// Tensors of the call that runs.
  const float *input, *output;
  float *weights;
  std::atomic<bool> hasFailed{false};
};

} // namespace

static uint64_t rowBytes(int64_t rows, int64_t windows) {
  return aligned(rows * windows * sizeof(float));
}

/// Returns true if the tensors are such matrices, one for each sample, and
/// large enough for a product each.
static bool isProduct(const ConvolutionCall &conv, const ColumnSizes &sizes) {
  constexpr int64_t kMany = 256;
  for (uint32_t i = 0; i < conv.spatial_rank; ++i)
    if (conv.kernel[i] != 1 || conv.stride[i] != 1 || conv.pad_before[i] != 0 ||
        conv.output[i] != conv.input[i])
      return false;
  return sizes.windows >= kMany * conv.batch;
}

std::string ColumnConvolution::plan(const ConvolutionCall &descriptor) {
  conv = descriptor;
  if (conv.kind != PENSTOCK_CONV_WEIGHT_GRAD || conv.groups != 1)
    return "oneDNN cannot compute the " + describe(conv);
  ColumnSizes sizes = columnSizes(conv);
  gathers = !isProduct(conv, sizes);
  if (!gathers)
    sizes.windows /= conv.batch;
  ProductCall gemm = {};
  gemm.element = PENSTOCK_F32;
  gemm.accumulate = 1;
  gemm.m = sizes.channels;
  gemm.n = sizes.taps;
  gemm.k = sizes.windows;
  gemm.stride_a[0] = gemm.stride_b[1] = sizes.windows;
  gemm.stride_a[1] = gemm.stride_b[0] = gemm.stride_c[1] = 1;
  gemm.stride_c[0] = sizes.taps;
  product.emplace(gemm, oneDnn().getThreads());
  productBytes = aligned(product->getScratchBytes());
  return product->getError();
}

uint64_t ColumnConvolution::getScratchBytes() const {
  if (!gathers)
    return productBytes;
  ColumnSizes sizes = columnSizes(conv);
  return productBytes + rowBytes(sizes.taps, sizes.windows) +
         rowBytes(sizes.channels, sizes.windows);
}

bool ColumnConvolution::prepare(char *scratch) {
  if (!gathers)
    return product->prepare(scratch);
  ColumnSizes sizes = columnSizes(conv);
  char *rows = scratch + productBytes;
  inputRows = reinterpret_cast<float *>(rows);
  outputRows =
      reinterpret_cast<float *>(rows + rowBytes(sizes.taps, sizes.windows));
  return product->prepare(scratch);
}

void ColumnConvolution::gather(int64_t channel) {
  if (channel < conv.input_channels)
    gatherTaps(conv, input, channel, inputRows);
  else
    gatherChannel(conv, output, channel - conv.input_channels, outputRows);
}

void ColumnConvolution::multiply(int64_t part) {
  bool done = true;
  if (gathers) {
    done = product->run(part, outputRows, inputRows, weights);
  } else {
    ColumnSizes sizes = columnSizes(conv);
    int64_t plane = sizes.windows / conv.batch;
    for (int64_t n = 0; n < conv.batch; ++n)
      done &= product->run(part, output + n * sizes.channels * plane,
                           input + n * sizes.taps * plane, weights);
  }
  if (!done)
    hasFailed.store(true, std::memory_order_relaxed);
}

bool ColumnConvolution::run(const float *input, const float *weights,
                            const float *output) {
  const OneDnn &dnnl = oneDnn();
  this->input = input;
  this->weights = const_cast<float *>(weights);
  this->output = output;
  hasFailed.store(false, std::memory_order_relaxed);
  if (gathers)
    dnnl.runParts(conv.input_channels + conv.output_channels, this,
                  [](void *closure, int64_t index, int) {
                    static_cast<ColumnConvolution *>(closure)->gather(index);
                  });
  dnnl.runParts(product->getParts(), this,
                [](void *closure, int64_t index, int) {
                  static_cast<ColumnConvolution *>(closure)->multiply(index);
                });
  return !hasFailed.load(std::memory_order_relaxed);
}

std::unique_ptr<ConvolutionMethod> penstock::runtime::makeColumnConvolution() {
  return std::make_unique<ColumnConvolution>();
}
