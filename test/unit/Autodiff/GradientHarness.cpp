//===- GradientHarness.cpp - Checks of derivatives ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See GradientHarness.h.
//===----------------------------------------------------------------------===//

#include "GradientHarness.h"

#include "GradientProgram.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace penstock;
using namespace penstock::test;

namespace {

/// The numbers that the recorder of gradients.json draws: Knuth's MMIX
/// generator, of which the upper 53 bits count.
class NumberSequence {
public:
  Buffer fill(Type type, double low, double high) {
    Buffer buffer(type);
    for (double &value : buffer.floats) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = low +
              (high - low) * std::ldexp(static_cast<double>(state >> 11), -53);
    }
    return buffer;
  }

private:
  uint64_t state = 20240717;
};

class Random {
public:
  explicit Random(const GradientCase &testCase)
      : testCase(testCase), generator(20240717) {}

  Buffer fill(Type type, double low, double high) {
    Buffer buffer(type);
    for (double &value : buffer.floats) {
      value = std::uniform_real_distribution<double>(low, high)(generator);
      if (testCase.quantum != 0)
        value = std::round(value / testCase.quantum) * testCase.quantum;
    }
    for (auto [index, value] : llvm::enumerate(buffer.wide))
      value = (index * 2) % testCase.classes;
    for (auto [index, value] : llvm::enumerate(buffer.narrow))
      value = (index * 2) % testCase.classes;
    return buffer;
  }

private:
  const GradientCase &testCase;
  std::mt19937_64 generator;
};

/// One case under check. Random numbers are drawn in the order of the steps.
class GradientCheck {
public:
  explicit GradientCheck(const GradientCase &testCase)
      : testCase(testCase), program(testCase), random(testCase),
        step(testCase.quantum != 0 ? testCase.quantum : 1e-5) {}

  GradientResult run();

private:
  void drawInputs();
  void runBackward();
  std::string checkWanted();
  std::string compareWithRecorded();
  void compareWithDifferences();
  void checkAdjoint();
  double objective(const Buffers &x) const;

  const GradientCase &testCase;
  GradientProgram program;
  Random random;
  double step;
  GradientResult result;
  Buffers inputs, cotangents;
  /// Those of the function, then residuals.
  Buffers outputs;
  /// The gradients by argument, in any order.
  std::vector<std::pair<unsigned, std::vector<double>>> found;
};

double dot(const std::vector<double> &a, const std::vector<double> &b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sum += x * y;
  return sum;
}

void note(double &largest, double got, double expected) {
  double error = std::abs(got - expected) / (1 + std::abs(expected));
  largest = std::isnan(error) ? INFINITY : std::max(largest, error);
}

} // namespace

void GradientCheck::drawInputs() {
  NumberSequence sequence;
  auto fill = [&](Type type, double low, double high) {
    return testCase.recorded ? sequence.fill(type, low, high)
                             : random.fill(type, low, high);
  };
  for (Type type : program.argumentTypes)
    inputs.push_back(fill(type, testCase.low, testCase.high));
  for (Type type : program.resultTypes)
    cotangents.push_back(fill(type, -1, 1));
}

/// <u, f(x)>, for the u that the backward gets.
double GradientCheck::objective(const Buffers &x) const {
  Buffers y = program.run("f", x, program.forwardType.getResults());
  double sum = 0;
  for (auto [u, value] : llvm::zip(cotangents, y))
    if (u.isFloat())
      sum += dot(u.floats, value.floats);
  return sum;
}

/// The forward and the backward, and which gradient each argument got.
void GradientCheck::runBackward() {
  // The forward may have had other parameters than the backward.
  Buffers stored = inputs;
  if (testCase.oneOp)
    for (auto [role, buffer] : llvm::zip(testCase.roles, stored))
      if (role == 'p' || role == 'P')
        buffer = random.fill(buffer.type, testCase.low, testCase.high);
  outputs = program.run("f", stored, program.forwardType.getResults());

  const Differentiation &backward = program.backward;
  Buffers arguments;
  for (unsigned index : backward.cotangents)
    arguments.push_back(cotangents[index]);
  for (auto [isArgument, index] : program.residualSources)
    arguments.push_back(isArgument ? stored[index] : outputs[index]);
  for (unsigned index : backward.parameters)
    arguments.push_back(inputs[index]);
  // What is in the accumulators must stay in the sum.
  Buffers accumulators;
  for (unsigned index : backward.accumulators)
    accumulators.push_back(random.fill(inputs[index].type, -1, 1));
  arguments.insert(arguments.end(), accumulators.begin(), accumulators.end());
  Buffers gradients =
      program.run("backward", arguments, program.backwardType.getResults());

  for (const InputGradient &gradient : backward.inputGradients)
    found.emplace_back(
        gradient.argument,
        (gradient.isResult ? gradients : arguments)[gradient.index].floats);
  for (auto [i, index] : llvm::enumerate(backward.accumulators)) {
    std::vector<double> sum =
        gradients[backward.firstAccumulatorResult + i].floats;
    for (auto [value, old] : llvm::zip(sum, accumulators[i].floats))
      value -= old;
    found.emplace_back(index, sum);
  }
}

/// Checks that every argument that wants a gradient got one.
std::string GradientCheck::checkWanted() {
  unsigned wanted = 0;
  for (auto [role, buffer] : llvm::zip(testCase.roles, inputs))
    wanted += buffer.isFloat() && (role == 'p' || role == 'd');
  // A gradient that is zero everywhere need not be computed.
  for (unsigned i = 0; testCase.recorded && i < inputs.size(); ++i) {
    auto isGradient = [&](const auto &entry) { return entry.first == i; };
    const std::vector<double> &expected = testCase.recorded->gradients[i];
    if (llvm::none_of(found, isGradient) &&
        llvm::all_of(expected, [](double value) { return value == 0; }))
      found.emplace_back(i, expected);
  }
  if (found.size() == wanted)
    return "";
  return "gradients of " + std::to_string(found.size()) +
         " arguments, wanted are " + std::to_string(wanted);
}

std::string GradientCheck::compareWithRecorded() {
  const RecordedValues &recorded = *testCase.recorded;
  if (recorded.outputs.size() != program.resultTypes.size() ||
      recorded.gradients.size() != found.size())
    return "what is recorded does not belong to this function";
  auto compare = [&](const std::vector<double> &got,
                     const std::vector<double> &expected) {
    for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
      note(result.recordedError, got[i], expected[i]);
    return got.size() == expected.size();
  };
  for (auto [expected, output] : llvm::zip(recorded.outputs, outputs))
    if (!compare(output.floats, expected))
      return "an output has another size than what is recorded";
  for (const auto &[argument, gradient] : found)
    if (!compare(gradient, recorded.gradients[argument]))
      return "a gradient has another size than what is recorded";
  return "";
}

/// Central differences, entry by entry.
void GradientCheck::compareWithDifferences() {
  Buffers moved = inputs;
  for (auto &[index, gradient] : found)
    for (size_t entry = 0; entry < gradient.size(); ++entry) {
      double &x = moved[index].floats[entry], saved = x;
      x = saved + step;
      double above = objective(moved);
      x = saved - step;
      double below = objective(moved);
      x = saved;
      note(result.largestError, gradient[entry], (above - below) / (2 * step));
    }
}

/// The adjoint identity along a random direction.
void GradientCheck::checkAdjoint() {
  Buffers above = inputs, below = inputs;
  double product = 0;
  for (auto &[index, gradient] : found) {
    Buffer direction = random.fill(inputs[index].type, -1, 1);
    product += dot(gradient, direction.floats);
    for (size_t entry = 0; entry < gradient.size(); ++entry) {
      above[index].floats[entry] += step * direction.floats[entry];
      below[index].floats[entry] -= step * direction.floats[entry];
    }
  }
  note(result.adjointError, product,
       (objective(above) - objective(below)) / (2 * step));
}

GradientResult GradientCheck::run() {
  result.error = program.differentiate();
  if (result.error.empty())
    result.error = program.compile();
  if (!result.error.empty())
    return result;
  drawInputs();
  runBackward();
  result.error = checkWanted();
  if (result.error.empty() && testCase.recorded)
    result.error = compareWithRecorded();
  if (!result.error.empty() || !testCase.differences)
    return result;
  compareWithDifferences();
  if (testCase.quantum == 0)
    checkAdjoint();
  return result;
}

GradientResult penstock::test::checkGradient(const GradientCase &testCase) {
  return GradientCheck(testCase).run();
}

std::string penstock::test::getDiagnostic(const GradientCase &testCase) {
  return GradientProgram(testCase).differentiate();
}

std::string penstock::test::describeBackward(const GradientCase &testCase) {
  GradientProgram program(testCase);
  std::string text = program.differentiate();
  if (!text.empty())
    return text;
  llvm::raw_string_ostream stream(text);
  const Differentiation &backward = program.backward;
  stream << "cotangents";
  for (unsigned index : backward.cotangents)
    stream << " " << index;
  stream << "; residuals";
  for (Value residual : backward.residuals) {
    if (auto argument = dyn_cast<BlockArgument>(residual))
      stream << " argument " << argument.getArgNumber();
    else
      stream << " " << residual.getDefiningOp()->getName();
  }
  stream << "; parameters";
  for (unsigned index : backward.parameters)
    stream << " " << index;
  stream << "; accumulators";
  for (unsigned index : backward.accumulators)
    stream << " " << index;
  return text;
}
