//===- ProgramMachineBuffers.cpp - What buffers hold --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads, writes and transfers fail where a buffer holds another message or
// version than they name, or holds one that something still needs.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/ProgramMachine.h"

#include "passes/Schedule/Passes.h"
#include "penstock/Schedule/Engine.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

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
      int64_t version = updated ? first : ref.ring == 1 ? ref.number : newest;
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
  return isVariable ? checkAge(device, event, ref) : success();
}

/// What the method of an asynchronous schedule asks for is noted on the stages.
LogicalResult ProgramMachine::checkAge(Device &device, const TraceEvent &event,
                                       const CellRef &ref) {
  TaskOp task = device.running;
  if (!task || !task.countsMicrobatches() ||
      task.getKind() == TaskKind::Evaluate ||
      !device.updatedVariables.contains(ref.symbol) ||
      symbols.lookup<VariableOp>(ref.symbol).getRole() == Role::Gradient)
    return success();
  auto lags = symbols.lookup<StageOp>(task.getStageAttr().getAttr())
                  ->getAttrOfType<DenseI64ArrayAttr>(kLagsAttr);
  if (!lags || lags.size() != 2)
    return success();
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
  if (updates) {
    int64_t run =
        device.runs.lookup(device.running.getSymNameAttr()) - 1 + first;
    if (ref.number != run + 1)
      return report(device, event, 3)
             << "writes version " << ref.number << " of @"
             << ref.symbol.getValue() << " in update " << run;
  }
  cell.content = ref.number;
  cell.used = isVariable;
  return success();
}
