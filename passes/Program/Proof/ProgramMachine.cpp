//===- ProgramMachine.cpp - Executes traces of all devices ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No queue has a choice, so one execution decides. A buffer counts as free only
// once the device has waited for what moves through it: that a transfer happens
// to be done in this execution does not suffice.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/ProgramMachine.h"

#include "passes/Schedule/Passes.h"
#include "penstock/Schedule/Engine.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

ProgramMachine::ProgramMachine(ModuleOp module, ScheduleOp schedule,
                               int64_t first, int64_t updates, int64_t newest)
    : symbols(module), module(module), schedule(schedule),
      first(first * static_cast<int64_t>(schedule.getWave())),
      updates(updates * static_cast<int64_t>(schedule.getWave())),
      newest(newest),
      microbatches(static_cast<int64_t>(schedule.getMicrobatches())),
      wave(static_cast<int64_t>(schedule.getWave())),
      distance(static_cast<int64_t>(schedule.getDistance())),
      trains(pipeline::trains(module)) {
  // Of variables that are trained elsewhere, it counts updates, too.
  int64_t trained = 1;
  for (auto other : module.getOps<ScheduleOp>())
    trained = std::max(trained, static_cast<int64_t>(other.getWave()));
  this->newest *= trained;
}

void ProgramMachine::addDevice(int64_t number, std::vector<TraceEvent> trace,
                               const ArenaMap *map) {
  Device &device = devices.emplace_back();
  device.number = number;
  device.map = map;
  device.trace = std::move(trace);
  TaskOp task;
  llvm::DenseSet<Attribute> byUpdates, byWaves;
  for (TraceEvent &event : device.trace) {
    splitParts(event);
    if (event.kind == TraceEvent::Send || event.kind == TraceEvent::Recv)
      ends.try_emplace({event.symbol, event.kind == TraceEvent::Send}, number);
    if (event.kind == TraceEvent::Mark)
      task = symbols.lookup<TaskOp>(event.symbol);
    evaluates |= task && task.getKind() == TaskKind::Evaluate;
    if (event.kind != TraceEvent::Call || !task || task.countsMicrobatches())
      continue;
    for (const Access &access : event.accesses) {
      if (!access.writes)
        continue;
      device.updatedVariables.insert(access.cell.symbol);
      (task.countsWaves() ? byWaves : byUpdates).insert(access.cell.symbol);
    }
  }
  for (Attribute variable : byWaves)
    (byUpdates.contains(variable) ? device.foldedVariables
                                  : device.waveVariables)
        .insert(variable);
}

InFlightDiagnostic ProgramMachine::report(const Device &device,
                                          const TraceEvent &event, int rule) {
  return event.op->emitError() << "S" << rule << ": device " << device.number
                               << " in a segment of " << updates << " updates ";
}

bool ProgramMachine::isExternal(StringAttr name) {
  auto channel = symbols.lookup<ChannelOp>(name);
  return channel && (channel.getSource() || channel.getSink());
}

bool ProgramMachine::hasOwnQueue(StringAttr name) {
  auto channel = symbols.lookup<ChannelOp>(name);
  return channel && channel.getOwnQueue();
}

int64_t ProgramMachine::getFirstMessage(StringAttr name) {
  return hasOwnQueue(name) ? first / wave : first * microbatches;
}

//===----------------------------------------------------------------------===//
// Replicas
//===----------------------------------------------------------------------===//

Share ProgramMachine::getShare(const Device &device, TaskOp task) const {
  auto stage = symbols.lookup<StageOp>(task.getStageAttr().getAttr());
  if (!task.countsMicrobatches() || !stage)
    return {};
  return pipeline::getShare(stage, device.number, isOnFirst());
}

Share ProgramMachine::getShare(const Device &device,
                               const TraceEvent &event) const {
  auto channel = symbols.lookup<ChannelOp>(event.symbol);
  if (!channel || isOnFirst())
    return {};
  return pipeline::getShare(channel, device.number, !isSending(device, event));
}

bool ProgramMachine::isSending(const Device &device,
                               const TraceEvent &event) const {
  if (event.kind != TraceEvent::Await)
    return event.kind == TraceEvent::Send;
  // Of an await, the number tells, where replicas are at both ends.
  auto channel = symbols.lookup<ChannelOp>(event.symbol);
  if (!channel)
    return false;
  ArrayRef<int64_t> senders = getEnds(channel, kSendersAttr);
  if (isOnFirst() ||
      (senders.empty() && getEnds(channel, kReceiversAttr).empty()))
    return !device.queued.contains({event.symbol, false});
  if (senders.empty())
    return false;
  auto count = static_cast<int64_t>(senders.size());
  return senders[(event.number % count + count) % count] == device.number;
}

std::vector<size_t> &ProgramMachine::getQueued(Device &device,
                                               const TraceEvent &event) {
  return device.queued[{event.symbol, isSending(device, event)}];
}

void ProgramMachine::splitParts(TraceEvent &event) const {
  for (Access &access : event.accesses) {
    auto variable = symbols.lookup<VariableOp>(access.cell.symbol);
    if (!variable || getParts(variable) == 1)
      continue;
    access.cell.part =
        static_cast<int32_t>(access.cell.number % getParts(variable));
    access.cell.number /= microbatches;
  }
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Buffers: which message or version each holds, and who still needs it
//===----------------------------------------------------------------------===//

FailureOr<ProgramMachine::Cell *>
ProgramMachine::getCell(Device &device, const TraceEvent &event,
                        const CellRef &ref) {
  auto [it, isNew] =
      device.rings.try_emplace({Attribute(ref.symbol), ref.field});
  Ring &ring = it->second;
  if (isNew) {
    Operation *symbol = symbols.lookup(ref.symbol);
    if (!isa_and_nonnull<VariableOp, ChannelOp>(symbol))
      return report(device, event, 8)
             << "uses a slot of @" << ref.symbol.getValue()
             << ", which is no variable or channel";
    ring.size = ref.ring;
    ring.isVariable = isa<VariableOp>(symbol);
    // Version `first` is there when a segment of training begins. Of a variable
    // that is not updated the newest is read; with one version, whatever its
    // number.
    if (ring.isVariable) {
      bool updated = device.updatedVariables.contains(ref.symbol);
      int64_t version = device.waveVariables.contains(ref.symbol) ? first / wave
                        : updated                                 ? first
                        : ref.ring == 1                           ? ref.number
                                                                  : newest;
      int64_t parts = getParts(cast<VariableOp>(symbol));
      if (parts == 1)
        ring.cells[version % ring.size].content = version;
      for (int64_t part = 0; parts > 1 && part < parts; ++part)
        ring.cells[part].content = version;
    }
  }
  if (ring.size != ref.ring)
    return report(device, event, 8)
           << "uses a ring of " << ref.ring << " for @" << ref.symbol.getValue()
           << ", but one of " << ring.size << " elsewhere";
  return &ring.cells[ref.getIndex()];
}

std::string penstock::nameOf(const CellRef &ref) {
  std::string text =
      "@" + ref.symbol.str() + "[" + std::to_string(ref.number) + "]";
  if (ref.field)
    text += " field " + std::to_string(ref.field);
  return text;
}

LogicalResult ProgramMachine::checkFree(Device &device, const TraceEvent &event,
                                        const CellRef &ref, const Cell &cell) {
  if (cell.filling)
    return report(device, event, 5)
           << "fills " << nameOf(ref)
           << " while it may still be received into: a slot or an await is "
              "missing";
  if (!cell.leaving.empty())
    return report(device, event, 5)
           << "fills " << nameOf(ref) << " while message " << *cell.content
           << " may still be sent from there: a slot or an await is missing";
  if (!cell.used && !symbols.lookup<VariableOp>(ref.symbol))
    return report(device, event, 5)
           << "fills " << nameOf(ref) << " before message " << *cell.content
           << " in the same slot is used: a slot is missing";
  return success();
}

ArrayRef<SlotKey> ProgramMachine::getNeighbours(const Device &device,
                                                const CellRef &ref) {
  if (!device.map)
    return {};
  return device.map->getNeighbours(
      {schedule.getSymNameAttr(), ref.symbol, ref.field, ref.getIndex()});
}

LogicalResult ProgramMachine::overwrite(Device &device, const TraceEvent &event,
                                        ArrayRef<SlotKey> slots) {
  for (auto [name, symbol, field, index] : slots) {
    auto ring = device.rings.find({symbol, field});
    if (ring == device.rings.end())
      continue;
    auto found = ring->second.cells.find(index);
    if (found == ring->second.cells.end() || !found->second.content)
      continue;
    Cell &cell = found->second;
    if (cell.filling || !cell.leaving.empty() || !cell.used)
      return report(device, event, 9)
             << "takes bytes of slot " << index << " of @"
             << cast<StringAttr>(symbol).getValue()
             << (field ? " field " + std::to_string(field) : "")
             << " while message " << *cell.content << " is there";
    cell.content = std::nullopt;
  }
  return success();
}

LogicalResult ProgramMachine::read(Device &device, const TraceEvent &event,
                                   const CellRef &ref) {
  FailureOr<Cell *> cell = getCell(device, event, ref);
  if (failed(cell))
    return failure();
  bool isVariable = symbols.lookup<VariableOp>(ref.symbol) != nullptr;
  if ((*cell)->content != ref.number) {
    InFlightDiagnostic diagnostic = report(device, event, isVariable ? 3 : 2)
                                    << "reads " << nameOf(ref);
    if ((*cell)->content)
      diagnostic << ", but the buffer holds number " << *(*cell)->content;
    else
      diagnostic << ", but nothing was stored there";
    return diagnostic;
  }
  if ((*cell)->filling)
    return report(device, event, 2)
           << "reads " << nameOf(ref) << " without having awaited it";
  (*cell)->used = true;
  if (!isVariable)
    return success();
  return failed(checkWave(device, event, ref)) ? failure()
                                               : checkAge(device, event, ref);
}

/// What the method of an asynchronous schedule asks for is noted on the stages.
LogicalResult ProgramMachine::checkAge(Device &device, const TraceEvent &event,
                                       const CellRef &ref) {
  TaskOp task = device.running;
  if (!task || task.getKind() == TaskKind::Evaluate ||
      !device.updatedVariables.contains(ref.symbol) ||
      symbols.lookup<VariableOp>(ref.symbol).getRole() == Role::Gradient)
    return success();
  auto lags = symbols.lookup<StageOp>(task.getStageAttr().getAttr())
                  ->getAttrOfType<DenseI64ArrayAttr>(kLagsAttr);
  if (!lags)
    return success();
  if (!task.countsMicrobatches() &&
      symbols.lookup<VariableOp>(ref.symbol).getRole() != Role::Parameter)
    return success();
  if (!task.countsMicrobatches())
    return checkUpdateAge(device, event, ref, lags.size() > 2 ? lags[2] : 0);
  int64_t lag = lags[task.getKind() == TaskKind::Forward ? 0 : 1];
  int64_t run = getShare(device, task)
                    .getNumber(device.runs.lookup(task.getSymNameAttr()) - 1);
  int64_t due = first + schedule::versionRead(run, lag, microbatches);
  if (ref.number == due)
    return success();
  return report(device, event, 3)
         << "reads version " << ref.number << " of @" << ref.symbol.getValue()
         << " in run " << run + first * microbatches << " of @"
         << task.getSymName() << ", but its lag(" << lag << ") asks for "
         << due;
}

/// An update reads the newest version of what it writes, and beside it, where
/// it blends, the one that is so many updates older than what it makes.
LogicalResult ProgramMachine::checkUpdateAge(Device &device,
                                             const TraceEvent &event,
                                             const CellRef &ref, int64_t lag) {
  TaskOp task = device.running;
  int64_t run = device.runs.lookup(task.getSymNameAttr()) - 1;
  int64_t due = first + std::max<int64_t>(0, run + 1 - lag);
  int64_t reads = 0;
  bool isDueRead = false;
  for (const Access &access : event.accesses) {
    if (access.cell.symbol != ref.symbol || !access.reads)
      continue;
    ++reads;
    isDueRead |= access.cell.number == due;
  }
  bool isNewest = ref.number == first + run;
  if (task.getKind() != TaskKind::Update || lag == 0 || ref.number == due ||
      (isNewest && (reads < 2 || isDueRead)))
    return success();
  return report(device, event, 3)
         << "reads version " << ref.number << " of @" << ref.symbol.getValue()
         << " in update " << first + run << ", but its lag(" << lag
         << ") asks for " << due;
}

LogicalResult ProgramMachine::write(Device &device, const TraceEvent &event,
                                    const CellRef &ref, bool inPlace) {
  FailureOr<Cell *> found = getCell(device, event, ref);
  if (failed(found))
    return failure();
  Cell &cell = **found;
  bool isVariable = symbols.lookup<VariableOp>(ref.symbol) != nullptr;
  bool updates =
      isVariable && device.running && !device.running.countsMicrobatches();
  if (inPlace) {
    if (!cell.leaving.empty() || cell.filling)
      return checkFree(device, event, ref, cell);
    if (updates)
      device.updatedInPlace.push_back(ref);
    return success();
  }
  if (failed(checkFree(device, event, ref, cell)))
    return failure();
  if (updates && device.running.countsWaves() &&
      device.foldedVariables.contains(ref.symbol)) {
    // The version that is there already.
    int64_t newest =
        first +
        countRuns(device, getWaveTasks(device.running.getStage()).update);
    if (ref.number != newest || cell.content != newest)
      return report(device, event, 10)
             << "folds into version " << ref.number << " of @"
             << ref.symbol.getValue() << " instead of " << newest;
  } else if (updates) {
    int64_t begin = device.running.countsWaves() ? first / wave : first;
    int64_t run =
        device.runs.lookup(device.running.getSymNameAttr()) - 1 + begin;
    if (ref.number != run + 1)
      return report(device, event, 3)
             << "writes version " << ref.number << " of @"
             << ref.symbol.getValue() << " in update " << run;
  }
  cell.content = ref.number;
  cell.used = isVariable;
  return success();
}

//===----------------------------------------------------------------------===//
// Events: one device at the next entry of its trace
//===----------------------------------------------------------------------===//

/// What a run updated in place is one version newer afterwards.
void ProgramMachine::endRun(Device &device) {
  for (const CellRef &ref : device.updatedInPlace)
    device.rings[{ref.symbol, ref.field}].cells[ref.getIndex()].content =
        ref.number + 1;
  device.updatedInPlace.clear();
  device.running = nullptr;
}

LogicalResult ProgramMachine::startRun(Device &device,
                                       const TraceEvent &event) {
  endRun(device);
  auto task = symbols.lookup<TaskOp>(event.symbol);
  if (!task)
    return report(device, event, 8)
           << "marks @" << event.symbol.getValue() << ", which is no task";
  int64_t runs = device.runs.lookup(event.symbol);
  Share share = getShare(device, task);
  int64_t expected = task.countsMicrobatches()
                         ? first * microbatches + share.getNumber(runs)
                     : task.countsWaves() ? first / wave + runs
                                          : first + runs;
  if (event.number != expected)
    return report(device, event, 1)
           << "runs @" << event.symbol.getValue() << "[" << event.number
           << "] instead of number " << expected;
  device.runs[event.symbol] = ++runs;
  device.running = task;
  if (task.countsMicrobatches())
    return success();
  if (task.countsWaves())
    return startWave(device, event, task, runs);
  // The gradient of an update must be complete, and no more than that.
  for (auto other : module.getOps<TaskOp>()) {
    if (other.getStage() != task.getStage() ||
        (other.getKind() != TaskKind::Backward &&
         other.getKind() != TaskKind::WeightGrad))
      continue;
    int64_t count = device.runs.lookup(other.getSymNameAttr());
    int64_t due = runs * microbatches / getShare(device, other).count;
    if (count != due)
      return report(device, event, 4)
             << "runs @" << event.symbol.getValue() << "[" << event.number
             << "] after " << count << " instead of " << due << " runs of @"
             << other.getSymName();
  }
  return success();
}

LogicalResult ProgramMachine::checkNumber(Device &device,
                                          const TraceEvent &event) {
  const char *verb = event.kind == TraceEvent::Recv   ? "receives"
                     : event.kind == TraceEvent::Send ? "sends"
                                                      : "sums";
  std::vector<size_t> &queued = getQueued(device, event);
  Share share = getShare(device, event);
  if (!queued.empty()) {
    const TraceEvent &former = device.trace[queued.back()];
    if (event.number != former.number + share.count)
      return report(device, event, 8)
             << verb << " message " << event.number << " of @"
             << event.symbol.getValue() << " after message " << former.number;
  } else if (event.number != getFirstMessage(event.symbol) + share.index &&
             event.number != first) {
    return report(device, event, 8) << "begins @" << event.symbol.getValue()
                                    << " with message " << event.number;
  }
  return success();
}

void ProgramMachine::queue(Device &device, const TraceEvent &event) {
  getQueued(device, event).push_back(device.position);
  device.transfers[device.position] = {device.position};
  if (isExternal(event.symbol))
    device.transfers[device.position].done = true;
  else if (hasOwnQueue(event.symbol))
    device.own[{event.symbol.getAsOpaquePointer(), isSending(device, event)}]
        .push_back(device.position);
  else
    device.waiting.push_back(device.position);
}

LogicalResult ProgramMachine::startTransfer(Device &device,
                                            const TraceEvent &event) {
  bool isRecv = event.kind == TraceEvent::Recv;
  const CellRef &ref = event.accesses.front().cell;
  if (failed(checkNumber(device, event)))
    return failure();
  // Slots count what their own device has.
  if (ref.number != event.number / getShare(device, event).count ||
      (isRecv && ref.symbol != event.symbol))
    return report(device, event, 8)
           << (isRecv ? "receives" : "sends") << " message " << event.number
           << " of @" << event.symbol.getValue()
           << (isRecv ? " into " : " from ") << nameOf(ref);

  if (isRecv) {
    FailureOr<Cell *> cell = getCell(device, event, ref);
    if (failed(cell) || failed(checkFree(device, event, ref, **cell)) ||
        failed(overwrite(device, event, getNeighbours(device, ref))))
      return failure();
    (*cell)->content = ref.number;
    (*cell)->used = false;
    (*cell)->filling = device.position;
  } else {
    if (failed(read(device, event, ref)))
      return failure();
    (*getCell(device, event, ref))->leaving.push_back(device.position);
  }
  queue(device, event);
  return success();
}

/// The values are those of the device's members, in their order, each with all
/// its parts: the runtime adds what stands at the same position everywhere.
LogicalResult ProgramMachine::checkSummands(Device &device,
                                            const TraceEvent &event,
                                            GroupOp group) {
  SmallVector<std::pair<StringRef, int64_t>> expected;
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    auto names = llvm::to_vector(member.getAsRange<FlatSymbolRefAttr>());
    auto first = symbols.lookup<VariableOp>(names.front().getValue());
    auto stage = symbols.lookup<StageOp>(*first.getStage());
    if (!llvm::is_contained(*stage.getDevices(), device.number))
      continue;
    for (int64_t part : llvm::seq(getParts(first)))
      for (FlatSymbolRefAttr name : names)
        expected.push_back({name.getValue(), part});
  }
  for (size_t i : llvm::seq(std::max(expected.size(), event.accesses.size()))) {
    if (i >= event.accesses.size() || i >= expected.size())
      return report(device, event, 8)
             << "sums " << event.accesses.size() << " buffers of @"
             << event.symbol.getValue() << " instead of " << expected.size();
    const CellRef &cell = event.accesses[i].cell;
    auto [name, part] = expected[i];
    if (cell.symbol.getValue() == name && cell.part.value_or(0) == part)
      continue;
    auto text = [](StringRef name, int64_t part) {
      return "@" + name.str() +
             (part ? " part " + std::to_string(part) : std::string());
    };
    return report(device, event, 8)
           << "sums " << text(cell.symbol.getValue(), cell.part.value_or(0))
           << " where @" << event.symbol.getValue() << " has "
           << text(name, part);
  }
  return success();
}

/// Sums take what every microbatch of the update has added, once, and nobody
/// looks at it before it has been awaited.
LogicalResult ProgramMachine::startSum(Device &device,
                                       const TraceEvent &event) {
  if (failed(checkNumber(device, event)))
    return failure();
  auto group = symbols.lookup<GroupOp>(event.symbol);
  if (!group)
    return report(device, event, 8)
           << "sums @" << event.symbol.getValue() << ", which is no group";
  if (failed(checkSummands(device, event, group)))
    return failure();
  for (const Access &access : event.accesses)
    if (failed(read(device, event, access.cell)))
      return failure();
  for (const Access &access : event.accesses) {
    Cell &cell = **getCell(device, event, access.cell);
    cell.filling = device.position;
    // Only the first part waits for the update; the others begin anew.
    if (access.cell.part.value_or(0) > 0)
      ++*cell.content;
  }
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    auto variable = symbols.lookup<VariableOp>(
        cast<FlatSymbolRefAttr>(member[0]).getAttr());
    for (auto task : module.getOps<TaskOp>()) {
      int64_t count = device.runs.lookup(task.getSymNameAttr());
      int64_t due = (event.number - first + 1) * microbatches /
                    getShare(device, task).count;
      if (task.getStageAttr() == variable.getStageAttr() && count != 0 &&
          count != due &&
          (task.getKind() == TaskKind::Backward ||
           task.getKind() == TaskKind::WeightGrad))
        return report(device, event, 4)
               << "sums @" << event.symbol.getValue() << "[" << event.number
               << "] after " << count << " instead of " << due << " runs of @"
               << task.getSymName();
    }
  }
  queue(device, event);
  return success();
}

/// The device knows of this transfer that it is done, and of those before it.
void ProgramMachine::complete(Device &device, size_t index) {
  const TraceEvent &awaited = device.trace[index];
  auto isAlone = [&](StringAttr channel) {
    return isExternal(channel) || hasOwnQueue(channel);
  };
  bool external = isAlone(awaited.symbol);
  for (auto it = device.transfers.begin();
       it != device.transfers.end() && it->first <= index;) {
    const TraceEvent &event = device.trace[it->first];
    bool covered =
        external ? event.symbol == awaited.symbol : !isAlone(event.symbol);
    if (!covered) {
      ++it;
      continue;
    }
    for (const Access &access : event.accesses) {
      const CellRef &ref = access.cell;
      Cell &cell = device.rings[{ref.symbol, ref.field}].cells[ref.getIndex()];
      if (cell.filling == it->first)
        cell.filling = std::nullopt;
      llvm::erase(cell.leaving, it->first);
    }
    it = device.transfers.erase(it);
  }
}

FailureOr<bool> ProgramMachine::await(Device &device, const TraceEvent &event) {
  const std::vector<size_t> &queued = getQueued(device, event);
  Share share = getShare(device, event);
  // Messages of former segments are gone, negative numbers never were.
  if (event.number < getFirstMessage(event.symbol) && event.number < first)
    return true;
  int64_t begin = queued.empty() ? getFirstMessage(event.symbol) + share.index
                                 : device.trace[queued.front()].number;
  if (event.number < begin)
    return true;
  int64_t place = (event.number - begin) / share.count;
  if (place >= static_cast<int64_t>(queued.size()) ||
      (event.number - begin) % share.count) {
    report(device, event, 7)
        << "awaits message " << event.number << " of @"
        << event.symbol.getValue() << " before it is queued";
    return failure();
  }
  size_t index = queued[place];
  auto transfer = device.transfers.find(index);
  if (transfer == device.transfers.end())
    return true;
  if (!transfer->second.done)
    return false;
  complete(device, index);
  return true;
}

LogicalResult ProgramMachine::call(Device &device, const TraceEvent &event) {
  // What shares bytes with temporaries or results is lost, even if the call
  // itself would read it.
  if (device.map)
    if (failed(overwrite(device, event, device.map->getOverwritten(event.op))))
      return failure();
  for (const Access &access : event.accesses) {
    if (!access.writes || access.reads)
      continue;
    SlotKey slot(schedule.getSymNameAttr(), access.cell.symbol,
                 access.cell.field, access.cell.getIndex());
    if (device.map &&
        llvm::is_contained(device.map->getOverwritten(event.op), slot))
      return report(device, event, 9) << "writes " << nameOf(access.cell)
                                      << " into bytes of its own temporaries";
    if (failed(overwrite(device, event, getNeighbours(device, access.cell))))
      return failure();
  }
  // All is read before anything is written: elementwise updates may be in
  // place.
  for (const Access &access : event.accesses)
    if (access.reads && failed(read(device, event, access.cell)))
      return failure();
  for (const Access &access : event.accesses)
    if (access.writes &&
        failed(write(device, event, access.cell, access.reads)))
      return failure();
  return success();
}

FailureOr<bool> ProgramMachine::step(Device &device) {
  const TraceEvent &event = device.trace[device.position];
  LogicalResult result = success();
  switch (event.kind) {
  case TraceEvent::Await:
    return await(device, event);
  case TraceEvent::Mark:
    result = startRun(device, event);
    break;
  case TraceEvent::Call:
    result = call(device, event);
    break;
  case TraceEvent::Recv:
  case TraceEvent::Send:
    result = startTransfer(device, event);
    break;
  case TraceEvent::Sum:
    result = startSum(device, event);
    break;
  }
  if (failed(result))
    return failure();
  return true;
}

//===----------------------------------------------------------------------===//
// Devices together: transfers, sums, the run to the end
//===----------------------------------------------------------------------===//

/// Performs every transfer that heads the queues of both its devices.
FailureOr<bool> ProgramMachine::exchange() {
  bool moved = false;
  for (Device &sender : devices) {
    while (!sender.waiting.empty()) {
      const TraceEvent &send = sender.trace[sender.waiting.front()];
      if (send.kind != TraceEvent::Send)
        break;
      auto receiver = llvm::find_if(devices, [&](Device &other) {
        if (&other == &sender || other.waiting.empty())
          return false;
        const TraceEvent &recv = other.trace[other.waiting.front()];
        // Who takes this message: one of several receivers, or the only one.
        auto channel = symbols.lookup<ChannelOp>(send.symbol);
        ArrayRef<int64_t> ends = channel && !isOnFirst()
                                     ? getEnds(channel, kReceiversAttr)
                                     : ArrayRef<int64_t>();
        return recv.kind == TraceEvent::Recv && recv.symbol == send.symbol &&
               (ends.empty() ||
                ends[send.number % ends.size()] == other.number);
      });
      if (receiver == devices.end())
        break;
      const TraceEvent &recv = receiver->trace[receiver->waiting.front()];
      // The message of another sender comes first.
      if (recv.number < send.number && getShare(sender, send).count > 1)
        break;
      if (recv.number != send.number) {
        report(*receiver, recv, 8)
            << "receives message " << recv.number << " of @"
            << recv.symbol.getValue() << " when device " << sender.number
            << " sends message " << send.number;
        return failure();
      }
      endFirst(sender);
      endFirst(*receiver);
      moved = true;
    }
  }
  FailureOr<bool> own = exchangeOwn();
  if (failed(own))
    return failure();
  return exchangeSums() || moved || *own;
}

/// Those that wait for no others.
FailureOr<bool> ProgramMachine::exchangeOwn() {
  bool moved = false;
  for (Device &sender : devices)
    for (auto &[key, sends] : sender.own) {
      auto [channel, isSend] = key;
      if (!isSend)
        continue;
      for (Device &receiver : devices) {
        auto found = receiver.own.find({channel, false});
        if (found == receiver.own.end())
          continue;
        std::deque<size_t> &recvs = found->second;
        while (!sends.empty() && !recvs.empty()) {
          const TraceEvent &send = sender.trace[sends.front()];
          const TraceEvent &recv = receiver.trace[recvs.front()];
          if (send.number != recv.number)
            return report(receiver, recv, 8)
                   << "receives message " << recv.number << " of @"
                   << recv.symbol.getValue() << " when device " << sender.number
                   << " sends message " << send.number;
          for (auto [device, queue] :
               {std::pair(&sender, &sends), std::pair(&receiver, &recvs)}) {
            auto transfer = device->transfers.find(queue->front());
            if (transfer != device->transfers.end())
              transfer->second.done = true;
            queue->pop_front();
          }
          moved = true;
        }
      }
    }
  return moved;
}

void ProgramMachine::endFirst(Device &device) {
  auto transfer = device.transfers.find(device.waiting.front());
  if (transfer != device.transfers.end())
    transfer->second.done = true;
  device.waiting.pop_front();
}

llvm::SmallSetVector<int64_t, 4> ProgramMachine::getDevices(StringAttr name) {
  llvm::SmallSetVector<int64_t, 4> result;
  auto group = symbols.lookup<GroupOp>(name);
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    auto variable = symbols.lookup<VariableOp>(
        cast<FlatSymbolRefAttr>(member[0]).getAttr());
    auto stage = symbols.lookup<StageOp>(*variable.getStage());
    result.insert(stage.getDevices()->begin(), stage.getDevices()->end());
  }
  return result;
}

/// A sum ends when it heads the queues of all its devices.
bool ProgramMachine::exchangeSums() {
  bool moved = false;
  for (Device &one : devices) {
    if (one.waiting.empty())
      continue;
    const TraceEvent &sum = one.trace[one.waiting.front()];
    if (sum.kind != TraceEvent::Sum)
      continue;
    SmallVector<Device *> ready;
    llvm::SmallSetVector<int64_t, 4> members = getDevices(sum.symbol);
    for (Device &device : devices) {
      if (!members.contains(device.number) || device.waiting.empty())
        continue;
      const TraceEvent &head = device.trace[device.waiting.front()];
      if (head.kind == TraceEvent::Sum && head.symbol == sum.symbol &&
          head.number == sum.number)
        ready.push_back(&device);
    }
    if (ready.size() != members.size())
      continue;
    for (Device *device : ready)
      endFirst(*device);
    moved = true;
  }
  return moved;
}

static std::string describe(const TraceEvent &event) {
  static const char *const kNames[] = {"run",  "call",  "receive",
                                       "send", "await", "sum"};
  return std::string(kNames[event.kind]) + " @" + event.symbol.str() + "[" +
         std::to_string(event.number) + "]";
}

std::optional<int64_t> ProgramMachine::findPeer(const TraceEvent &event) const {
  // 1. Where there are several, the number tells.
  bool sends = event.kind == TraceEvent::Send;
  auto channel = symbols.lookup<ChannelOp>(event.symbol);
  if (channel && !isOnFirst()) {
    ArrayRef<int64_t> many =
        getEnds(channel, sends ? kReceiversAttr : kSendersAttr);
    if (!many.empty())
      return many[static_cast<size_t>(event.number) % many.size()];
  }

  // 2. Whoever is alone at the other end is there for all messages.
  auto found = ends.find({event.symbol, !sends});
  if (found == ends.end())
    return std::nullopt;
  return found->second;
}

std::string ProgramMachine::whomAwaits(const Device &device) {
  const TraceEvent &head = device.trace[device.waiting.front()];
  SmallVector<int64_t> others;
  if (head.kind == TraceEvent::Sum) {
    for (int64_t member : getDevices(head.symbol)) {
      auto other = llvm::find_if(
          devices, [&](Device &one) { return one.number == member; });
      bool isThere = other != devices.end() && !other->waiting.empty() &&
                     other->trace[other->waiting.front()].kind == head.kind &&
                     other->trace[other->waiting.front()].symbol == head.symbol;
      if (!isThere)
        others.push_back(member);
    }
  } else if (std::optional<int64_t> peer = findPeer(head)) {
    others.push_back(*peer);
  }
  std::string text;
  for (int64_t other : others)
    text += (text.empty() ? ", which waits for device " : ", ") +
            std::to_string(other);
  return text;
}

LogicalResult ProgramMachine::reportDeadlock() {
  const Device *stuck = nullptr;
  for (const Device &device : devices)
    if (!stuck && device.position < device.trace.size())
      stuck = &device;
  InFlightDiagnostic diagnostic =
      stuck ? report(*stuck, stuck->trace[stuck->position], 7)
                  << "deadlocks: transfers of a device end in the order of its "
                     "calls (N1)"
            : schedule.emitError()
                  << "S6: transfers are left over in a segment of " << updates
                  << " updates";
  for (const Device &device : devices) {
    std::string text = "device " + std::to_string(device.number) + ": ";
    text += device.position < device.trace.size()
                ? "at " + describe(device.trace[device.position])
                : std::string("at the end");
    text += device.waiting.empty()
                ? std::string(", no transfer")
                : ", next transfer " +
                      describe(device.trace[device.waiting.front()]) +
                      whomAwaits(device);
    diagnostic.attachNote(schedule.getLoc()) << text;
  }
  return diagnostic;
}

/// S1 and S6: everything ran, nothing is left over.
LogicalResult ProgramMachine::finish() {
  for (auto task : module.getOps<TaskOp>()) {
    if ((task.getKind() == TaskKind::Evaluate) != evaluates)
      continue;
    int64_t runs = 0;
    for (Device &device : devices)
      runs += device.runs.lookup(task.getSymNameAttr());
    // All replicas make all updates.
    auto stage = symbols.lookup<StageOp>(task.getStageAttr().getAttr());
    int64_t replicas =
        stage && stage.getDevices() ? stage.getDevices()->size() : 1;
    int64_t expected =
        task.countsWaves()
            ? updates / wave
            : updates * (task.countsMicrobatches() ? microbatches : replicas);
    if (runs != expected)
      return task.emitError() << "S1: runs " << runs << " times instead of "
                              << expected << " in a segment of " << updates
                              << " updates of " << schedule.getSymNameAttr();
  }
  for (Device &device : devices) {
    endRun(device);
    if (!device.waiting.empty() ||
        llvm::any_of(device.own,
                     [](const auto &own) { return !own.second.empty(); }))
      return reportDeadlock();
    for (auto &[key, ring] : device.rings)
      for (auto &[index, cell] : ring.cells)
        if (!ring.isVariable && !cell.used)
          return schedule.emitError()
                 << "S6: on device " << device.number << ", message "
                 << *cell.content << " of @"
                 << cast<StringAttr>(key.first).getValue()
                 << " is never used in a segment of " << updates << " updates";
  }
  return success();
}

LogicalResult ProgramMachine::run() {
  if (failed(checkPairs()) || failed(checkSums()))
    return failure();
  while (true) {
    bool moved = false;
    for (Device &device : devices) {
      while (device.position < device.trace.size()) {
        FailureOr<bool> done = step(device);
        if (failed(done))
          return failure();
        if (!*done)
          break;
        ++device.position;
        moved = true;
      }
    }
    FailureOr<bool> exchanged = exchange();
    if (failed(exchanged))
      return failure();
    if (moved || *exchanged)
      continue;
    for (const Device &device : devices)
      if (device.position < device.trace.size())
        return reportDeadlock();
    return finish();
  }
}
