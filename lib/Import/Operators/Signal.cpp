//===- Signal.cpp - Windows and mel weights -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What spectra of signals are weighted by: constants.
//===----------------------------------------------------------------------===//

#include "Signal.h"
#include "ConstantTensor.h"
#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

//===--- HannWindow, HammingWindow, BlackmanWindow ---===//

static LogicalResult bindDatatype(NodeBinder &node, Type &element) {
  int64_t number = 1;
  if (failed(node.attribute("output_datatype", number)))
    return failure();
  element = getElementType(node.getContext(), number);
  if (!element || !isa<FloatType>(element))
    return node.badAttribute("output_datatype", "the number of a float type");
  return success();
}

static Types inferWindow(NodeBinder &node) {
  int64_t size;
  Type element;
  if (failed(node.operands({"size"}, 1)) || failed(readLength(node, 0, size)) ||
      failed(bindDatatype(node, element)))
    return failure();
  return RankedTensorType::get({size}, element);
}

/// Sums of cosines of one and two turns over the period.
struct Cosines {
  double c0, c1, c2;
};
constexpr Cosines kHann = {0.5, 0.5, 0};
constexpr Cosines kHamming = {25.0 / 46.0, 1 - 25.0 / 46.0, 0};
constexpr Cosines kBlackman = {0.42, 0.5, 0.08};

template <const Cosines &cosines>
static Constants foldWindow(NodeBinder &node) {
  bool isPeriodic = true;
  if (failed(node.attribute("periodic", isPeriodic)))
    return failure();
  auto [c0, c1, c2] = cosines;
  ConstantTensor window(resultType(node));
  int64_t size = window.shape()[0], period = isPeriodic ? size : size - 1;
  for (int64_t i = 0; i < size; ++i) {
    double turn =
        2 * M_PI * static_cast<double>(i) / static_cast<double>(period);
    window.floats[i] =
        period == 0 ? 1 : c0 - c1 * std::cos(turn) + c2 * std::cos(2 * turn);
  }
  return window.pack();
}

//===--- MelWeightMatrix ---===//

namespace {
struct MelWeights {
  int64_t bins, length;
  double rate, low, high;
  LogicalResult bind(NodeBinder &node);
  /// The spectrum's bins that the triangles begin and end at.
  SmallVector<int64_t> getCorners() const;
};
} // namespace

SmallVector<int64_t> MelWeights::getCorners() const {
  auto toMel = [](double hertz) {
    return 2595 * std::log1p(hertz / 700) / std::log(10.0);
  };
  double first = toMel(low);
  double step = (toMel(high) - first) / static_cast<double>(bins + 2);
  SmallVector<int64_t> corners;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double mel = static_cast<double>(i) * step + first;
    double hertz = 700 * std::expm1(mel / 2595 * std::log(10.0));
    corners.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  return corners;
}

LogicalResult MelWeights::bind(NodeBinder &node) {
  if (failed(node.operands({"num_mel_bins", "dft_length", "sample_rate",
                            "lower_edge_hertz", "upper_edge_hertz"},
                           5)) ||
      failed(readLength(node, 0, bins)) ||
      failed(readLength(node, 1, length)) ||
      failed(readScalar(node, 2, rate)) || failed(readScalar(node, 3, low)) ||
      failed(readScalar(node, 4, high)))
    return failure();
  bool fits = rate > 0 && low >= 0 && high >= low &&
              bins * (length / 2 + 1) <= largestMatrix;
  for (int64_t corner : fits ? getCorners() : SmallVector<int64_t>())
    fits &= corner <= length / 2;
  if (!fits)
    return node.error() << "has " << bins << " bins from " << low << " to "
                        << high << " Hz, which a transform of " << length
                        << " elements at " << rate << " Hz does not have";
  return success();
}

static Types inferMelWeights(MelWeights &mel, NodeBinder &node) {
  Type element;
  if (failed(bindDatatype(node, element)))
    return failure();
  return RankedTensorType::get({mel.length / 2 + 1, mel.bins}, element);
}

static Constants foldMelWeights(MelWeights &mel, NodeBinder &node) {
  ConstantTensor weights(resultType(node));
  SmallVector<int64_t> corners = mel.getCorners();
  for (int64_t i = 0; i < mel.bins; ++i) {
    int64_t left = corners[i], peak = corners[i + 1], right = corners[i + 2];
    auto at = [&](int64_t row) -> double & {
      return weights.floats[row * mel.bins + i];
    };
    at(peak) = 1;
    for (int64_t row = left; row < peak; ++row)
      at(row) =
          static_cast<double>(row - left) / static_cast<double>(peak - left);
    for (int64_t row = peak; row < right; ++row)
      at(row) =
          static_cast<double>(right - row) / static_cast<double>(right - peak);
  }
  return weights.pack();
}

template <const Cosines &cosines>
static void addWindow(OperatorTable &table, StringRef name) {
  table.add(name, {17}, inferWindow, foldWindow<cosines>,
            lowerFolded<foldWindow<cosines>>, Operator::Inactive);
}

void penstock::onnx::addSignal(OperatorTable &table) {
  addWindow<kHann>(table, "HannWindow");
  addWindow<kHamming>(table, "HammingWindow");
  addWindow<kBlackman>(table, "BlackmanWindow");
  table.add("MelWeightMatrix", {17}, bound<inferMelWeights>,
            bound<foldMelWeights>, lowerFolded<bound<foldMelWeights>>,
            Operator::Inactive);
}
