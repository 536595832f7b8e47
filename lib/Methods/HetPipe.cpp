//===- HetPipe.cpp - Virtual workers that exchange waves ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Park et al. 2020. Every worker is a line of stages with weights of its own,
// and updates them with every microbatch: vertical sync with the lag of a wave
// less one. After N updates it pushes what these changed to the others, and
// folds in what they pushed, `distance` waves later.
//===----------------------------------------------------------------------===//

#include "MethodTable.h"

#include "penstock/Optimizers/Optimizers.h"

using namespace penstock;

namespace {

constexpr SpecKey kKeys[] = {
    {.name = "workers",
     .type = SpecKey::Whole,
     .fallback = 2,
     .least = 1,
     .below = 1025,
     .wants = "a number of lines of stages, from 1 to 1024",
     .example = "2"},
    {.name = "distance",
     .type = SpecKey::Whole,
     .fallback = 0,
     .below = 65,
     .wants = "by how many waves workers may be apart, from 0 to 64",
     .example = "1"},
    {.name = "wave",
     .type = SpecKey::Whole,
     .fallback = 0,
     .below = 65537,
     .wants =
         "the microbatches of a wave, or 0 for as many as there are stages",
     .example = "4"}};

class HetPipe : public Method {
public:
  constexpr HetPipe() : Method("hetpipe", kKeys) {}

  std::optional<Waves> getWaves(const MethodSpec &spec) const override {
    return Waves{spec.getWhole("workers"), spec.getWhole("wave"),
                 spec.getWhole("distance")};
  }
  bool runsUnder(const MethodSpec &,
                 const schedule::ScheduleSpec &schedule) const override {
    return schedule.name() == "1f1b";
  }
  llvm::ArrayRef<llvm::StringRef> getStateKinds() const override {
    static constexpr llvm::StringRef kKinds[] = {"wave"};
    return kKinds;
  }
  VersionStorage getStorage() const override { return VersionStorage::Stash; }
  Lags getLags(const MethodSpec &spec, const StageFacts &stage) const override {
    int64_t wave = spec.getWhole("wave");
    int64_t lag = (wave > 0 ? wave : stage.depth) - 1;
    return {lag, lag};
  }

  std::string checkUse(const MethodSpec &spec, int64_t microbatches,
                       llvm::ArrayRef<int64_t> replicas,
                       const Optimizer &optimizer) const override {
    if (microbatches != 1)
      return "updates with every microbatch, and a wave has as many as "
             "`wave` says: leave --microbatches out";
    if (llvm::any_of(replicas, [](int64_t width) { return width > 1; }))
      return "has workers in place of replicas: leave --replicas out, and say "
             "workers=V";
    return "";
  }
};

} // namespace

const Method &penstock::getHetPipe() {
  static constexpr HetPipe kMethod;
  return kMethod;
}
