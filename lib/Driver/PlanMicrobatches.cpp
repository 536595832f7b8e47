//===- PlanMicrobatches.cpp - How large microbatches are ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes, costs, cuts, replicas, recomputation and memory all follow from the
// size of a microbatch: every divisor of the batch is planned like a program of
// its own, and the one that is taken goes on to its end. A plan that is sure to
// be slower than one that fits is not built to its end.
//===----------------------------------------------------------------------===//

#include "PlanMicrobatches.h"

#include "Compilation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>

using namespace mlir;
using namespace penstock;

namespace {

/// A size of microbatches, planned.
struct Candidate {
  explicit Candidate(const CompileOptions &options)
      : asked(options), log(said),
        compilation(std::make_unique<Compilation>(options, log)) {}

  double getSeconds() const {
    return compilation->getReport().simulatedSeconds;
  }
  bool isFasterThan(const Candidate &other) const {
    return std::pair(getSeconds(), -*asked.microbatchSize) <
           std::pair(other.getSeconds(), -*other.asked.microbatchSize);
  }

  CompileOptions asked;
  std::string said; ///< Its errors, warnings and remarks.
  llvm::raw_string_ostream log;
  std::unique_ptr<Compilation> compilation;
};

class MicrobatchSearch {
public:
  explicit MicrobatchSearch(const CompileOptions &options) : options(options) {}
  int run();

private:
  std::vector<CompileOptions> getCandidates() const;
  int tryCandidate(const CompileOptions &asked);
  /// For --explain.
  void note(const CompileOptions &asked, const llvm::Twine &outcome);
  int refuse() const;
  void explain() const;

  const CompileOptions &options;
  std::unique_ptr<Candidate> best;
  /// By size; what became of it.
  std::map<int64_t, std::string, std::greater<>> outcomes;
  /// What is said where no size can be compiled at all.
  std::string firstError;
  /// Where none fits: the least bytes of a largest device, and their size.
  std::optional<std::pair<int64_t, int64_t>> smallestNeed;
};

} // namespace

/// Divisors of the batch, those first that are likely to be fast: with about
/// four microbatches per place the bubble is small, and so is what every
/// microbatch costs by itself.
std::vector<CompileOptions> MicrobatchSearch::getCandidates() const {
  int64_t places =
      std::max<int64_t>({options.getPlaces(), options.stages,
                         static_cast<int64_t>(options.splitAt.size()) + 1});
  auto distance = [&](const CompileOptions &candidate) {
    constexpr double kPerPlace = 4;
    return std::abs(std::log(static_cast<double>(candidate.microbatches) /
                             (kPerPlace * static_cast<double>(places))));
  };
  std::vector<CompileOptions> candidates;
  for (int64_t count = 1; count <= kMostMicrobatches; ++count) {
    if (options.globalBatch % count != 0)
      continue;
    CompileOptions asked = options;
    asked.choosesMicrobatches = false;
    asked.microbatches = count;
    asked.microbatchSize = options.globalBatch / count;
    candidates.push_back(std::move(asked));
  }
  llvm::sort(candidates, [&](const auto &left, const auto &right) {
    return std::pair(distance(left), left.microbatches) <
           std::pair(distance(right), right.microbatches);
  });
  return candidates;
}

void MicrobatchSearch::note(const CompileOptions &asked,
                            const llvm::Twine &outcome) {
  outcomes[*asked.microbatchSize] = outcome.str();
}

/// What a plan that fits consists of.
static std::string describe(const Compilation &compilation) {
  const Report &report = compilation.getReport();
  std::string text = llvm::formatv(
      "{0:F2} us per update, {1} bytes on the largest device; stages on",
      report.simulatedSeconds * 1e6, report.getLargestArena());
  for (const StageReport &stage : report.stages)
    text += (&stage == report.stages.data() ? " " : ",") +
            std::to_string(stage.devices.size());
  text += report.stages.size() == 1 && report.stages[0].devices.size() == 1
              ? " device"
              : " devices";
  ArrayRef<int64_t> budgets = compilation.getOptions().recomputeBudgets;
  for (auto [stage, budget] : llvm::enumerate(budgets))
    if (budget >= 0)
      text += llvm::formatv("; stage {0} stores {1} bytes per microbatch, and "
                            "recomputes",
                            stage, report.stages[stage].residualsPerMicrobatch);
  return text;
}

int MicrobatchSearch::tryCandidate(const CompileOptions &asked) {
  for (int64_t width : asked.replicas)
    if (asked.microbatches % width != 0) {
      note(asked, llvm::formatv("{0} microbatches cannot be shared by {1} "
                                "replicas",
                                asked.microbatches, width));
      return kDone;
    }
  auto candidate = std::make_unique<Candidate>(asked);
  Compilation &compilation = *candidate->compilation;
  int code = compilation.plan(Level::Program,
                              best ? best->getSeconds()
                                   : std::numeric_limits<double>::infinity());
  llvm::StringRef said = candidate->said;
  if (code == kDefect) {
    llvm::errs() << said;
    return code;
  }
  if (code == kUserError) {
    if (firstError.empty())
      firstError = said.str();
    note(asked, said.trim());
    return kDone;
  }
  if (code == kDoesNotFit) {
    int64_t need = compilation.getSmallestNeed().value_or(0);
    note(asked, llvm::formatv("needs {0} bytes on a device, {1} more than it "
                              "has",
                              need, need - *options.deviceMemory));
    if (!smallestNeed || need < smallestNeed->first)
      smallestNeed = {need, *asked.microbatchSize};
    return kDone;
  }
  if (compilation.isBeaten()) {
    double least = compilation.getLeastSeconds();
    bool isKnown = least == compilation.getReport().simulatedSeconds;
    note(asked, llvm::formatv("{0}{1:F2} us per update",
                              isKnown ? "" : "at least ", least * 1e6));
    return kDone;
  }
  note(asked, describe(compilation));
  if (!best || candidate->isFasterThan(*best))
    best = std::move(candidate);
  return kDone;
}

int MicrobatchSearch::refuse() const {
  if (!smallestNeed) {
    llvm::errs() << firstError;
    return kUserError;
  }
  auto [need, size] = *smallestNeed;
  llvm::errs() << llvm::formatv(
      "penstockc: --device-memory={0}: no microbatch size of "
      "--global-batch={1} "
      "fits; the closest is --microbatch-size={2}, where a device needs {3} "
      "bytes, {4} more than it has; use more devices{5}\n",
      *options.deviceMemory, options.globalBatch, size, need,
      need - *options.deviceMemory,
      options.recompute == "none" ? " or --recompute=auto" : "");
  return kDoesNotFit;
}

void MicrobatchSearch::explain() const {
  llvm::errs() << llvm::formatv(
      "{0}: note: sizes of microbatches for updates of {1} samples, by "
      "simulation\n",
      options.input, options.globalBatch);
  for (auto &[size, outcome] : outcomes)
    llvm::errs() << llvm::formatv(
        "  {0} --microbatch-size={1} --microbatches={2}: {3}\n",
        best && *best->asked.microbatchSize == size ? "here " : "or", size,
        options.globalBatch / size, outcome);
}

int MicrobatchSearch::run() {
  for (const CompileOptions &asked : getCandidates())
    if (int code = tryCandidate(asked))
      return code;
  if (options.explain)
    explain();
  if (!best)
    return refuse();
  // What stands above the plan is no more there.
  if (best->compilation->getTarget() < Level::Program ||
      !options.emitSchedule.empty())
    return Compilation(best->asked).run();
  llvm::errs() << best->said;
  best->said.clear();
  int code = best->compilation->finish();
  llvm::errs() << best->said;
  return code;
}

int penstock::compileFastest(const CompileOptions &options) {
  return MicrobatchSearch(options).run();
}
