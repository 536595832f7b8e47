//===- ReportMemory.cpp - What the arena of a device consists of ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes by stage and purpose, read off the program. Every byte of an arena
// counts once, so that the parts sum up to what is allocated.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Report.h"

#include "dialects/Onnx/DiscardableAttributes.h"
#include "dialects/Pipeline/Replicas.h"
#include "passes/Program/Memory/LiveBytes.h"
#include "penstock/Support/Assert.h"
#include "penstock/Support/ByteSize.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

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

/// The initializers whose values a parameter gives: its own, which a copy on
/// another stage shares, and those tied to it.
static SmallVector<StringRef> getInitializers(VariableOp variable) {
  auto original = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  SmallVector<StringRef> names = {original ? original.getValue()
                                           : variable.getSymName()};
  if (auto tied = variable->getAttrOfType<DictionaryAttr>(kTiedAttr))
    for (NamedAttribute other : tied)
      names.push_back(other.getName());
  return names;
}

/// Returns true if a variable is the copy of a parameter of another stage, or
/// belongs to one.
static bool isOfCopy(VariableOp variable, const SymbolTable &symbols) {
  auto whose = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  if (whose && variable.getRole() != Role::Parameter)
    if (auto parameter = symbols.lookup<VariableOp>(whose.getValue()))
      return parameter->hasAttr(kParameterAttr);
  return whose && variable.getRole() == Role::Parameter;
}

/// Returns true if a checkpoint has the value of a variable: of copies on
/// several stages, it has the first.
static bool isSaved(VariableOp variable, const SymbolTable &symbols) {
  switch (variable.getRole()) {
  case Role::Parameter:
  case Role::Statistic:
    return !variable.getFrozen() && !variable->hasAttr(kParameterAttr);
  case Role::Optimizer:
  case Role::Compensation:
  case Role::Master:
    return !isOfCopy(variable, symbols);
  default:
    return false;
  }
}

/// Returns true if a channel carries what moves a statistic.
static bool isOfStatistic(ChannelOp channel, FlatSymbolRefAttr whose) {
  auto variable =
      SymbolTable::lookupNearestSymbolFrom<VariableOp>(channel, whose);
  return variable && variable.getRole() == Role::Statistic;
}

namespace {
/// Whose row speaks of what. Replicas are alike but for their transfers: a
/// stage's row is about the first of them, and about all of its device that
/// other rows do not have.
/// Where pipelines run in both directions, a device is the first one of some
/// stages and has further replicas of others.
class Rows {
public:
  explicit Rows(MutableArrayRef<StageReport> stages) : stages(stages) {
    for (auto [index, stage] : llvm::enumerate(stages))
      if (!stage.devices.empty())
        stageOfDevice.try_emplace(stage.devices.front(), index);
  }

  bool has(int64_t device) const { return stageOfDevice.contains(device); }
  StageBytes &ofDevice(int64_t device) {
    return stages[stageOfDevice.lookup(device)].bytes;
  }
  StageBytes &of(unsigned stage, int64_t device) {
    return stages[stage].devices.front() == device ? stages[stage].bytes
                                                   : ofDevice(device);
  }
  /// The rows in which the variables of a stage are.
  SmallVector<StageBytes *> of(unsigned stage) {
    SmallVector<StageBytes *> result;
    for (int64_t device : stages[stage].devices)
      if (has(device))
        result.push_back(&of(stage, device));
    return result;
  }

private:
  MutableArrayRef<StageReport> stages;
  /// The first stage, by the first device of some stages.
  llvm::DenseMap<int64_t, unsigned> stageOfDevice;
};
} // namespace

static void addVariable(StageBytes &bytes, VariableOp variable,
                        int64_t versions) {
  int64_t each = getByteSize(variable.getTensorType());
  switch (variable.getRole()) {
  case Role::Parameter:
    bytes.versions += (versions - 1) * each;
    bytes.weights += each;
    break;
  case Role::Prepacked:
    bytes.versions += versions * each;
    break;
  case Role::Statistic:
  case Role::Scalar:
    bytes.weights += each;
    break;
  case Role::Gradient:
    bytes.gradients += each;
    break;
  case Role::Optimizer:
  case Role::Compensation:
  case Role::Master:
    bytes.optimizer += versions * each;
    break;
  }
}

void Report::collectVariables(ModuleOp module) {
  auto numbers = numberStages(module);
  stages.resize(numbers.size());
  for (ChannelOp channel : module.getOps<ChannelOp>())
    if (channel.getSource() && channel.getTensorType(0).getRank() > 0)
      microbatchSize = channel.getTensorType(0).getDimSize(0);
  trained.clear();
  frozen.clear();
  checkpointBytes = 0;
  statistics.clear();
  // Programs of devices have no tasks to see it in; what was seen holds.
  if (std::vector<std::string> found = findUnreached(module);
      found.size() > unreached.size())
    unreached = std::move(found);
  llvm::DenseMap<StringAttr, int64_t> versionsOf;
  for (Operation &op : module.getBody()->getOperations())
    if (auto storage = dyn_cast<VersionStorageOpInterface>(op))
      versionsOf[storage.getVariableAttr().getAttr()] = storage.getVersions();

  llvm::DenseSet<Attribute> ranges;
  for (auto [stage, report] : llvm::zip(module.getOps<StageOp>(), stages)) {
    report.bytes = {};
    report.versionsHeld = 1;
    report.parameters.clear();
    report.devices = stage.getDevices().value_or(ArrayRef<int64_t>()).vec();
    report.arenas.clear();
  }
  Rows rows(stages);
  SymbolTable symbols(module);
  TrainingOp training = getTraining(module);
  bool holdsStatistics =
      training &&
      (training.getInfers() || training.getBatchNorm() == BatchNorm::Frozen);
  for (VariableOp variable : module.getOps<VariableOp>()) {
    // As the runtime aligns them.
    if (!infer && isSaved(variable, symbols))
      checkpointBytes +=
          llvm::alignTo(getByteSize(variable.getTensorType()), 64);
    unsigned number = numbers.lookup(variable.getStageAttr().getAttr());
    StageReport &stage = stages[number];
    int64_t versions =
        std::max<int64_t>(1, versionsOf.lookup(variable.getSymNameAttr()));
    for (StageBytes *row : rows.of(number)) {
      addVariable(*row, variable, versions);
      if (isOfCopy(variable, symbols))
        row->tied += versions * getByteSize(variable.getTensorType());
    }
    switch (variable.getRole()) {
    case Role::Parameter:
      stage.versionsHeld = std::max(stage.versionsHeld, versions);
      // A frozen parameter that several stages read is there once for each.
      if (updated.empty() ? !variable.getFrozen()
                          : updated.contains(variable.getSymName())) {
        for (StringRef name : getInitializers(variable)) {
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
    case Role::Statistic:
      // Moved by the forward, but not trained.
      frozen.push_back(variable.getSymName().str());
      if (!variable.getFrozen() && !holdsStatistics)
        statistics.push_back(frozen.back());
      break;
    default:
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
  if (auto dropped =
          module->getAttrOfType<ArrayAttr>(onnx::kUnreachedInitializersAttr))
    for (StringAttr name : dropped.getAsRange<StringAttr>())
      frozen.push_back(name.str());
}

std::vector<std::string> Report::findUnreached(ModuleOp module) {
  std::vector<std::string> names;
  llvm::StringSet<> written;
  for (TaskOp task : module.getOps<TaskOp>())
    if (task.getKind() == TaskKind::Update && !task.isBodyless())
      for (WriteOp write : task.getBody().getOps<WriteOp>())
        written.insert(write.getVariable());
  for (VariableOp variable : module.getOps<VariableOp>())
    if (!written.empty() && variable.getRole() == Role::Parameter &&
        !variable.getFrozen() && !written.contains(variable.getSymName()))
      for (StringRef name : getInitializers(variable))
        if (!llvm::is_contained(names, name))
          names.push_back(name.str());
  if (auto dropped =
          module->getAttrOfType<ArrayAttr>(onnx::kUnreachedInitializersAttr))
    for (StringAttr name : dropped.getAsRange<StringAttr>())
      names.push_back(name.str());
  return names;
}

namespace {
/// The bytes of channels and temporaries in the arenas of a program. Every byte
/// counts once, for the first of residuals, transfers and temporaries that it
/// belongs to, as they share bytes where they are not needed at the same time.
class ArenaBytes {
public:
  using Ends = llvm::StringMap<std::pair<int64_t, int64_t>>;

  ArenaBytes(ModuleOp module, MutableArrayRef<StageReport> stages,
             const Ends &ends)
      : module(module), symbols(module), stages(stages), ends(ends),
        rows(stages) {
    collectBuffers();
  }

  void addChannels();
  void addArenas();

private:
  /// A ring of messages on a device, and the schedule's function that has it.
  struct Ring {
    int64_t device;
    SlotOp slot;
    ChannelOp channel;
    int64_t getField() { return slot.getField().value_or(0); }
    int64_t getLength() { return slot.getRing().value_or(1); }
  };

  void collectBuffers();
  void addRing(Ring ring, int64_t StageBytes::*kind);
  StageBytes &getRow(Ring ring);

  ModuleOp module;
  SymbolTable symbols;
  MutableArrayRef<StageReport> stages;
  const Ends &ends;
  Rows rows;
  SmallVector<Ring> rings;
  llvm::DenseSet<StringAttr> transferred;
  std::map<int64_t, SmallVector<ScratchOp>> scratches;
  std::map<int64_t, ClaimedBytes> claimed;
  /// Bytes of tied parameters, by device, channel and field.
  std::map<std::tuple<int64_t, StringRef, int64_t>, int64_t> tied;
};
} // namespace

void ArenaBytes::collectBuffers() {
  module.walk([&](Operation *op) {
    if (auto send = dyn_cast<StartSendOp>(op))
      transferred.insert(send.getChannelAttr().getAttr());
    else if (auto recv = dyn_cast<StartRecvOp>(op))
      transferred.insert(recv.getChannelAttr().getAttr());
  });
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
    if (!device || !rows.has(device.getInt()))
      continue;
    llvm::DenseSet<std::pair<StringAttr, int64_t>> known;
    function.walk([&](SlotOp slot) {
      auto channel = symbols.lookup<ChannelOp>(slot.getSymbol());
      if (channel &&
          known
              .insert({channel.getSymNameAttr(),
                       static_cast<int64_t>(slot.getField().value_or(0))})
              .second)
        rings.push_back({device.getInt(), slot, channel});
    });
    function.walk([&](ScratchOp scratch) {
      scratches[device.getInt()].push_back(scratch);
    });
  }
}

/// A buffer belongs to the stage that takes it there, or else to the one that
/// puts it; what no task of training has, to the first stage of the device.
StageBytes &ArenaBytes::getRow(Ring ring) {
  auto end = ends.find(ring.channel.getSymName());
  if (end != ends.end())
    for (int64_t stage : {end->second.second, end->second.first})
      if (stage >= 0 && llvm::is_contained(stages[stage].devices, ring.device))
        return rows.of(stage, ring.device);
  return rows.ofDevice(ring.device);
}

void ArenaBytes::addRing(Ring ring, int64_t StageBytes::*kind) {
  StageBytes &bytes = getRow(ring);
  ChannelOp channel = ring.channel;
  int64_t field = ring.getField();
  bool isStaging = field == getStagingField(channel);
  int64_t size = getByteSize(channel.getTensorType(isStaging ? 0 : field));
  for (int64_t i = 0; i < ring.getLength(); ++i) {
    int64_t at = ring.slot.getOffset(i);
    bytes.*kind += claimed[ring.device].claim(at, at + size);
  }
  // Evaluation has no more of them than training, if elsewhere.
  if (auto name = channel->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
      name && !isOfStatistic(channel, name)) {
    int64_t all = size * ring.getLength();
    int64_t &known = tied[{ring.device, channel.getSymName(), field}];
    bytes.tied += std::max<int64_t>(0, all - known);
    known = std::max(known, all);
  }
}

/// A channel that no transfer uses stays on its stage.
void ArenaBytes::addChannels() {
  auto isTransferred = [&](Ring ring) {
    return transferred.contains(ring.slot.getSymbolAttr().getAttr());
  };
  for (const Ring &ring : rings)
    if (!isTransferred(ring))
      addRing(ring, &StageBytes::residuals);
  for (const Ring &ring : rings)
    if (isTransferred(ring))
      addRing(ring, &StageBytes::channels);
}

/// Arenas as a whole, and what is left of them for temporaries.
void ArenaBytes::addArenas() {
  llvm::DenseMap<int64_t, int64_t> arenas;
  for (ArenaOp arena : module.getOps<ArenaOp>())
    arenas[arena.getDevice()] = static_cast<int64_t>(arena.getBytes());
  for (StageReport &stage : stages)
    for (int64_t device : stage.devices) {
      stage.arenas.push_back(arenas.lookup(device));
      PENSTOCK_ASSERT(stage.arenas.back() >= stage.leastBytes,
                      "plans are refused by what their devices need at least");
    }
  FailureOr<std::map<int64_t, int64_t>> peaks = getPeakLiveBytes(module);
  for (ArenaOp arena : module.getOps<ArenaOp>()) {
    auto device = static_cast<int64_t>(arena.getDevice());
    if (!rows.has(device))
      continue;
    StageBytes &bytes = rows.ofDevice(device);
    bytes.arena = arena.getBytes();
    bytes.temporaries = 0;
    for (ScratchOp scratch : scratches[device]) {
      auto at = static_cast<int64_t>(scratch.getAt().value_or(0));
      bytes.temporaries += claimed[device].claim(
          at, at + scratch.getBuffer().getType().getNumElements());
    }
    if (succeeded(peaks))
      bytes.lowerBound = (*peaks)[device];
    bytes.padding = bytes.arena;
    for (const StageReport &stage : stages)
      if (!stage.devices.empty() && stage.devices.front() == device)
        bytes.padding -= stage.bytes.weights + stage.bytes.versions +
                         stage.bytes.gradients + stage.bytes.optimizer +
                         stage.bytes.residuals + stage.bytes.temporaries +
                         stage.bytes.channels;
  }
}

void Report::collectProgram(ModuleOp module) {
  collectVariables(module);
  ArenaBytes bytes(module, stages, ends);
  bytes.addChannels();
  bytes.addArenas();
  collectTransport(module);
}

/// "1, 3-7": runs of devices next to each other, of an increasing list.
static std::string formatDevices(ArrayRef<int64_t> devices) {
  std::string text;
  while (!devices.empty()) {
    size_t count = 1;
    while (count < devices.size() &&
           devices[count] == devices.front() + static_cast<int64_t>(count))
      ++count;
    text += (text.empty() ? "" : ", ") + std::to_string(devices.front());
    if (count > 1)
      text += (count > 2 ? "-" : ", ") + std::to_string(devices[count - 1]);
    devices = devices.drop_front(count);
  }
  return text;
}

void Report::printReplicaArenas(llvm::raw_ostream &stream) const {
  for (auto [index, stage] : llvm::enumerate(stages)) {
    llvm::MapVector<int64_t, SmallVector<int64_t>> devicesOf;
    for (auto [device, arena] : llvm::zip(stage.devices, stage.arenas))
      if (arena != stage.arenas.front())
        devicesOf[arena].push_back(device);
    for (auto &[arena, devices] : devicesOf)
      stream << llvm::formatv(
          "stage {0}: the arena{1} of device{1} {2} ha{3} "
          "{4}{5}\n",
          index, devices.size() > 1 ? "s" : "", formatDevices(devices),
          devices.size() > 1 ? "ve" : "s", formatBytes(arena),
          devices.size() > 1 ? " each" : "");
  }
}
