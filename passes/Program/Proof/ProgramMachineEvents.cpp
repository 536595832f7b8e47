//===- ProgramMachineEvents.cpp - What a device does next ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs, transfers and sums in the order of a device's trace: their numbers,
// what they wait for, and the calls in between.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/ProgramMachine.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

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
                         : first + runs;
  if (event.number != expected)
    return report(device, event, 1)
           << "runs @" << event.symbol.getValue() << "[" << event.number
           << "] instead of number " << expected;
  device.runs[event.symbol] = ++runs;
  device.running = task;
  if (task.countsMicrobatches())
    return success();
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
  } else if (event.number != first * microbatches + share.index &&
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
  bool external = isExternal(awaited.symbol);
  for (auto it = device.transfers.begin();
       it != device.transfers.end() && it->first <= index;) {
    const TraceEvent &event = device.trace[it->first];
    bool covered =
        external ? event.symbol == awaited.symbol : !isExternal(event.symbol);
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
  if (event.number < first * microbatches && event.number < first)
    return true;
  int64_t begin = queued.empty() ? first * microbatches + share.index
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
