//===- Case.h - One of ONNX's node tests ------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder of libonnx-testdata: a model, its inputs, the outputs that ONNX's
// reference gives. Protobuf stays in Case.cpp.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_NODETESTS_CASE_H
#define PENSTOCK_TEST_UNIT_NODETESTS_CASE_H

#include "test/unit/Operators/HostTensor.h"

#include <map>
#include <string>
#include <vector>

namespace penstock::test {

struct NodeTestCase {
  /// The folder's name, and the operator that it tests.
  std::string name, type;
  /// Tensors by the names of the model's inputs and outputs, where they are
  /// tensors of numbers.
  std::map<std::string, HostTensor> inputs;
  std::vector<HostTensor> outputs;
  bool hasAllOutputs = false;
  /// True if an input or output is a tensor of floats.
  bool isFloat = false;
};

/// Which inputs become constants of the model.
enum class Binding {
  /// Those that say a shape, axes, or another property of the program. The data
  /// of a node test feeds them as inputs; a program has them as initializers.
  Shapes,
  /// All of them: the importer then computes the node itself.
  All
};

/// Reads the folder, and writes a copy of its model, with constants for inputs
/// as `binding` says, to `model`. "" or what went wrong.
std::string readCase(const std::string &folder, Binding binding,
                     const std::string &model, NodeTestCase &result);

/// "" when equal as ONNX's own runner sees it: floats to a relative 1e-3 and an
/// absolute 1e-7 (bfloat16, whose data were truncated, to a unit in the last
/// place), everything else exactly.
std::string compare(const HostTensor &expected, const HostTensor &actual);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_NODETESTS_CASE_H
