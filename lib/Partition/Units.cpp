//===- Units.cpp - The forward function as a line of ONNX nodes -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Units.h. What later stages can compute by themselves (constants,
// expressions of parameters) belongs to no unit and is not carried.
//===----------------------------------------------------------------------===//

#include "penstock/Partition/Units.h"

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Support/NodeName.h"
#include "penstock/Target/PlannedCost.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace penstock;

/// Parameters among what `op` uses, and among what that was computed from.
static void collectParameters(ForwardProgram &program, Operation *op,
                              llvm::SetVector<unsigned> &arguments) {
  for (Value value : getUsedValues(op)) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == &program.function.getBody().front() &&
          program.getRead(argument.getArgNumber()))
        arguments.insert(argument.getArgNumber());
    } else if (program.isRecomputable(value.getDefiningOp())) {
      collectParameters(program, value.getDefiningOp(), arguments);
    }
  }
}

/// Values that depend on what trains: gradients go through them.
static llvm::DenseSet<Value> findActive(ForwardProgram &program) {
  llvm::DenseSet<Value> active;
  Block &block = program.function.getBody().front();
  for (BlockArgument argument : block.getArguments()) {
    pipeline::ReadOp read = program.getRead(argument.getArgNumber());
    auto variable =
        read ? SymbolTable::lookupNearestSymbolFrom<pipeline::VariableOp>(
                   read, read.getVariableAttr())
             : pipeline::VariableOp();
    if (variable && variable.getRole() == pipeline::Role::Parameter)
      active.insert(argument);
  }
  for (Operation &op : block.without_terminator())
    if (llvm::any_of(getUsedValues(&op),
                     [&](Value value) { return active.contains(value); }))
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result)))
          active.insert(result);
  return active;
}

Units Units::collect(ForwardProgram &program,
                     std::optional<MachineRates> rates) {
  return collect(
      program,
      PlannedCost::get(program.function->getParentOfType<ModuleOp>(), rates));
}

Units Units::collect(ForwardProgram &program, const PlannedCost &costs) {
  Units result;
  result.rates = costs.getRates();
  result.microbatches = std::max<int64_t>(costs.getUpdate().microbatches, 1);
  llvm::DenseSet<Value> active = findActive(program);
  auto isWeight = [&](Value value) {
    if (Operation *op = value.getDefiningOp())
      return program.isRecomputable(op);
    return bool(program.getRead(cast<BlockArgument>(value).getArgNumber()));
  };
  auto needsGradient = [&](Value value) { return active.contains(value); };
  llvm::DenseMap<Operation *, int64_t> unitOf;
  llvm::SetVector<unsigned> parameters;
  for (Operation &op :
       program.function.getBody().front().without_terminator()) {
    if (program.isRecomputable(&op))
      continue;
    StringRef name = getNodeName(op.getLoc());
    if (result.units.empty() || result.units.back().name != name ||
        name.empty()) {
      result.units.emplace_back();
      result.units.back().name = name;
    }
    Unit &unit = result.units.back();
    unit.ops.push_back(&op);
    unitOf[&op] = static_cast<int64_t>(result.units.size()) - 1;
    OpSeconds seconds = costs.getSeconds(&op, isWeight, needsGradient);
    unit.forwardSeconds += seconds.forward;
    unit.backwardSeconds += seconds.backward;
    unit.updateSeconds += seconds.update;
    size_t known = parameters.size();
    collectParameters(program, &op, parameters);
    for (unsigned argument :
         ArrayRef(parameters.getArrayRef()).drop_front(known)) {
      Value weight = program.function.getArgument(argument);
      double bytes = getTypeBytes(weight.getType());
      unit.weightBytes += bytes;
      if (active.contains(weight))
        unit.updateSeconds += costs.getUpdateSeconds(bytes);
    }
  }
  if (auto measured = program.function->getAttrOfType<DenseF64ArrayAttr>(
          pipeline::kUnitSecondsAttr);
      measured &&
      measured.size() == static_cast<int64_t>(3 * result.units.size())) {
    for (auto [index, unit] : llvm::enumerate(result.units)) {
      unit.forwardSeconds = measured[3 * index];
      unit.backwardSeconds = measured[3 * index + 1];
      if (costs.getUpdate().microbatches > 0)
        unit.updateSeconds = measured[3 * index + 2];
    }
  }
  // A value is carried over every cut between its definition and its last use:
  // the activation forward, its cotangent back.
  result.cutBytes.assign(result.units.size() + 1, 0);
  for (auto [from, unit] : llvm::enumerate(result.units)) {
    for (Operation *op : unit.ops) {
      for (Value value : op->getResults()) {
        auto last = static_cast<int64_t>(from);
        for (Operation *user : program.getUsersInFunction(value))
          if (auto it = unitOf.find(user); it != unitOf.end())
            last = std::max(last, it->second);
        for (int64_t cut = from + 1; cut <= last; ++cut)
          result.cutBytes[cut] += getTypeBytes(value.getType());
      }
    }
  }
  return result;
}

LinearProblem Units::getLinearProblem() const {
  LinearProblem problem;
  for (const Unit &unit : units)
    problem.unitSeconds.push_back(getSeconds(unit));
  for (double bytes : cutBytes)
    problem.cutSeconds.push_back(2 * rates.getTransferSeconds(bytes));
  return problem;
}

LayerGraph Units::getLayerGraph(ForwardProgram &program) const {
  LayerGraph graph;
  llvm::DenseMap<Operation *, unsigned> unitOf;
  for (auto [index, unit] : llvm::enumerate(units)) {
    Layer layer;
    layer.name = unit.name.str();
    layer.forwardSeconds = unit.forwardSeconds;
    layer.backwardSeconds = unit.backwardSeconds;
    layer.weightBytes = unit.weightBytes;
    graph.layers.push_back(std::move(layer));
    for (Operation *op : unit.ops)
      unitOf[op] = index;
  }
  for (auto [index, unit] : llvm::enumerate(units)) {
    for (Operation *op : unit.ops) {
      for (Value value : op->getResults()) {
        bool leaves = false;
        for (Operation *user : program.getUsersInFunction(value)) {
          auto it = unitOf.find(user);
          if (it == unitOf.end() || it->second == index)
            continue;
          leaves = true;
          graph.addEdge(index, it->second);
        }
        if (leaves)
          graph.layers[index].outputBytes += getTypeBytes(value.getType());
      }
    }
  }
  return graph;
}

/// Slowest stage, if the cut numbered `moved` stood at `place`; nothing if that
/// is no place for it.
static std::optional<double> getSlowest(int64_t count, ArrayRef<int64_t> cuts,
                                        size_t moved, int64_t place,
                                        Units::StageSeconds getSeconds) {
  SmallVector<int64_t> ends(cuts);
  ends[moved] = place;
  ends.push_back(count);
  double slowest = 0;
  int64_t begin = 0;
  for (auto [stage, end] : llvm::enumerate(ends)) {
    if (end <= begin || end > count)
      return std::nullopt;
    slowest =
        std::max(slowest, getSeconds(static_cast<int64_t>(stage), begin, end));
    begin = end;
  }
  return slowest;
}

void Units::explain(ArrayRef<int64_t> cuts) const {
  LinearProblem problem = getLinearProblem();
  explain(cuts, [&](int64_t, int64_t begin, int64_t end) {
    return getStageSeconds(problem, begin, end);
  });
}

void Units::explain(ArrayRef<int64_t> cuts, StageSeconds getSeconds) const {
  auto count = static_cast<int64_t>(units.size());
  int64_t begin = 0;
  for (auto [index, cut] : llvm::enumerate(cuts)) {
    InFlightDiagnostic remark = units[cut].ops.front()->emitRemark();
    remark << llvm::formatv(
                  "stage {0} begins here, after '{1}': it carries {2:F0} "
                  "bytes; stage {3} takes {4:F2} us",
                  index + 1, units[cut - 1].name, cutBytes[cut], index,
                  getSeconds(static_cast<int64_t>(index), begin, cut) * 1e6)
                  .str();
    for (int64_t place = cut - 2; place <= cut + 2; ++place) {
      std::optional<double> slowest =
          place > 0 ? getSlowest(count, cuts, index, place, getSeconds)
                    : std::nullopt;
      if (!slowest)
        continue;
      remark.attachNote() << llvm::formatv(
                                 "  {0} after '{1}': {2:F0} bytes, slowest "
                                 "stage {3:F2} us",
                                 place == cut ? "here " : "or",
                                 units[place - 1].name, cutBytes[place],
                                 *slowest * 1e6)
                                 .str();
    }
    begin = cut;
  }
}

void penstock::insertBoundaries(ForwardProgram &program, const Units &units,
                                ArrayRef<int64_t> cuts) {
  OpBuilder builder(program.function.getContext());
  for (auto [index, cut] : llvm::enumerate(cuts)) {
    builder.setInsertionPoint(units.units[cut].ops.front());
    pipeline::BoundaryOp::create(builder, program.function.getLoc(),
                                 builder.getI64IntegerAttr(index + 1));
  }
}

void penstock::setMeasuredSeconds(ForwardProgram &program,
                                  ArrayRef<UnitSeconds> seconds) {
  SmallVector<double> numbers;
  for (const UnitSeconds &unit : seconds)
    numbers.append({unit.forward, unit.backward, unit.update});
  program.function->setAttr(
      pipeline::kUnitSecondsAttr,
      DenseF64ArrayAttr::get(program.function.getContext(), numbers));
}

void penstock::noteStageSeconds(ModuleOp module, ForwardProgram &program,
                                const Units &units) {
  auto measured = program.function->getAttrOfType<DenseF64ArrayAttr>(
      pipeline::kUnitSecondsAttr);
  if (!measured ||
      measured.size() != static_cast<int64_t>(3 * units.units.size()))
    return;
  llvm::DenseMap<Operation *, size_t> unitOf;
  for (auto [index, unit] : llvm::enumerate(units.units))
    unitOf[unit.ops.front()] = index;
  SmallVector<double> sums(3, 0);
  for (Operation &op : program.function.getBody().front()) {
    if (isa<pipeline::BoundaryOp>(op))
      sums.append(3, 0);
    else if (auto it = unitOf.find(&op); it != unitOf.end())
      for (size_t part = 0; part < 3; ++part)
        sums[sums.size() - 3 + part] += measured[3 * it->second + part];
  }
  module->setAttr(pipeline::kStageSecondsAttr,
                  DenseF64ArrayAttr::get(module.getContext(), sums));
}
