//===- OptimizerSpec.h - An optimizer with its numbers ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An optimizer is a row of a table (its name, its keys, its code), one file
// each. `--optimizer` and `#pipeline.optimizer` name a row with its numbers.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_OPTIMIZERS_OPTIMIZERSPEC_H
#define PENSTOCK_OPTIMIZERS_OPTIMIZERSPEC_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Support/SpecOption.h"

#include <memory>

namespace penstock {

class Optimizer;
class OptimizerSpec;

/// A row of the table of optimizers.
struct OptimizerKind : SpecKind {
  std::unique_ptr<Optimizer> (*create)(const OptimizerSpec &spec) = nullptr;
};

/// An optimizer with its numbers, as PyTorch defines them.
class OptimizerSpec : public Spec {
public:
  /// `sgd` with its default numbers.
  OptimizerSpec();
  explicit OptimizerSpec(Spec spec) : Spec(std::move(spec)) {}

  const OptimizerKind &getKind() const {
    return static_cast<const OptimizerKind &>(Spec::getKind());
  }
  double getLearningRate() const { return get("lr"); }
  /// The decay of the moving average of the weights; 0: there is none.
  double getAverageDecay() const { return get("ema"); }
  /// Returns what is wrong with the decay, or an empty string.
  std::string setAverageDecay(double decay) {
    return set(*getKind().findKey("ema"), decay);
  }

  pipeline::OptimizerAttr toAttr(mlir::MLIRContext *context) const;
  static OptimizerSpec fromAttr(pipeline::OptimizerAttr attr);
};

/// Parses NAME[:KEY=VALUE,...]. On failure `error` says what is wrong and what
/// would be right.
mlir::FailureOr<OptimizerSpec> parseOptimizerSpec(llvm::StringRef text,
                                                  std::string &error);

/// The same, for options.
inline mlir::FailureOr<OptimizerSpec>
parseSpecAs(const OptimizerSpec *, llvm::StringRef text, std::string &error) {
  return parseOptimizerSpec(text, error);
}

/// Names of all optimizers, as in "a, b or c".
std::string listOptimizers();

/// Lets the dialect verify optimizers and learning-rate schedules by their
/// tables.
void registerOptimizers(mlir::DialectRegistry &registry);

} // namespace penstock

PENSTOCK_SPEC_OPTION(penstock::OptimizerSpec, "optimizer")

#endif // PENSTOCK_OPTIMIZERS_OPTIMIZERSPEC_H
