//===- ReportMemory.cpp - What the arena of a device consists of ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes by stage and purpose, read off the program. Every byte of an arena
// counts once, so that the parts sum up to what is allocated.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Report.h"

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Program/LiveBytes.h"
#include "passes/Program/Places.h"
#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Import/Import.h"

#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static int64_t getBytes(RankedTensorType type) {
  return static_cast<int64_t>(getTypeBytes(type));
}

namespace {
/// Bytes of an arena that belong to something.
class ClaimedBytes {
public:
  /// How many of these bytes nothing had before.
  int64_t claim(int64_t begin, int64_t end) {
    if (begin >= end)
      return 0;
    int64_t fresh = end - begin, from = begin, to = end;
    auto it = ends.upper_bound(begin);
    if (it != ends.begin() && std::prev(it)->second >= begin)
      --it;
    while (it != ends.end() && it->first <= end) {
      fresh -= std::max<int64_t>(0, std::min(end, it->second) -
                                        std::max(begin, it->first));
      from = std::min(from, it->first);
      to = std::max(to, it->second);
      it = ends.erase(it);
    }
    ends[from] = to;
    return fresh;
  }

private:
  /// The end of each interval, by its beginning; they do not meet.
  std::map<int64_t, int64_t> ends;
};
} // namespace

/// The initialisers whose values a parameter gives: its own, which a copy on
/// another stage shares, and those tied to it.
static SmallVector<StringRef> getInitialisers(VariableOp variable) {
  auto original = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  SmallVector<StringRef> names = {original ? original.getValue()
                                           : variable.getSymName()};
  if (auto tied = variable->getAttrOfType<DictionaryAttr>(kTiedAttr))
    for (NamedAttribute other : tied)
      names.push_back(other.getName());
  return names;
}

/// Whether a variable is the copy of a parameter of another stage, or belongs
/// to one.
static bool isOfCopy(VariableOp variable, const SymbolTable &symbols) {
  auto whose = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  if (whose && variable.getRole() != Role::Parameter)
    if (auto parameter = symbols.lookup<VariableOp>(whose.getValue()))
      return parameter->hasAttr(kParameterAttr);
  return whose && variable.getRole() == Role::Parameter;
}

/// Adds the bytes of variables and channels to their stages.
void Report::collectProgram(ModuleOp module) {
  auto numbers = numberStages(module);
  stages.resize(numbers.size());
  for (ChannelOp channel : module.getOps<ChannelOp>())
    if (channel.getSource() && channel.getTensorType(0).getRank() > 0)
      microbatchSize = channel.getTensorType(0).getDimSize(0);
  trained.clear();
  frozen.clear();
  llvm::DenseMap<StringAttr, int64_t> versionsOf;
  for (Operation &op : module.getBody()->getOperations())
    if (auto storage = dyn_cast<VersionStorageOpInterface>(op))
      versionsOf[storage.getVariableAttr().getAttr()] = storage.getVersions();

  llvm::DenseSet<Attribute> ranges;
  for (auto [stage, report] : llvm::zip(module.getOps<StageOp>(), stages)) {
    report.bytes = {};
    report.versionsHeld = 1;
    report.parameters.clear();
    report.devices.assign(stage.getDevices()->begin(),
                          stage.getDevices()->end());
  }
  SymbolTable symbols(module);
  for (VariableOp variable : module.getOps<VariableOp>()) {
    StageReport &stage =
        stages[numbers.lookup(variable.getStageAttr().getAttr())];
    int64_t bytes = getBytes(variable.getTensorType());
    int64_t versions =
        std::max<int64_t>(1, versionsOf.lookup(variable.getSymNameAttr()));
    if (isOfCopy(variable, symbols))
      stage.bytes.tied += versions * bytes;
    switch (variable.getRole()) {
    case Role::Parameter:
      stage.bytes.weights += bytes;
      stage.bytes.versions += (versions - 1) * bytes;
      stage.versionsHeld = std::max(stage.versionsHeld, versions);
      // A frozen parameter that several stages read is there once for each.
      if (updated.empty() ? !variable.getFrozen()
                          : updated.contains(variable.getSymName())) {
        for (StringRef name : getInitialisers(variable)) {
          stage.parameters.push_back(name.str());
          // Several stages may hold a copy.
          if (!llvm::is_contained(trained, name))
            trained.push_back(name.str());
        }
      } else if (!variable.getInit() ||
                 ranges.insert(variable.getInitAttr()).second) {
        frozen.push_back(variable.getSymName().str());
      }
      break;
    case Role::Gradient:
      stage.bytes.gradients += bytes;
      break;
    case Role::Statistic:
      // Moved by the forward, but not trained.
      frozen.push_back(variable.getSymName().str());
      stage.bytes.weights += bytes;
      break;
    case Role::Scalar:
      stage.bytes.weights += bytes;
      break;
    case Role::Optimizer:
    case Role::Compensation:
    case Role::Master:
      stage.bytes.optimizer += bytes * versions;
      break;
    }
  }
  for (StageReport &stage : stages)
    stage.versions = stage.parameters.empty()
                         ? stage.versionsHeld
                         : std::max(stage.versionsHeld,
                                    1 + llvm::divideCeilSigned(
                                            stage.lagBackward, microbatches));
  // Initializers that are constants of the code are no variables.
  if (auto constants =
          module->getAttrOfType<ArrayAttr>(onnx::kConstantInitializersAttr))
    for (StringAttr name : constants.getAsRange<StringAttr>())
      frozen.push_back(name.str());
  // A buffer belongs to the stage that takes it there, or else to the one that
  // puts it; what no task of training has, to the first stage of the device.
  // Replicas are alike; what is said is said of the first.
  llvm::DenseMap<int64_t, unsigned> stageOfDevice;
  for (auto [index, stage] : llvm::enumerate(stages))
    if (!stage.devices.empty())
      stageOfDevice.try_emplace(stage.devices.front(), index);
  // A channel that no transfer uses stays on its stage.
  llvm::DenseSet<StringAttr> transferred;
  module.walk([&](Operation *op) {
    if (auto send = dyn_cast<StartSendOp>(op))
      transferred.insert(send.getChannelAttr().getAttr());
    else if (auto recv = dyn_cast<StartRecvOp>(op))
      transferred.insert(recv.getChannelAttr().getAttr());
  });
  // Every byte of an arena counts once, for the first of residuals, transfers
  // and temporaries that it belongs to, as they share bytes where they are not
  // needed at the same time.
  llvm::MapVector<std::tuple<int64_t, StringAttr, StringAttr, uint64_t>, SlotOp>
      rings;
  std::map<int64_t, ClaimedBytes> claimed;
  std::map<int64_t, SmallVector<ScratchOp>> scratches;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    auto deviceAttr = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
    if (!deviceAttr || !stageOfDevice.contains(deviceAttr.getInt()))
      continue;
    int64_t device = deviceAttr.getInt();
    function.walk([&](SlotOp slot) {
      if (!symbols.lookup<ChannelOp>(slot.getSymbol()))
        return;
      rings.insert(
          {{device, function.getSymNameAttr(), slot.getSymbolAttr().getAttr(),
            slot.getField().value_or(0)},
           slot});
    });
    function.walk(
        [&](ScratchOp scratch) { scratches[device].push_back(scratch); });
  }
  std::map<std::tuple<int64_t, StringRef, uint64_t>, int64_t> tied;
  for (bool leaves : {false, true})
    for (auto &[key, slot] : rings) {
      auto [device, function, name, field] = key;
      if (transferred.contains(name) != leaves)
        continue;
      StageBytes *bytes = &stages[stageOfDevice.lookup(device)].bytes;
      auto end = ends.find(name.getValue());
      if (end != ends.end())
        for (int64_t stage : {end->second.second, end->second.first})
          if (stage >= 0 && llvm::is_contained(stages[stage].devices, device)) {
            bytes = &stages[stage].bytes;
            break;
          }
      auto channel = symbols.lookup<ChannelOp>(name);
      int64_t size = getBytes(channel.getTensorType(field));
      for (uint64_t i = 0; i < slot.getRing().value_or(1); ++i) {
        int64_t at = getPlace(slot, static_cast<int64_t>(i));
        int64_t fresh = claimed[device].claim(at, at + size);
        (leaves ? bytes->channels : bytes->residuals) += fresh;
      }
      // Evaluation has no more of them than training, if elsewhere.
      if (channel->hasAttr(kParameterAttr)) {
        int64_t all = size * static_cast<int64_t>(slot.getRing().value_or(1));
        int64_t &known = tied[{device, name.getValue(), field}];
        bytes->tied += std::max<int64_t>(0, all - known);
        known = std::max(known, all);
      }
    }
  FailureOr<std::map<int64_t, int64_t>> peaks = getPeakLiveBytes(module);
  for (ArenaOp arena : module.getOps<ArenaOp>()) {
    auto device = static_cast<int64_t>(arena.getDevice());
    if (!stageOfDevice.contains(device))
      continue;
    StageBytes &bytes = stages[stageOfDevice.lookup(device)].bytes;
    bytes.arena = arena.getBytes();
    auto libraryAt = static_cast<int64_t>(arena.getLibraryAt());
    bytes.temporaries = claimed[device].claim(
        libraryAt, libraryAt + static_cast<int64_t>(arena.getLibraryBytes()));
    for (ScratchOp scratch : scratches[device]) {
      auto at = static_cast<int64_t>(scratch.getAt().value_or(0));
      bytes.temporaries += claimed[device].claim(
          at, at + scratch.getBuffer().getType().getNumElements());
    }
    if (succeeded(peaks))
      bytes.lowerBound = (*peaks)[device];
    bytes.padding = bytes.arena;
    for (const StageReport &stage : stages)
      if (llvm::is_contained(stage.devices, device))
        bytes.padding -= stage.bytes.weights + stage.bytes.versions +
                         stage.bytes.gradients + stage.bytes.optimizer +
                         stage.bytes.residuals + stage.bytes.temporaries +
                         stage.bytes.channels;
  }
}
