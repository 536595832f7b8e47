//===- GradientHarness.h - Checks of derivatives ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Differentiates a function in f64, compiles it and its backward, and compares
// the gradients with central differences, entry by entry, and by the adjoint
// identity <u, J v> = <J^T u, v>.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTHARNESS_H
#define PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTHARNESS_H

#include <string>
#include <vector>

namespace penstock::test {

/// The results of another program for the operands and cotangents that
/// `NumberSequence` draws, operands first.
struct RecordedValues {
  std::vector<std::vector<double>> outputs, gradients;
};

struct GradientCase {
  std::string name;
  /// Module text; its function is @f.
  std::string text;
  /// Per argument: `d` data, `p` parameter; capitals (`D`, `P`) want no
  /// gradient. Integer arguments count 0, 1, 2, ... modulo `classes`.
  std::string roles;
  double low = -1.5, high = 1.5;
  int classes = 3;
  /// Values are multiples of this, and the difference step is it: for functions
  /// that are exact only there. 0: any values.
  double quantum = 0;
  /// The function is one op: its residuals do not depend on parameters, so the
  /// backward must be right at other parameters than the forward had.
  bool oneOp = false;
  /// Null: inputs are random.
  const RecordedValues *recorded = nullptr;
  /// Normalizations use their running statistics.
  bool frozen = false;
  /// True if differences mean something: not where values are extreme or tie.
  bool differences = true;
};

struct GradientResult {
  /// Empty when all went well.
  std::string error;
  double largestError = 0;
  double adjointError = 0;
  /// The largest error of outputs and gradients.
  double recordedError = 0;
};

GradientResult checkGradient(const GradientCase &testCase);

/// The diagnostic that differentiating gives; empty if it succeeds.
std::string getDiagnostic(const GradientCase &testCase);

/// The types and roles of the backward's arguments and results, as text.
std::string describeBackward(const GradientCase &testCase);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTHARNESS_H
