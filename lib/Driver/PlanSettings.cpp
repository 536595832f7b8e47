//===- PlanSettings.cpp - What --explain lists as candidates --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanSettings.h. Which widths there are is known once the model is: how
// many nodes it has, and what PipeDream's dynamic program makes of their costs.
//===----------------------------------------------------------------------===//

#include "PlanSettings.h"

#include "Compilation.h"
#include "PlanSearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace penstock;

std::string penstock::getFlags(const CompileOptions &setting,
                               const CompileOptions &asked) {
  std::string text;
  if (asked.choosesMicrobatches)
    text = llvm::formatv("--microbatch-size={0} --microbatches={1}",
                         *setting.microbatchSize, setting.microbatches);
  if (asked.choosesReplicas) {
    text +=
        llvm::formatv("{0}--devices={1} --replicas=", text.empty() ? "" : " ",
                      setting.devices);
    if (setting.replicas.empty())
      text += "1";
    llvm::raw_string_ostream stream(text);
    llvm::interleave(setting.replicas, stream, ",");
  }
  if (setting.recompute != asked.recompute)
    text += " --recompute=" + setting.recompute;
  return text;
}

std::vector<CompileOptions> penstock::getSizes(const CompileOptions &asked) {
  if (!asked.choosesMicrobatches)
    return {asked};
  std::vector<CompileOptions> sizes;
  for (int64_t count = 1; count <= kMostMicrobatches; ++count) {
    if (asked.globalBatch % count != 0)
      continue;
    CompileOptions size = asked;
    size.choosesMicrobatches = false;
    size.microbatches = count;
    size.microbatchSize = asked.globalBatch / count;
    sizes.push_back(std::move(size));
  }
  return sizes;
}

void penstock::setReplicas(CompileOptions &options, ArrayRef<int64_t> replicas,
                           int64_t chunks) {
  options.devices =
      std::accumulate(replicas.begin(), replicas.end(), int64_t(0)) / chunks;
  options.replicas.assign(replicas.begin(), replicas.end());
  if (llvm::all_equal(options.replicas))
    options.replicas.resize(replicas.front() > 1);
  options.choosesReplicas = false;
}

/// With about four microbatches per place the bubble is small, and so is what
/// every microbatch costs by itself.
static double getDistance(const CompileOptions &size) {
  constexpr double kPerPlace = 4;
  int64_t places =
      std::max<int64_t>({size.getPlaces(), size.stages,
                         static_cast<int64_t>(size.splitAt.size()) + 1});
  return std::abs(std::log(static_cast<double>(size.microbatches) /
                           (kPerPlace * static_cast<double>(places))));
}

/// Returns the time of an update if stages wait only while the pipeline fills.
static double getPromise(const CompileOptions &options, const StagePlan &plan,
                         double total) {
  auto microbatches = static_cast<double>(options.microbatches);
  double seconds = microbatches * plan.seconds;
  if (!options.method.isAsynchronous())
    seconds += total * (1 - 1 / static_cast<double>(plan.replicas.size()));
  return seconds;
}

std::vector<Setting> penstock::getSettings(const CompileOptions &size,
                                           std::string &error) {
  if (!size.choosesReplicas)
    return {{size, /*units=*/0, getDistance(size)}};
  llvm::raw_string_ostream log(error);
  Compilation compilation(size, log);
  FailureOr<ReplicaProposals> proposed = compilation.proposeReplicas();
  if (failed(proposed))
    return {};
  std::vector<Setting> settings;
  for (const StagePlan &plan : proposed->plans) {
    Setting setting{size, proposed->units,
                    getPromise(size, plan, proposed->total)};
    setReplicas(setting.options, plan.replicas, proposed->chunks);
    settings.push_back(std::move(setting));
  }
  return settings;
}
