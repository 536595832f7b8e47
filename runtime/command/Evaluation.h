//===- Evaluation.h - Evaluations of a training -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What happens at each evaluation besides its numbers: they are printed, the
// model is saved if it is the best so far, and a training that gains no more is
// to end.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_COMMAND_EVALUATION_H
#define PENSTOCK_RUNTIME_COMMAND_EVALUATION_H

#include "runtime/run/Run.h"

namespace penstock::runtime {

class Evaluation {
public:
  explicit Evaluation(penstock_run &run) : run(run) {}

  /// Once for the weights that there are now.
  Error evaluate();
  /// As many evaluations as asked for were not better than the best one.
  bool hasStopped() const;
  /// "step 340, accuracy 97.22 %"; empty before the first one.
  std::string describeBest() const;

  /// The best one by the metric of --save-best, or by loss.
  const ManifestEvaluation &getBest() const { return run.evaluations; }

private:
  void print(const penstock_results &results) const;

  penstock_run &run;
  int64_t evaluated = -1; // at this step, by this process
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_COMMAND_EVALUATION_H
