//===- Statements.cpp - Calls do what their tasks say ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule S11: behind a mark, a device makes the calls that the task states, each
// once, with the buffers, versions and numbers that it states by position; a
// message leaves from where the task puts it. Rule S12: what a group sums is
// read only when the sum of this update has come.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/ProgramMachine.h"

#include "penstock/Schedule/Engine.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

void ProgramMachine::collectStatements() {
  for (auto task : module.getOps<TaskOp>()) {
    // Of what is taken per update, the tasks tell.
    auto count = [&](StringAttr name) {
      if (!task.countsMicrobatches() && symbols.lookup<ChannelOp>(name))
        ofMicrobatches[name] = false;
    };
    if (ArrayAttr list = task.getPutsAttr())
      for (auto put : list.getAsRange<PutAttr>()) {
        count(put.getChannel().getAttr());
        if ((task.getKind() == TaskKind::Evaluate) == evaluates)
          puts[put.getChannel().getAttr()] = {task, put};
      }
    if (!task.getCallsAttr())
      continue;
    hasStatements = true;
    Statement &statement = statements[task];
    for (auto stated : task.getCallsAttr().getAsRange<CallAttr>()) {
      Statement::Call &call = statement.calls.emplace_back();
      call.callee = stated.getCallee().getAttr();
      for (Attribute term : stated.getOperands()) {
        auto buffer = dyn_cast<OperandAttr>(term);
        (buffer ? call.buffers : call.numbers).push_back({term, buffer});
        if (buffer)
          count(buffer.getSymbol().getAttr());
      }
    }
  }
}

/// The value of a number of a task in one of its runs.
DeviceNumber ProgramMachine::evaluate(Attribute term, int64_t counter) {
  if (auto name = dyn_cast<StringAttr>(term))
    return hyperparameterNumber(name.getValue());
  if (isa<UnitAttr>(term)) {
    DeviceNumber number;
    number.value = counter;
    number.isKnown = true;
    return number;
  }
  auto computed = dyn_cast<ComputedAttr>(term);
  if (!computed)
    return constantNumber(term);
  SmallVector<DeviceNumber, 4> operands;
  for (Attribute operand : computed.getOperands())
    operands.push_back(evaluate(operand, counter));
  if (auto callee = dyn_cast<FlatSymbolRefAttr>(computed.getBy()))
    return callNumber(callee.getValue(),
                      static_cast<unsigned>(computed.getIndex()), operands);
  DeviceNumber result;
  // Of the version that the update makes; none in the last of a segment.
  auto op = cast<StringAttr>(computed.getBy());
  if (op.getValue() == LaterWavesOp::getOperationName()) {
    auto most = computed.getAttributes().getAs<IntegerAttr>("distance");
    int64_t later = getWavesEnd() - (counter + 1);
    result.value = most ? std::min<int64_t>(later, most.getInt()) : later;
    result.isKnown = true;
    return result;
  }
  if (op.getValue() == StalenessOp::getOperationName()) {
    auto lag = computed.getAttributes().getAs<IntegerAttr>("lag");
    int64_t made = counter + 1 - first;
    result.value =
        made == updates || !lag ? 0 : std::min<int64_t>(made, lag.getInt());
    result.isKnown = true;
    return result;
  }
  computeNumber(OperationName(op.getValue(), module.getContext()),
                computed.getAttributes(), computed.getType(), operands, result);
  return result;
}

/// Where a device both sends and receives messages of a channel, what it sends
/// is in a field behind the last.
int64_t ProgramMachine::getStatedField(const Device &device,
                                       FlatSymbolRefAttr symbol,
                                       int64_t field) const {
  auto channel = symbols.lookup<ChannelOp>(symbol.getAttr());
  if (channel && field == getStagingField(channel) &&
      (isOnFirst() || !hasBothEnds(channel, device.number)))
    return 0;
  return field;
}

static std::string describe(StringRef symbol, int64_t field) {
  return "@" + symbol.str() +
         (field ? " field " + std::to_string(field) : std::string());
}

static const char *describe(AccessKind access) {
  switch (access) {
  case AccessKind::Read:
    return "reads ";
  case AccessKind::Write:
    return "writes ";
  case AccessKind::Update:
    return "updates ";
  }
  return "";
}

LogicalResult ProgramMachine::checkVersion(Device &device,
                                           const TraceEvent &event,
                                           const Access &access,
                                           OperandAttr stated) {
  const CellRef &cell = access.cell;
  TaskOp task = device.running;
  auto getRun = [&] {
    return "@" + task.getSymName().str() + "[" +
           std::to_string(device.runNumber) + "]";
  };
  int64_t due = 0;
  if (auto variable = symbols.lookup<VariableOp>(cell.symbol)) {
    if (getParts(variable) > 1) {
      due =
          task.countsMicrobatches() ? device.runNumber % getParts(variable) : 0;
      if (cell.part == due)
        return success();
      return report(device, event, 11)
             << "has part " << *cell.part << " of @" << cell.symbol.getValue()
             << " in " << getRun() << ", which is part " << due;
    }
    // New versions are numbered by updates, and of what is not updated there is
    // only one to be read.
    if (!device.updatedVariables.contains(cell.symbol) || !access.reads)
      return success();
    auto ring = device.rings.find({cell.symbol, cell.field});
    due = ring == device.rings.end() ? getFirstVersion(device, cell.symbol)
                                     : ring->second.newest;
    if (stated.getLag() && task.countsMicrobatches())
      due =
          first + schedule::versionRead(device.runNumber - first * microbatches,
                                        *stated.getLag(), microbatches);
    else if (stated.getLag() && task.countsWaves())
      due = getWaveVersion(device, cell, *stated.getLag());
    else if (stated.getLag())
      due = first + std::max<int64_t>(0, device.runNumber - first + 1 -
                                             *stated.getLag());
    if (cell.number == due)
      return success();
    InFlightDiagnostic diagnostic = report(device, event, 11);
    diagnostic << "reads version " << cell.number << " of @"
               << cell.symbol.getValue() << " in " << getRun() << ", where ";
    if (stated.getLag())
      diagnostic << "lag " << *stated.getLag() << " asks for " << due;
    else
      diagnostic << "the newest is " << due;
    return diagnostic;
  }
  due = device.runNumber / getShare(device, task).count;
  if (cell.number == due)
    return success();
  return report(device, event, 11)
         << "has message " << cell.number << " of @" << cell.symbol.getValue()
         << " in " << getRun() << ", whose message is " << due;
}

LogicalResult ProgramMachine::checkBuffer(Device &device,
                                          const TraceEvent &event,
                                          size_t position, const Access &access,
                                          OperandAttr stated) {
  AccessKind kind = access.reads && access.writes ? AccessKind::Update
                    : access.writes               ? AccessKind::Write
                                                  : AccessKind::Read;
  int64_t field = getStatedField(device, stated.getSymbol(), stated.getField());
  if (kind == stated.getAccess() &&
      access.cell.symbol == stated.getSymbol().getAttr() &&
      access.cell.field == field)
    return checkVersion(device, event, access, stated);
  InFlightDiagnostic diagnostic =
      report(device, event, 11)
      << "calls @" << event.symbol.getValue() << ", which " << describe(kind)
      << describe(access.cell.symbol.getValue(), access.cell.field)
      << " as buffer " << position << " where @" << device.running.getSymName()
      << " " << describe(stated.getAccess())
      << describe(stated.getSymbol().getValue(), field);
  diagnostic.attachNote(device.running.getLoc()) << "the task states its calls";
  return diagnostic;
}

LogicalResult ProgramMachine::checkCall(Device &device,
                                        const TraceEvent &event) {
  if (!hasStatements)
    return success();
  TaskOp task = device.running;
  if (!task)
    return report(device, event, 11)
           << "calls @" << event.symbol.getValue() << " outside of a run";
  auto found = statements.find(task);
  if (found == statements.end())
    return success();
  const Statement &statement = found->second;
  auto reportCall = [&]() {
    InFlightDiagnostic diagnostic = report(device, event, 11);
    diagnostic << "calls @" << event.symbol.getValue() << " in @"
               << task.getSymName() << "[" << device.runNumber << "], ";
    return diagnostic;
  };
  if (device.calls == statement.calls.size()) {
    InFlightDiagnostic diagnostic = reportCall();
    diagnostic << "which has made its " << statement.calls.size() << " calls";
    diagnostic.attachNote(task.getLoc()) << "the task states its calls";
    return diagnostic;
  }
  const Statement::Call &stated = statement.calls[device.calls++];
  if (stated.callee != event.symbol) {
    InFlightDiagnostic diagnostic = reportCall();
    diagnostic << "whose next call is of @" << stated.callee.getValue();
    diagnostic.attachNote(task.getLoc()) << "the task states its calls";
    return diagnostic;
  }
  if (stated.buffers.size() != event.accesses.size()) {
    InFlightDiagnostic diagnostic = reportCall();
    diagnostic << "with " << event.accesses.size() << " buffers instead of "
               << stated.buffers.size();
    return diagnostic;
  }
  for (auto [position, access] : llvm::enumerate(event.accesses))
    if (failed(checkBuffer(device, event, position, access,
                           stated.buffers[position].buffer)))
      return failure();
  SmallVector<DeviceNumber, 4> numbers;
  device.run->getNumbers(numbers);
  for (auto [position, number] : llvm::enumerate(numbers)) {
    if (position >= stated.numbers.size())
      break;
    DeviceNumber due =
        evaluate(stated.numbers[position].term, device.runNumber);
    if (number.isKnown && number.value == due.value &&
        number.isData == due.isData)
      continue;
    InFlightDiagnostic diagnostic = reportCall();
    diagnostic << "whose number " << position << " is not "
               << stated.numbers[position].term;
    diagnostic.attachNote(task.getLoc()) << "the task states its calls";
    return diagnostic;
  }
  if (numbers.size() == stated.numbers.size())
    return success();
  InFlightDiagnostic diagnostic = reportCall();
  diagnostic << "with " << numbers.size() << " numbers instead of "
             << stated.numbers.size();
  return diagnostic;
}

LogicalResult ProgramMachine::checkPut(Device &device,
                                       const TraceEvent &event) {
  auto stated = puts.find(event.symbol);
  if (stated == puts.end())
    return success();
  auto [task, put] = stated->second;
  const CellRef &cell = event.accesses.front().cell;
  int64_t field = getStatedField(device, put.getSymbol(), put.getField());
  if (cell.symbol == put.getSymbol().getAttr() && cell.field == field)
    return success();
  InFlightDiagnostic diagnostic =
      report(device, event, 11)
      << "sends message " << event.number << " of @" << event.symbol.getValue()
      << " from " << describe(cell.symbol.getValue(), cell.field) << " where @"
      << task.getSymName() << " puts it into "
      << describe(put.getSymbol().getValue(), field);
  diagnostic.attachNote(task.getLoc()) << "the task states its messages";
  return diagnostic;
}

/// A run that wrote the value itself sums it later.
LogicalResult ProgramMachine::checkSummed(Device &device,
                                          const TraceEvent &event) {
  TaskOp task = device.running;
  if (groupOf.empty() || !task || task.countsMicrobatches())
    return success();
  for (const Access &access : event.accesses) {
    GroupOp group = groupOf.lookup(access.cell.symbol);
    if (!group || !access.reads ||
        device.writtenInRun.contains(access.cell.symbol))
      continue;
    auto queued = device.queued.find({group.getSymNameAttr(), false});
    if (queued != device.queued.end() && queued->second.count() &&
        queued->second.first + queued->second.count() - 1 >= device.runNumber)
      continue;
    InFlightDiagnostic diagnostic =
        report(device, event, 12)
        << "reads @" << access.cell.symbol.getValue() << " in @"
        << task.getSymName() << "[" << device.runNumber << "] before @"
        << group.getSymName() << " is summed for this update";
    diagnostic.attachNote(group.getLoc()) << "the group";
    return diagnostic;
  }
  return success();
}
