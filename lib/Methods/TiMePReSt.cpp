//===- TiMePReSt.cpp - Forwards of whole minibatches --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TiMePReSt (2024, arXiv 2410.14312) and I-TiMePReSt (2025, arXiv 2509.23241),
// as their abstracts describe them; what these leave open is our reading. Under
// nF1B, with t the update and a the updates that forwards of a stage are ahead:
//
//   timeprest     F reads version t - a of the first stage, B the newest, t
//   v-timeprest   F reads version t - a, the newest that there is, B the newest
//   i-timeprest   F reads version t - a, B a blend of t - a and t, in which the
//                 older one counts the less, the further they are apart
//===----------------------------------------------------------------------===//

#include "AdjustedReads.h"
#include "MethodTable.h"

using namespace mlir;
using namespace penstock;

namespace {

constexpr SpecKey kAhead = {
    .name = "ahead",
    .type = SpecKey::Whole,
    .below = 1e6,
    .wants = "a number of updates, or 0 for as many as there are stages behind",
    .example = "1"};

constexpr SpecKey kKeys[] = {kAhead};
constexpr SpecKey kBlendKeys[] = {kAhead,
                                  {.name = "decay",
                                   .fallback = 1,
                                   .below = 1e6,
                                   .wants = "a number from 0 (off) on",
                                   .example = "1"}};

/// The schedule that the three share.
class ManyForwards : public Method {
public:
  using Method::Method;

  schedule::ScheduleSpec getSchedule(const MethodSpec &spec) const override {
    schedule::ScheduleSpec schedule = schedule::getScheduleNamed("nf1b");
    if (spec.getWhole("ahead") > 0)
      schedule.set(*schedule.getKind().findKey("ahead"), spec.get("ahead"));
    return schedule;
  }
  bool runsUnder(const MethodSpec &spec,
                 const schedule::ScheduleSpec &schedule) const override {
    return schedule == getSchedule(spec);
  }
  std::string checkStage(const StageFacts &stage) const override {
    if (stage.ahead % stage.microbatches == 0)
      return "";
    return "runs forwards of whole updates ahead: generate it as nf1b";
  }
};

class TiMePReSt : public ManyForwards {
public:
  constexpr TiMePReSt() : ManyForwards("timeprest", kKeys) {}

  VersionStorage getStorage() const override { return VersionStorage::Stash; }
  bool keepsForwardWeights(const MethodSpec &) const override { return false; }
  Lags getLags(const MethodSpec &, const StageFacts &stage) const override {
    return {stage.mostAhead, 0};
  }
};

class VersionedTiMePReSt : public ManyForwards {
public:
  constexpr VersionedTiMePReSt() : ManyForwards("v-timeprest", kKeys) {}

  Lags getLags(const MethodSpec &, const StageFacts &stage) const override {
    return {stage.ahead, 0};
  }
};

class IntermediateTiMePReSt : public ManyForwards {
public:
  constexpr IntermediateTiMePReSt() : ManyForwards("i-timeprest", kBlendKeys) {}

  VersionStorage getStorage() const override { return VersionStorage::Stash; }
  /// Without decay the backward reads what its forward did.
  bool keepsForwardWeights(const MethodSpec &spec) const override {
    return spec.get("decay") == 0;
  }
  Lags getLags(const MethodSpec &spec, const StageFacts &stage) const override {
    if (spec.get("decay") == 0)
      return {stage.ahead, stage.ahead};
    return {stage.ahead, 0, stage.ahead / stage.microbatches};
  }
  bool extendsUpdates(const MethodSpec &spec) const override {
    return spec.get("decay") != 0;
  }
  llvm::ArrayRef<llvm::StringRef> getStateKinds() const override {
    static constexpr llvm::StringRef kKinds[] = {"blended"};
    return kKinds;
  }
  LogicalResult adjust(ModuleOp module, const StageTasks &stage,
                       const MethodUse &use) const override {
    if (stage.lags.update == 0 || !stage.update)
      return success();
    return StageAdjuster(module, stage)
        .blend(stage.backward, stage.lags.update, use.method.get("decay"));
  }
};

} // namespace

const Method &penstock::getTiMePReSt() {
  static constexpr TiMePReSt kMethod;
  return kMethod;
}

const Method &penstock::getVersionedTiMePReSt() {
  static constexpr VersionedTiMePReSt kMethod;
  return kMethod;
}

const Method &penstock::getIntermediateTiMePReSt() {
  static constexpr IntermediateTiMePReSt kMethod;
  return kMethod;
}
