//===- Convolution.cpp - A convolution in one of its layouts --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By the library's primitives in parts, as a product of matrices, or in tiles.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"
#include "penstock/onednn.h"

#include "runtime/device/cpu/PartedConvolution.h"

using namespace penstock::runtime;

struct Convolution::State {
  ConvolutionCall descriptor;
  std::unique_ptr<ConvolutionMethod> method;

  std::string fail(const std::string &what) const {
    return "oneDNN cannot " + what + " the " + describe(descriptor);
  }
};

Convolution::Convolution() = default;
Convolution::Convolution(Convolution &&) = default;
Convolution &Convolution::operator=(Convolution &&) = default;
Convolution::~Convolution() = default;

static std::unique_ptr<ConvolutionMethod> makeMethod(uint32_t layout) {
  switch (layout) {
  case PENSTOCK_CPU_CONV_COLUMNS:
    return makeColumnConvolution();
  case PENSTOCK_CPU_CONV_TILES_2X2:
  case PENSTOCK_CPU_CONV_TILES_4X4:
    return makeTileConvolution();
  case PENSTOCK_CPU_CONV_OUTPUT_WINDOWS:
    return makeOutputWindowConvolution();
  case PENSTOCK_CPU_CONV_COMBINED_GROUPS:
    return makeCombinedGroups();
  default:
    return std::make_unique<PartedConvolution>();
  }
}

std::string Convolution::plan(const ConvolutionCall &descriptor) {
  state = std::make_unique<State>();
  state->descriptor = descriptor;
  if (!oneDnn().error.empty())
    return oneDnn().error;
  if (descriptor.element != PENSTOCK_F32 || descriptor.spatial_rank < 1 ||
      descriptor.spatial_rank > PENSTOCK_MAX_SPATIAL_RANK)
    return state->fail("take");
  state->method = makeMethod(descriptor.layout);
  if (std::string error = state->method->plan(descriptor); !error.empty())
    return error;
  // Only the library's primitives read prepacked weights.
  if (descriptor.weights != PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE &&
      !getPrepackedBytes())
    return state->fail("prepack the weights of");
  return "";
}

std::string Convolution::getImplementation() const {
  return state->method->getImplementation();
}

uint64_t Convolution::getScratchBytes() const {
  return state->method->getScratchBytes();
}

uint64_t Convolution::getPrepackedBytes() const {
  return state->method->getPrepackedBytes();
}

std::string Convolution::prepare(char *scratch) {
  return state->method->prepare(scratch) ? "" : state->fail("prepare");
}

bool Convolution::run(const float *input, const float *weights,
                      const float *output) {
  return state->method->run(input, weights, output);
}

void penstock::runtime::setConvolutionThreads(int threads) {
  oneDnn().setThreads(threads);
}
