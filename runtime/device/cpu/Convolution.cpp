//===- Convolution.cpp - A convolution in one of its layouts --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By the library's primitives in parts, as a product of matrices, or in tiles.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"
#include "penstock/onednn.h"

#include "runtime/device/cpu/ColumnConvolution.h"
#include "runtime/device/cpu/PartedConvolution.h"
#include "runtime/device/cpu/TileConvolution.h"

using namespace penstock::runtime;

struct Convolution::State {
  penstock_conv_descriptor descriptor;
  std::string implementation;
  uint64_t scratchBytes = 0;
  // One of them is planned.
  PartedConvolution parts;
  ColumnConvolution columns;
  TileConvolution tiles;

  bool hasTiles() const { return descriptor.layout >= PENSTOCK_CONV_TILES_2X2; }
  bool hasColumns() const { return descriptor.layout == PENSTOCK_CONV_COLUMNS; }
  std::string fail(const std::string &what) const {
    return "oneDNN cannot " + what + " the " + describe(descriptor);
  }
  template <typename Method>
  std::string plan(Method &method, const char *name) {
    if (!method.plan(descriptor))
      return fail("compute");
    implementation = name;
    scratchBytes = method.getScratchBytes();
    return "";
  }
};

Convolution::Convolution() = default;
Convolution::Convolution(Convolution &&) = default;
Convolution &Convolution::operator=(Convolution &&) = default;
Convolution::~Convolution() = default;

std::string Convolution::plan(const penstock_conv_descriptor &descriptor) {
  state = std::make_unique<State>();
  state->descriptor = descriptor;
  if (!oneDnn().error.empty())
    return oneDnn().error;
  if (descriptor.element != PENSTOCK_F32 || descriptor.spatial_rank < 1 ||
      descriptor.spatial_rank > PENSTOCK_MAX_SPATIAL_RANK)
    return state->fail("take");
  if (state->hasTiles())
    return state->plan(state->tiles, "tiles");
  if (state->hasColumns())
    return state->plan(state->columns, "columns");
  std::string error = state->parts.plan(descriptor);
  if (!error.empty())
    return error;
  state->implementation = state->parts.getImplementation();
  state->scratchBytes = state->parts.getScratchBytes();
  return "";
}

std::string Convolution::getImplementation() const {
  return state->implementation;
}

uint64_t Convolution::getScratchBytes() const { return state->scratchBytes; }

std::string Convolution::prepare(char *scratch) {
  bool done = state->hasTiles()     ? state->tiles.prepare(scratch)
              : state->hasColumns() ? state->columns.prepare(scratch)
                                    : state->parts.prepare(scratch);
  return done ? "" : state->fail("prepare");
}

bool Convolution::run(const float *input, const float *weights,
                      const float *output) {
  if (state->hasTiles())
    return state->tiles.run(input, weights, output);
  if (state->hasColumns())
    return state->columns.run(input, const_cast<float *>(weights), output);
  return state->parts.run(input, weights, output);
}

void penstock::runtime::setConvolutionThreads(int threads) {
  oneDnn().setThreads(threads);
}
