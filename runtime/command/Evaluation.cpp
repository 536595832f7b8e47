//===- Evaluation.cpp - Evaluations of a training -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One evaluation is better than another by one metric, in the direction of that
// metric; equal is not better.
//===----------------------------------------------------------------------===//

#include "runtime/command/Evaluation.h"

#include <cmath>

using namespace penstock::runtime;

void Evaluation::print(const penstock_results &results) const {
  std::printf("eval: step %lld", (long long)run.updatesDone);
  for (const Metric &metric : run.metrics)
    std::printf(" %s", metricText(metric).c_str());
  long long samples = results.samples, labels = run.evaluatedLabels;
  std::printf(" (");
  if (results.accuracy >= 0)
    std::printf("%lld/", (long long)run.evaluatedCorrect);
  if (results.accuracy >= 0 && labels != samples)
    std::printf("%lld labels, ", labels);
  std::printf("%lld samples%s)\n", samples,
              run.evaluatesAverages() ? ", averaged weights" : "");
  std::fflush(stdout);
}

Error Evaluation::evaluate() {
  if (evaluated == run.updatesDone)
    return {};
  penstock_results results;
  if (Error error = run.evaluate(results))
    return error;
  evaluated = run.updatesDone;
  if (run.isRoot() && !run.options.quiet)
    print(results);

  // All processes have the same numbers, and come to the same.
  const Metric *metric = run.findMetric(run.options.bestMetric);
  if (!metric)
    return userError("--save-best: this program has no %s",
                     run.options.bestMetric.c_str());
  ManifestEvaluation &state = run.evaluations;
  // A run that goes on from here has been counted already.
  if (state.step == run.updatesDone)
    return {};
  state.step = run.updatesDone;
  ++state.withoutGain;
  if (!std::isfinite(metric->value) ||
      (state.bestStep >= 0 && !metric->isBetterThan(state.best)))
    return {};
  state.withoutGain = 0;
  state.bestStep = run.updatesDone;
  state.metric = metric->kind->name;
  state.best = metric->value;
  return run.options.saveBest.empty() ? Error()
                                      : run.save(run.options.saveBest);
}

bool Evaluation::hasStopped() const {
  return run.options.mostWithoutGain &&
         run.evaluations.withoutGain >= *run.options.mostWithoutGain;
}

std::string Evaluation::describeBest() const {
  const ManifestEvaluation &state = run.evaluations;
  if (state.bestStep < 0)
    return "";
  Metric metric = {findMetric(state.metric), state.best};
  return format("step %lld, %s", (long long)state.bestStep,
                metricText(metric).c_str());
}
