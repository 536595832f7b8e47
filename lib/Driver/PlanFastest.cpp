//===- PlanFastest.cpp - The fastest of several settings ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes, costs, cuts, recomputation and memory all follow from the size of a
// microbatch and from the replicas of the stages: every setting of them is
// planned like a program of its own, and the one that is taken goes on to its
// end. A plan that is sure to be slower than one that fits is not built to its
// end.
//===----------------------------------------------------------------------===//

#include "PlanFastest.h"
#include "penstock/Support/CommandLine.h"

#include "Compilation.h"
#include "PlanSettings.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>
#include <map>
#include <memory>
#include <tuple>

using namespace mlir;
using namespace penstock;

/// After so many plans that were compiled to their memory no setting is begun:
/// of large models fewer, since each of their plans takes longer.
static int64_t getMostTrials(int64_t units) {
  constexpr int64_t kMostUnits = int64_t(1) << 16, kLeast = 24;
  return units > 0 ? std::max(kLeast, kMostUnits / units)
                   : std::numeric_limits<int64_t>::max();
}

namespace {

/// Larger microbatches and fewer devices first; among equals.
using Rank = std::tuple<int64_t, int64_t, std::vector<int64_t>, bool>;

Rank getRank(const CompileOptions &setting) {
  return {setting.microbatches, setting.devices, setting.replicas,
          setting.recompute == "full"};
}

/// A setting, planned.
struct Candidate {
  explicit Candidate(const CompileOptions &options)
      : asked(options), log(said),
        compilation(std::make_unique<Compilation>(options, log)) {}

  double getSeconds() const {
    return compilation->getReport().simulatedSeconds;
  }
  bool isFasterThan(const Candidate &other) const {
    return std::pair(getSeconds(), getRank(asked)) <
           std::pair(other.getSeconds(), getRank(other.asked));
  }

  CompileOptions asked;
  std::string said; ///< Its errors, warnings and remarks.
  llvm::raw_string_ostream log;
  std::unique_ptr<Compilation> compilation;
};

/// The outcome of a setting: an internal error, or if there was more to search
/// than the cuts that are planned first, without recomputation.
enum class Outcome { Settled, Searched, Defect };

class FastestSearch {
public:
  explicit FastestSearch(const CompileOptions &options) : options(options) {}
  int run();

private:
  int trySettings();
  Outcome trySetting(const CompileOptions &asked);
  /// Where no setting fits: cuts and replicas by one search.
  int tryTogether(const CompileOptions &size);
  /// Seconds of the arithmetic of an update, if they are known: no plan for
  /// microbatches of this size has less of it than one stage.
  std::optional<double> getWork(const CompileOptions &asked);
  void note(const CompileOptions &asked, const llvm::Twine &outcome) {
    outcomes[getRank(asked)] = {getFlags(asked, options), outcome.str()};
  }
  void refuse(const CompileOptions &asked, int64_t need);
  int sayRefusal() const;
  void explain() const;
  void warn() const;

  const CompileOptions &options;
  std::unique_ptr<Candidate> best;
  std::map<int64_t, std::optional<double>> works; ///< By microbatches.
  /// For --explain: flags, and what became of them.
  std::map<Rank, std::pair<std::string, std::string>> outcomes;
  /// The first error, reported if no setting can be compiled at all.
  std::string firstError;
  /// Where none fits: the least bytes of a largest device, and their flags.
  std::optional<std::pair<int64_t, std::string>> smallestNeed;
  int64_t trials = 0, mostTrials = 0;
  int64_t left = 0; ///< Settings that were not begun.
};

} // namespace

/// Describes a plan that fits.
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

void FastestSearch::refuse(const CompileOptions &asked, int64_t need) {
  note(asked,
       llvm::formatv("needs at least {0} bytes on a device, {1} more than "
                     "it has",
                     need, need - *options.deviceMemory));
  if (!smallestNeed || need < smallestNeed->first)
    smallestNeed = {need, getFlags(asked, options)};
}

std::optional<double> FastestSearch::getWork(const CompileOptions &asked) {
  // Nodes that are measured one by one are slower than in a stage.
  if (!options.choosesReplicas || options.profile)
    return std::nullopt;
  auto [known, isNew] = works.try_emplace(asked.microbatches);
  if (isNew) {
    CompileOptions single = asked;
    single.choosesStages = single.choosesReplicas = false;
    single.stages = single.devices = 1;
    single.replicas.clear();
    single.recompute = "none";
    single.deviceMemory.reset();
    single.setSchedule(schedule::ScheduleSpec());
    single.method = MethodSpec();
    std::string unused;
    llvm::raw_string_ostream log(unused);
    Compilation compilation(single, log);
    if (compilation.plan(Level::Schedule,
                         std::numeric_limits<double>::infinity()) == kDone)
      known->second = compilation.getReport().workSeconds;
  }
  return known->second;
}

Outcome FastestSearch::trySetting(const CompileOptions &asked) {
  for (int64_t width : asked.replicas)
    if (asked.microbatches % width != 0) {
      note(asked, llvm::formatv("{0} microbatches cannot be shared by {1} "
                                "replicas",
                                asked.microbatches, width));
      return Outcome::Settled;
    }
  if (best)
    if (std::optional<double> work = getWork(asked)) {
      double least = *work / static_cast<double>(asked.devices);
      if (least > best->getSeconds()) {
        note(asked,
             llvm::formatv("at least {0:F2} us per update", least * 1e6));
        return Outcome::Settled;
      }
    }
  if (trials >= mostTrials) {
    note(asked, "not tried");
    ++left;
    return Outcome::Settled;
  }
  auto candidate = std::make_unique<Candidate>(asked);
  Compilation &compilation = *candidate->compilation;
  int code = compilation.plan(Level::Program,
                              best ? best->getSeconds()
                                   : std::numeric_limits<double>::infinity());
  trials += compilation.getTrials() + 1;
  Outcome outcome = code == kDone && compilation.getTrials() <= 1
                        ? Outcome::Settled
                        : Outcome::Searched;
  llvm::StringRef said = candidate->said;
  if (code == kDefect) {
    llvm::errs() << said;
    return Outcome::Defect;
  }
  if (code == kUserError) {
    if (firstError.empty())
      firstError = said.str();
    note(asked, said.trim());
    return Outcome::Settled;
  }
  if (code == kDoesNotFit) {
    refuse(asked, compilation.getSmallestNeed().value_or(0));
    return outcome;
  }
  if (compilation.isBeaten()) {
    double least = compilation.getLeastSeconds();
    bool isKnown = least == compilation.getReport().simulatedSeconds;
    note(asked, llvm::formatv("{0}{1:F2} us per update",
                              isKnown ? "" : "at least ", least * 1e6));
    return outcome;
  }
  note(asked, describe(compilation));
  if (!best || candidate->isFasterThan(*best))
    best = std::move(candidate);
  return outcome;
}

int FastestSearch::tryTogether(const CompileOptions &size) {
  auto candidate = std::make_unique<Candidate>(size);
  Compilation &compilation = *candidate->compilation;
  int code =
      compilation.plan(Level::Program, std::numeric_limits<double>::infinity());
  if (code == kDefect)
    llvm::errs() << candidate->said;
  if (code == kDoesNotFit)
    if (std::optional<int64_t> need = compilation.getSmallestNeed();
        need && (!smallestNeed || *need < smallestNeed->first))
      smallestNeed = {*need, getFlags(size, options)};
  if (code != kDone)
    return code == kDefect ? code : kDone;
  // What the flags say that name its replicas, if they find a plan as well.
  CompileOptions said = size;
  said.choosesReplicas = false;
  said.devices = compilation.getOptions().devices;
  said.replicas = compilation.getOptions().replicas;
  if (!outcomes.count(getRank(said)) && trySetting(said) == Outcome::Defect)
    return kDefect;
  if (!best) {
    note(said, describe(compilation));
    candidate->asked = size;
    best = std::move(candidate);
  }
  return kDone;
}

/// The least bytes that were found to be needed.
int FastestSearch::sayRefusal() const {
  if (!smallestNeed) {
    llvm::errs() << firstError;
    return kUserError;
  }
  auto &[need, flags] = *smallestNeed;
  std::string what = !options.choosesMicrobatches
                         ? "none of the plans that were built fits"
                         : "no microbatch size of --global-batch=" +
                               std::to_string(options.globalBatch) + " fits";
  beginMessage(llvm::errs(), "penstockc", Severity::Error) << llvm::formatv(
      "--device-memory={0}: {1}; the closest is {2}, where a device "
      "needs at least {3} than it has; use more devices{4}\n",
      *options.deviceMemory, what, flags,
      formatNeed(need, *options.deviceMemory),
      options.recompute == "none" ? " or --recompute=auto" : "");
  return kDoesNotFit;
}

void FastestSearch::explain() const {
  beginMessage(llvm::errs(), options.input, Severity::Note)
      << (!options.choosesMicrobatches ? "replicas"
          : options.choosesReplicas    ? "sizes of microbatches and replicas"
                                       : "sizes of microbatches");
  if (options.choosesMicrobatches)
    llvm::errs() << " for updates of " << options.globalBatch << " samples";
  llvm::errs() << ", by simulation\n";
  for (auto &[rank, outcome] : outcomes)
    llvm::errs() << llvm::formatv("  {0} {1}: {2}\n",
                                  best && getRank(best->asked) == rank ? "here "
                                                                       : "or",
                                  outcome.first, outcome.second);
}

void FastestSearch::warn() const {
  if (left > 0)
    beginMessage(llvm::errs(), options.input, Severity::Warning)
        << left << " settings were not tried, since " << trials
        << " plans had been compiled for the others; say "
           "--microbatch-size, or --replicas\n";
  int64_t used = best ? best->compilation->getOptions().devices : 0;
  if (best && options.choosesReplicas && used != options.devices)
    beginMessage(llvm::errs(), options.input, Severity::Warning)
        << "--devices=" << options.devices << ": the plan uses " << used
        << ", as none with more devices is "
        << (options.deviceMemory ? "faster and fits" : "faster") << "\n";
}

int FastestSearch::trySettings() {
  std::vector<CompileOptions> sizes = getSizes(options);
  std::vector<Setting> settings;
  for (const CompileOptions &size : sizes) {
    std::string error;
    llvm::append_range(settings, getSettings(size, error));
    if (firstError.empty())
      firstError = std::move(error);
  }
  llvm::sort(settings, [](const Setting &left, const Setting &right) {
    return std::pair(left.promise, getRank(left.options)) <
           std::pair(right.promise, getRank(right.options));
  });
  for (Setting &setting : settings) {
    mostTrials = getMostTrials(setting.units);
    Outcome outcome = trySetting(setting.options);
    // Cuts are planned by what stages take without recomputation: those that
    // fit with all of it may be the faster ones.
    if (outcome == Outcome::Searched && options.recompute == "auto" &&
        options.deviceMemory) {
      setting.options.recompute = "full";
      outcome = trySetting(setting.options);
    }
    if (outcome == Outcome::Defect)
      return kDefect;
  }
  if (best || !options.choosesReplicas || !options.deviceMemory)
    return kDone;
  for (const CompileOptions &size : sizes)
    if (int code = tryTogether(size))
      return code;
  return kDone;
}

int FastestSearch::run() {
  if (int code = trySettings())
    return code;
  if (options.explain)
    explain();
  warn();
  if (!best)
    return sayRefusal();
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
  return FastestSearch(options).run();
}
