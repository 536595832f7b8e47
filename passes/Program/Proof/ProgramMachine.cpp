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
      arguments{first, updates, newest}, trains(pipeline::trains(module)) {
  // Of variables that are trained elsewhere, it counts updates, too.
  int64_t trained = 1;
  for (auto other : module.getOps<ScheduleOp>())
    trained = std::max(trained, static_cast<int64_t>(other.getWave()));
  this->newest *= trained;
  for (auto variable : module.getOps<VariableOp>())
    hasParts |= getParts(variable) > 1;
  for (auto group : module.getOps<GroupOp>())
    for (auto member : group.getMembers().getAsRange<ArrayAttr>())
      for (auto name : member.getAsRange<FlatSymbolRefAttr>())
        groupOf[name.getAttr()] = group;
  for (auto task : module.getOps<TaskOp>()) {
    // Slopes do not show how versions of waves follow from the length.
    covers &= wave == 1 && !task.countsWaves();
    if (task.getKind() == TaskKind::Backward ||
        task.getKind() == TaskKind::WeightGrad)
      if (auto stage = symbols.lookup<StageOp>(task.getStage()))
        makers[stage].push_back(task);
  }
}

void ProgramMachine::addDevice(int64_t number, const DeviceCode &code,
                               const ArenaMap *map) {
  deviceIds[number] = devices.size();
  Device &device = devices.emplace_back();
  device.number = number;
  device.map = map;
  device.code = &code;
  device.run = std::make_unique<DeviceRun>(code, arguments[0], arguments[1],
                                           arguments[2]);
  TaskOp task;
  llvm::DenseSet<Attribute> byUpdates, byWaves;
  func::FuncOp function = code.getFunction();
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto mark = dyn_cast<MarkOp>(op)) {
      task = symbols.lookup<TaskOp>(mark.getTask());
      evaluates |= task && task.getKind() == TaskKind::Evaluate;
    } else if (auto send = dyn_cast<StartSendOp>(op)) {
      ends.try_emplace({send.getChannelAttr().getAttr(), true}, number);
    } else if (auto recv = dyn_cast<StartRecvOp>(op)) {
      StringAttr channel = recv.getChannelAttr().getAttr();
      ends.try_emplace({channel, false}, number);
      if (device.received.insert(channel).second)
        receivers[channel].push_back(deviceIds[number]);
    } else if (auto call = dyn_cast<func::CallOp>(op);
               call && task && !task.countsMicrobatches()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
        auto slot = operand.getDefiningOp<SlotOp>();
        if (!slot || !callee ||
            (!callee.getArgAttr(i, kOutAttr) &&
             !callee.getArgAttr(i, kIntoAttr)))
          continue;
        StringAttr symbol = slot.getSymbolAttr().getAttr();
        device.updatedVariables.insert(symbol);
        (task.countsWaves() ? byWaves : byUpdates).insert(symbol);
      }
    }
  });
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
  auto [known, isNew] = external.try_emplace(name);
  if (isNew) {
    auto channel = symbols.lookup<ChannelOp>(name);
    known->second = channel && (channel.getSource() || channel.getSink());
  }
  return known->second;
}

bool ProgramMachine::countsMicrobatches(StringAttr channel) {
  auto known = ofMicrobatches.find(channel);
  return known == ofMicrobatches.end() || known->second;
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
    return !device.received.contains(event.symbol);
  if (senders.empty())
    return false;
  auto count = static_cast<int64_t>(senders.size());
  return senders[(event.number % count + count) % count] == device.number;
}

ProgramMachine::Queue &ProgramMachine::getQueued(Device &device,
                                                 const TraceEvent &event) {
  return device.queued[{event.symbol, isSending(device, event)}];
}

void ProgramMachine::splitParts(TraceEvent &event) const {
  if (!hasParts)
    return;
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
    ring.cells.resize(ref.ring);
    ring.isVariable = isa<VariableOp>(symbol);
    // Version `first` is there when a segment of training begins. Of a variable
    // that is not updated the newest is read; with one version, whatever its
    // number.
    if (ring.isVariable) {
      bool updated = device.updatedVariables.contains(ref.symbol);
      int64_t version = updated         ? getFirstVersion(device, ref.symbol)
                        : ref.ring == 1 ? ref.number
                                        : newest;
      int64_t parts = getParts(cast<VariableOp>(symbol));
      ring.newest = version;
      if (parts == 1)
        ring.cells[version % ring.size].content = version;
      ring.cells.resize(std::max(ring.size, parts));
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
  require(cell.isFree(event.from));
  return success();
}

ArrayRef<SlotKey> ProgramMachine::getNeighbors(const Device &device,
                                               const CellRef &ref) {
  if (!device.map)
    return {};
  return device.map->getNeighbors(
      {schedule.getSymNameAttr(), ref.symbol, ref.field, ref.getIndex()});
}

LogicalResult ProgramMachine::overwrite(Device &device, const TraceEvent &event,
                                        ArrayRef<SlotKey> slots) {
  for (auto [name, symbol, field, index] : slots) {
    auto ring = device.rings.find({symbol, field});
    if (ring == device.rings.end())
      continue;
    if (index >= static_cast<int64_t>(ring->second.cells.size()))
      continue;
    Cell &cell = ring->second.cells[index];
    if (!cell.content)
      continue;
    if (cell.filling || !cell.leaving.empty() || !cell.used)
      return report(device, event, 9)
             << "takes bytes of slot " << index << " of @"
             << cast<StringAttr>(symbol).getValue()
             << (field ? " field " + std::to_string(field) : "")
             << " while message " << *cell.content << " is there";
    require(cell.isFree(event.from));
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
  require((*cell)->storedFrom <= event.from && (*cell)->isArrived(event.from) &&
          ((*cell)->used || (*cell)->storedFrom == event.from));
  (*cell)->used = true;
  if (!isVariable)
    return success();
  return failed(checkWave(device, event, ref)) ? failure()
                                               : checkAge(device, event, ref);
}

/// Checks the age of a read: stages note the requirements of an asynchronous
/// schedule's method.
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
/// it blends, the one that is so many updates older than what it makes. What it
/// makes of the new version, as packed weights, reads that alone.
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
  bool isNewest = ref.number == first + run,
       isMade = ref.number == first + run + 1;
  if (task.getKind() != TaskKind::Update || lag == 0 || ref.number == due ||
      (isMade && reads < 2) || (isNewest && (reads < 2 || isDueRead)))
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
  cell.store(event.from);
  if (isVariable) {
    Ring &ring = device.rings[{ref.symbol, ref.field}];
    ring.newest = std::max(ring.newest, ref.number);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Events: one device at the next entry of its trace
//===----------------------------------------------------------------------===//

/// Ends a run: variables that it updated in place are one version newer
/// afterwards.
LogicalResult ProgramMachine::endRun(Device &device) {
  for (const CellRef &ref : device.updatedInPlace) {
    Ring &ring = device.rings[{ref.symbol, ref.field}];
    Cell &cell = ring.cells[ref.getIndex()];
    cell.content = ref.number + 1;
    cell.storedFrom = device.runFrom;
    ring.newest = std::max(ring.newest, ref.number + 1);
  }
  device.updatedInPlace.clear();
  device.writtenInRun.clear();
  TaskOp task = device.running;
  device.running = nullptr;
  if (!task)
    return success();
  auto stated = statements.find(task);
  if (stated == statements.end() || device.calls == stated->second.calls.size())
    return success();
  InFlightDiagnostic diagnostic =
      device.mark->emitError("S11: device ")
      << device.number << " in a segment of " << updates << " updates makes "
      << device.calls << " of the " << stated->second.calls.size()
      << " calls of @" << task.getSymName() << "[" << device.runNumber
      << "]: that of @" << stated->second.calls[device.calls].callee.getValue()
      << " is missing";
  diagnostic.attachNote(task.getLoc()) << "the task states its calls";
  return diagnostic;
}

LogicalResult ProgramMachine::startRun(Device &device,
                                       const TraceEvent &event) {
  if (failed(endRun(device)))
    return failure();
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
  device.runNumber = event.number;
  device.runFrom = event.from;
  device.mark = event.op;
  device.calls = 0;
  require(event.from == getLeast(task.countsMicrobatches(), event.number));
  if (task.countsMicrobatches())
    return success();
  if (task.countsWaves())
    return startWave(device, event, task, runs);
  // The gradient of an update must be complete, and no more than that.
  for (TaskOp other : makers.lookup(symbols.lookup(task.getStage()))) {
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
  const Queue &queued = getQueued(device, event);
  Share share = getShare(device, event);
  if (queued.count()) {
    int64_t former = queued.first + (queued.count() - 1) * share.count;
    if (event.number != former + share.count)
      return report(device, event, 8)
             << verb << " message " << event.number << " of @"
             << event.symbol.getValue() << " after message " << former;
  } else if (event.number != getFirstMessage(event.symbol) + share.index &&
             event.number != first) {
    return report(device, event, 8) << "begins @" << event.symbol.getValue()
                                    << " with message " << event.number;
  }
  require(event.from == getLeast(event.kind != TraceEvent::Sum &&
                                     countsMicrobatches(event.symbol),
                                 event.number));
  return success();
}

void ProgramMachine::queue(Device &device, const TraceEvent &event) {
  Queue &queued = getQueued(device, event);
  size_t number = device.firstTransfer + device.transfers.size();
  if (queued.count() == 0)
    queued.first = event.number;
  queued.transfers.push_back(number);
  Transfer &transfer = device.transfers.emplace_back();
  transfer.kind = event.kind;
  transfer.op = event.op;
  transfer.symbol = event.symbol;
  transfer.number = event.number;
  for (const Access &access : event.accesses)
    transfer.cells.push_back(access.cell);
  transfer.done = isExternal(event.symbol);
  bool isOwn = !transfer.done && hasOwnQueue(event.symbol);
  transfer.isAlone = transfer.done || isOwn;
  if (isOwn)
    device.own[{event.symbol.getAsOpaquePointer(), isSending(device, event)}]
        .push_back(number);
  else if (!transfer.done)
    device.waiting.push_back(number);
}

LogicalResult ProgramMachine::startTransfer(Device &device,
                                            const TraceEvent &event) {
  bool isRecv = event.kind == TraceEvent::Recv;
  const CellRef &ref = event.accesses.front().cell;
  if (failed(checkNumber(device, event)) ||
      (!isRecv && failed(checkPut(device, event))))
    return failure();
  size_t number = device.firstTransfer + device.transfers.size();
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
        failed(overwrite(device, event, getNeighbors(device, ref))))
      return failure();
    (*cell)->content = ref.number;
    (*cell)->used = false;
    (*cell)->store(event.from);
    (*cell)->filling = number;
  } else {
    if (failed(read(device, event, ref)))
      return failure();
    (*getCell(device, event, ref))->leaving.push_back(number);
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
    cell.filling = device.firstTransfer + device.transfers.size();
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
void ProgramMachine::complete(Device &device, size_t number) {
  bool isAlone = getTransfer(device, number).isAlone;
  StringAttr symbol = getTransfer(device, number).symbol;
  for (size_t id = device.firstTransfer; id <= number; ++id) {
    Transfer &transfer = getTransfer(device, id);
    if (transfer.known ||
        (isAlone ? transfer.symbol != symbol : transfer.isAlone))
      continue;
    transfer.known = true;
    for (const CellRef &ref : transfer.cells) {
      Cell &cell = device.rings[{ref.symbol, ref.field}].cells[ref.getIndex()];
      if (cell.filling == id) {
        cell.filling = std::nullopt;
        cell.arrived = static_cast<int64_t>(id);
        cell.arrivedCover = &getCover(device, transfer);
      }
      auto left = llvm::find(cell.leaving, id);
      if (left == cell.leaving.end())
        continue;
      cell.leaving.erase(left);
      cell.left = static_cast<int64_t>(id);
      cell.leftCover = &getCover(device, transfer);
    }
    ++device.queued[{transfer.symbol, transfer.kind == TraceEvent::Send}].known;
  }
  while (!device.transfers.empty() && device.transfers.front().known) {
    device.transfers.pop_front();
    ++device.firstTransfer;
  }
}

FailureOr<bool> ProgramMachine::await(Device &device, const TraceEvent &event) {
  const Queue &queued = getQueued(device, event);
  Share share = getShare(device, event);
  // Messages of former segments are gone, negative numbers never were.
  if (event.number < getFirstMessage(event.symbol) && event.number < first)
    return true;
  int64_t begin = queued.count() ? queued.first
                                 : getFirstMessage(event.symbol) + share.index;
  if (event.number < begin)
    return true;
  int64_t place = (event.number - begin) / share.count;
  if (place >= queued.count() || (event.number - begin) % share.count) {
    report(device, event, 7)
        << "awaits message " << event.number << " of @"
        << event.symbol.getValue() << " before it is queued";
    return failure();
  }
  bool ofSum = symbols.lookup<GroupOp>(event.symbol) != nullptr;
  require(getLeast(!ofSum && countsMicrobatches(event.symbol), event.number) <=
          event.from);
  size_t number = queued.transfers[place];
  bool isAlone = isExternal(event.symbol) || hasOwnQueue(event.symbol);
  const void *key = isAlone ? event.symbol.getAsOpaquePointer() : nullptr;
  Cover &cover = device.covers.try_emplace(key, updates).first->second;
  if (place >= queued.known) {
    if (!getTransfer(device, number).done)
      return false;
    complete(device, number);
  }
  cover.add(event.from, static_cast<int64_t>(number));
  return true;
}

LogicalResult ProgramMachine::call(Device &device, const TraceEvent &event) {
  if (failed(checkCall(device, event)) || failed(checkSummed(device, event)))
    return failure();
  require(!device.running || event.from == device.runFrom);
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
    if (failed(overwrite(device, event, getNeighbors(device, access.cell))))
      return failure();
  }
  // All is read before anything is written: elementwise updates may be in
  // place.
  for (const Access &access : event.accesses)
    if (access.reads && failed(read(device, event, access.cell)))
      return failure();
  for (const Access &access : event.accesses) {
    if (!access.writes)
      continue;
    if (failed(write(device, event, access.cell, access.reads)))
      return failure();
    device.writtenInRun.insert(access.cell.symbol);
  }
  return success();
}

FailureOr<bool> ProgramMachine::advance(Device &device) {
  FailureOr<bool> more = device.run->next(device.event);
  if (failed(more))
    return failure();
  device.isAtEnd = !*more;
  device.event.from = std::max<int64_t>(1, device.event.from);
  if (!*more)
    return false;
  splitParts(device.event);
  if (executed)
    (*executed)[device.event.op] = updates;
  return more;
}

FailureOr<bool> ProgramMachine::step(Device &device) {
  const TraceEvent &event = device.event;
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

LogicalResult ProgramMachine::reportMessages(const Device &receiver,
                                             const Transfer &recv,
                                             const Device &sender,
                                             const Transfer &send) {
  return recv.op->emitError("S8: device ")
         << receiver.number << " in a segment of " << updates
         << " updates receives message " << recv.number << " of @"
         << recv.symbol.getValue() << " when device " << sender.number
         << " sends message " << send.number;
}

/// Performs every transfer that heads the queues of both its devices.
FailureOr<bool> ProgramMachine::exchange() {
  bool moved = false;
  for (Device &sender : devices) {
    while (!sender.waiting.empty()) {
      const Transfer &send = getTransfer(sender, sender.waiting.front());
      if (send.kind != TraceEvent::Send)
        break;
      // Who takes this message: one of several receivers, or the only one.
      auto channel = symbols.lookup<ChannelOp>(send.symbol);
      ArrayRef<int64_t> ends = channel && !isOnFirst()
                                   ? getEnds(channel, kReceiversAttr)
                                   : ArrayRef<int64_t>();
      Device *receiver = nullptr;
      for (size_t id : receivers.lookup(send.symbol)) {
        Device &other = devices[id];
        if (&other == &sender || other.waiting.empty() ||
            (!ends.empty() && ends[send.number % ends.size()] != other.number))
          continue;
        const Transfer &head = getTransfer(other, other.waiting.front());
        if (head.kind == TraceEvent::Recv && head.symbol == send.symbol)
          receiver = &other;
      }
      if (!receiver)
        break;
      const Transfer &recv = getTransfer(*receiver, receiver->waiting.front());
      // The message of another sender comes first.
      if (recv.number < send.number && channel && !isOnFirst() &&
          pipeline::getShare(channel, sender.number, /*receives=*/false).count >
              1)
        break;
      if (recv.number != send.number)
        return reportMessages(*receiver, recv, sender, send);
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
          Transfer &send = getTransfer(sender, sends.front());
          Transfer &recv = getTransfer(receiver, recvs.front());
          if (send.number != recv.number)
            return reportMessages(receiver, recv, sender, send);
          send.done = recv.done = true;
          sends.pop_front();
          recvs.pop_front();
          moved = true;
        }
      }
    }
  return moved;
}

void ProgramMachine::endFirst(Device &device) {
  getTransfer(device, device.waiting.front()).done = true;
  device.waiting.pop_front();
}

const llvm::SmallSetVector<int64_t, 4> &
ProgramMachine::getDevices(StringAttr name) {
  auto [known, isNew] = groups.try_emplace(name);
  if (!isNew)
    return known->second;
  auto group = symbols.lookup<GroupOp>(name);
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    auto variable = symbols.lookup<VariableOp>(
        cast<FlatSymbolRefAttr>(member[0]).getAttr());
    auto stage = symbols.lookup<StageOp>(*variable.getStage());
    known->second.insert(stage.getDevices()->begin(),
                         stage.getDevices()->end());
  }
  return known->second;
}

/// A sum ends when it heads the queues of all its devices.
bool ProgramMachine::exchangeSums() {
  bool moved = false;
  for (Device &one : devices) {
    if (one.waiting.empty())
      continue;
    const Transfer &sum = getTransfer(one, one.waiting.front());
    if (sum.kind != TraceEvent::Sum)
      continue;
    SmallVector<Device *> ready;
    const llvm::SmallSetVector<int64_t, 4> &members = getDevices(sum.symbol);
    for (int64_t number : members) {
      auto id = deviceIds.find(number);
      if (id == deviceIds.end() || devices[id->second].waiting.empty())
        break;
      Device &device = devices[id->second];
      const Transfer &head = getTransfer(device, device.waiting.front());
      if (head.kind != TraceEvent::Sum || head.symbol != sum.symbol ||
          head.number != sum.number)
        break;
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

template <typename Event> static std::string describe(const Event &event) {
  static const char *const kNames[] = {"run",  "call",  "receive",
                                       "send", "await", "sum"};
  return std::string(kNames[event.kind]) + " @" + event.symbol.str() + "[" +
         std::to_string(event.number) + "]";
}

std::optional<int64_t> ProgramMachine::findPeer(TraceEvent::Kind kind,
                                                StringAttr symbol,
                                                int64_t number) const {
  // 1. Where there are several, the number tells.
  bool sends = kind == TraceEvent::Send;
  auto channel = symbols.lookup<ChannelOp>(symbol);
  if (channel && !isOnFirst()) {
    ArrayRef<int64_t> many =
        getEnds(channel, sends ? kReceiversAttr : kSendersAttr);
    if (!many.empty())
      return many[static_cast<size_t>(number) % many.size()];
  }

  // 2. Whoever is alone at the other end is there for all messages.
  auto found = ends.find({symbol, !sends});
  if (found == ends.end())
    return std::nullopt;
  return found->second;
}

std::string ProgramMachine::whomAwaits(Device &device) {
  const Transfer &head = getTransfer(device, device.waiting.front());
  SmallVector<int64_t> others;
  if (head.kind == TraceEvent::Sum) {
    for (int64_t member : getDevices(head.symbol)) {
      auto id = deviceIds.find(member);
      Device *other = id == deviceIds.end() ? nullptr : &devices[id->second];
      bool isThere = false;
      if (other && !other->waiting.empty()) {
        const Transfer &first = getTransfer(*other, other->waiting.front());
        isThere = first.kind == head.kind && first.symbol == head.symbol;
      }
      if (!isThere)
        others.push_back(member);
    }
  } else if (std::optional<int64_t> peer =
                 findPeer(head.kind, head.symbol, head.number)) {
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
    if (!stuck && !device.isAtEnd)
      stuck = &device;
  InFlightDiagnostic diagnostic =
      stuck ? report(*stuck, stuck->event, 7)
                  << "deadlocks: transfers of a device end in the order of its "
                     "calls (N1)"
            : schedule.emitError()
                  << "S6: transfers are left over in a segment of " << updates
                  << " updates";
  for (Device &device : devices) {
    std::string text = "device " + std::to_string(device.number) + ": ";
    text += device.isAtEnd ? std::string("at the end")
                           : "at " + describe(device.event);
    text += device.waiting.empty()
                ? std::string(", no transfer")
                : ", next transfer " +
                      describe(getTransfer(device, device.waiting.front())) +
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
    covers &= device.run->isMonotone();
    if (failed(endRun(device)))
      return failure();
    if (!device.waiting.empty() ||
        llvm::any_of(device.own,
                     [](const auto &own) { return !own.second.empty(); }))
      return reportDeadlock();
    for (auto &[key, ring] : device.rings)
      for (const Cell &cell : ring.cells)
        if (!ring.isVariable && !cell.used)
          return schedule.emitError()
                 << "S6: on device " << device.number << ", message "
                 << *cell.content << " of @"
                 << cast<StringAttr>(key.first).getValue()
                 << " is never used in a segment of " << updates << " updates";
  }
  return success();
}

LogicalResult ProgramMachine::run(bool explains) {
  if (explains && failed(checkOrder()))
    return failure();
  collectStatements();
  for (Device &device : devices)
    if (failed(advance(device)))
      return failure();
  while (true) {
    bool moved = false;
    for (Device &device : devices) {
      while (!device.isAtEnd) {
        FailureOr<bool> done = step(device);
        if (failed(done))
          return failure();
        if (!*done)
          break;
        if (failed(advance(device)))
          return failure();
        moved = true;
      }
    }
    FailureOr<bool> exchanged = exchange();
    if (failed(exchanged))
      return failure();
    if (moved || *exchanged)
      continue;
    for (const Device &device : devices)
      if (!device.isAtEnd)
        return reportDeadlock();
    return finish();
  }
}
