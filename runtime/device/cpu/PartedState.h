//===- PartedState.h - The parts of a convolution by oneDNN -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What PartedConvolution.cpp plans and runs, and PrepackedWeights.cpp does for
// the weights alone.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_PARTEDSTATE_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_PARTEDSTATE_H

#include "penstock/convolution.h"

#include "runtime/device/cpu/ConvolutionSlices.h"
#include "runtime/device/cpu/PartedConvolution.h"

#include <algorithm>
#include <atomic>

namespace penstock::runtime {

/// The work of one thread.
struct ConvolutionPart {
  ConvolutionSlice *slices[3];
  Step compute;
  dnnl_stream_t stream = nullptr;
};

struct PartedConvolution::State {
  ConvolutionCall conv;
  ConvolutionDivision division;
  int result, threads;
  std::vector<ConvolutionSlice> slices[3];
  std::vector<ConvolutionPart> parts;
  std::string implementation;
  /// Bytes of all slices of the weights, one behind the other.
  uint64_t prepackedBytes = 0;
  /// Scratch of the library, for steps of all threads together; of everything
  /// that several parts need; of a thread for one part after the other.
  uint64_t stepBytes = 0, commonBytes = 0, threadBytes = 0;
  dnnl_stream_t stream = nullptr;
  std::atomic<bool> hasFailed{false};

  State(const ConvolutionCall &conv, ConvolutionDivision division)
      : conv(conv), division(division), result(computedTensor(conv)),
        threads(oneDnn().getThreads()) {}
  ~State();
  std::string fail(const std::string &what) const {
    return "oneDNN cannot " + what + " the " + describe(conv);
  }
  /// Computed by all threads at once: the library divides no sums over threads
  /// in its Winograd's algorithm but those of the weights' gradients, and a
  /// part would transform again what another one has.
  bool isWhole() const {
    return conv.layout == PENSTOCK_CPU_CONV_WINOGRAD && result != Weights;
  }
  /// The scratch areas and their threads; getArea(i) is that of part i, where
  /// threads have scratch of their own.
  int64_t areas() const { return std::min<int64_t>(threads, division.count()); }
  int ownThreads() const { return isWhole() ? threads : 1; }
  int64_t getArea(int64_t i) const {
    return areas() < threads ? i
                             : OneDnn::getPart(i, division.count(), threads);
  }
  std::string plan();
  bool prepare(char *scratch);
  /// Where the descriptor says PREPACK.
  bool preparePrepacking();
  bool prepack(const float *weights, const float *prepacked);
  bool bind(const float *const (&data)[3]);
  void runPart(ConvolutionPart &part);
  void addSums(int64_t channels);
  bool prepacks() const { return conv.weights == PENSTOCK_CPU_WEIGHTS_PREPACK; }
  bool isPrepacked(int tensor) const {
    return tensor == Weights &&
           conv.weights != PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE;
  }
  /// Parts' gradients of the same weights, added when all are there.
  bool isSummed(int tensor) const {
    return tensor == result && tensor == Weights && division.samples > 1;
  }

private:
  int64_t sliceCount(int tensor) const;
  /// The one that a part reads or writes.
  int64_t getSlice(int tensor, int64_t part) const;
  bool isShared(int tensor) const {
    return sliceCount(tensor) < division.count();
  }
  bool isCommon(int tensor) const {
    return isShared(tensor) || isSummed(tensor);
  }
  bool cutSlices();
  bool createCompute(ConvolutionPart &part);
  std::string planSlices(ConvolutionPart &part);
  void placeWeights();
  void place();
  /// Where a slice of prepacked weights is.
  static char *atPlace(const float *prepacked, const ConvolutionSlice &slice) {
    return reinterpret_cast<char *>(const_cast<float *>(prepacked)) +
           slice.place;
  }
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_PARTEDSTATE_H
