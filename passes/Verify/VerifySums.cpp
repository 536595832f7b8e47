//===- VerifySums.cpp - What must be summed is ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule C37: gradients of copies of a parameter, gradients of
// replicas and the squares of a global norm are summed by a group each, once.
// That a schedule does so, once per update and before the reader, is S1, S2 and
// S12.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Pipeline/Replicas.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

class SumRules {
public:
  SumRules(Subject &subject) : subject(subject) {}
  LogicalResult verify();

private:
  LogicalResult collect();
  LogicalResult verifyGroup(GroupOp group);
  LogicalResult verifyOrder(GroupOp group, ArrayRef<StageOp> stages);
  LogicalResult verifyMakers(GroupOp group);
  LogicalResult verifyCopies();
  LogicalResult verifyReplicas();
  LogicalResult verifySquares();
  /// Where the update, or the norm, reads what is not summed.
  Operation *getReader(VariableOp variable);
  /// The parameter of which all are copies.
  Attribute getOriginal(VariableOp gradient);
  int64_t countReplicas(VariableOp variable);

  Subject &subject;
  llvm::MapVector<VariableOp, GroupOp> groupOf;
  llvm::DenseMap<Operation *, int64_t> stageNumbers;
  llvm::DenseMap<Operation *, Operation *> readers;
  /// Variables that a backward adds to.
  llvm::DenseSet<Operation *> made;
  /// Variables that norms write.
  llvm::SetVector<Operation *> squares;
  TaskOp norm;
};

} // namespace

Operation *SumRules::getReader(VariableOp variable) {
  Operation *reader = readers.lookup(variable);
  return reader ? reader : variable.getOperation();
}

Attribute SumRules::getOriginal(VariableOp gradient) {
  auto name = gradient->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  auto parameter =
      name ? subject.symbols.lookup<VariableOp>(name.getValue()) : VariableOp();
  if (!parameter || parameter.getRole() != Role::Parameter)
    return name;
  Attribute original = parameter->getAttr(kParameterAttr);
  return original ? original : Attribute(name);
}

int64_t SumRules::countReplicas(VariableOp variable) {
  auto stage = variable.getStageAttr()
                   ? subject.symbols.lookup<StageOp>(*variable.getStage())
                   : StageOp();
  int64_t devices =
      stage && stage.getDevices() ? int64_t(stage.getDevices()->size()) : 1;
  return std::max(devices, getParts(variable));
}

LogicalResult SumRules::collect() {
  for (auto stage : subject.module.getOps<StageOp>())
    stageNumbers.try_emplace(stage, stageNumbers.size());
  for (TaskOp task : subject.module.getOps<TaskOp>())
    for (const VariableUse &use : getUses(subject, task)) {
      bool makes = task.getKind() == TaskKind::Backward ||
                   task.getKind() == TaskKind::WeightGrad;
      if (use.writes && makes)
        made.insert(use.variable);
      if (use.writes && task.getKind() == TaskKind::Norm)
        squares.insert(use.variable);
      if (task.getKind() == TaskKind::Norm)
        norm = task;
      if (use.reads && !task.countsMicrobatches())
        readers.try_emplace(use.variable, use.op);
    }
  for (GroupOp group : subject.module.getOps<GroupOp>())
    for (auto member : group.getMembers().getAsRange<ArrayAttr>())
      for (auto name : member.getAsRange<FlatSymbolRefAttr>()) {
        auto variable = subject.symbols.lookup<VariableOp>(name.getValue());
        if (!variable || variable.getRole() == Role::Parameter)
          continue;
        auto [known, isNew] = groupOf.insert({variable, group});
        if (isNew)
          continue;
        InFlightDiagnostic diagnostic = group.emitOpError("C37: sums ");
        diagnostic << name << " again";
        diagnostic.attachNote(known->second.getLoc()) << "summed here";
        return diagnostic;
      }
  return success();
}

/// The sum is formed in the order (stage, replica).
LogicalResult SumRules::verifyOrder(GroupOp group, ArrayRef<StageOp> stages) {
  for (size_t i = 1; i < stages.size(); ++i) {
    StageOp a = stages[i - 1], b = stages[i];
    if (stageNumbers.lookup(a) > stageNumbers.lookup(b))
      return group.emitOpError("C37: has the member of stage @")
             << a.getSymName() << " before that of @" << b.getSymName()
             << ", which comes first";
  }
  return success();
}

/// Each value of a sum over copies is made on one of their stages; it is zero
/// on the others.
LogicalResult SumRules::verifyMakers(GroupOp group) {
  auto members = llvm::to_vector(group.getMembers().getAsRange<ArrayAttr>());
  for (size_t i : llvm::seq(members.front().size())) {
    SmallVector<VariableOp> makers;
    for (ArrayAttr member : members) {
      auto variable = subject.symbols.lookup<VariableOp>(
          cast<FlatSymbolRefAttr>(member[i]).getValue());
      if (made.contains(variable))
        makers.push_back(variable);
    }
    if (makers.size() == 1 || made.empty())
      continue;
    InFlightDiagnostic diagnostic = group.emitOpError("C37: sums in position ");
    diagnostic << i << " " << makers.size()
               << " gradients that a backward makes, instead of one";
    for (VariableOp maker : makers)
      diagnostic.attachNote(maker.getLoc()) << "made by a backward";
    return diagnostic;
  }
  return success();
}

LogicalResult SumRules::verifyGroup(GroupOp group) {
  SmallVector<StageOp> stages;
  std::optional<Role> role;
  Attribute original;
  int64_t most = 1;
  bool overStages = group.getMembers().size() > 1;
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    for (auto name : member.getAsRange<FlatSymbolRefAttr>()) {
      auto variable = subject.symbols.lookup<VariableOp>(name.getValue());
      if (!variable)
        return success();
      most = std::max(most, countReplicas(variable));
      if (!role)
        role = variable.getRole();
      if (variable.getRole() != *role)
        return group.emitOpError("C37: sums ")
               << name << " of role " << stringifyRole(variable.getRole())
               << " with variables of role " << stringifyRole(*role);
      if (variable.getRole() != Role::Gradient || !overStages)
        continue;
      Attribute own = getOriginal(variable);
      if (original && own != original)
        return group.emitOpError("C37: sums ")
               << name << ", a gradient of " << own << ", with gradients of "
               << original;
      original = own;
    }
    auto first = subject.symbols.lookup<VariableOp>(
        cast<FlatSymbolRefAttr>(member[0]).getValue());
    if (first.getStageAttr())
      stages.push_back(subject.symbols.lookup<StageOp>(*first.getStage()));
  }
  if (!subject.isFrom(Level::Training) || *role == Role::Parameter)
    return success();
  bool once = group->hasAttr(kOnceAttr);
  if (*role == Role::Gradient && once)
    return group.emitOpError(
        "C37: sums gradients 'once', which are different on "
        "each replica");
  if (*role == Role::Scalar && !once && most > 1)
    return group.emitOpError("C37: sums what replicas have alike; it needs '")
           << kOnceAttr << "'";
  if (failed(verifyOrder(group, stages)))
    return failure();
  return *role == Role::Gradient && overStages ? verifyMakers(group)
                                               : success();
}

/// Every gradient of a parameter that several stages hold is in one group, with
/// a member for each of them.
LogicalResult SumRules::verifyCopies() {
  llvm::MapVector<Attribute, SmallVector<VariableOp>> copies;
  for (auto variable : subject.module.getOps<VariableOp>())
    if (Attribute original = variable->getAttr(kParameterAttr);
        original && variable.getRole() == Role::Parameter)
      copies[original].push_back(variable);
  llvm::MapVector<Attribute, SmallVector<VariableOp>> gradients;
  for (auto variable : subject.module.getOps<VariableOp>())
    if (variable.getRole() == Role::Gradient)
      if (Attribute original = getOriginal(variable);
          original && copies.contains(original))
        gradients[original].push_back(variable);
  for (auto &[original, list] : gradients) {
    GroupOp group = groupOf.lookup(list.front());
    for (VariableOp gradient : list) {
      GroupOp own = groupOf.lookup(gradient);
      if (own && own == group &&
          group.getMembers().size() == copies[original].size() + 1)
        continue;
      InFlightDiagnostic diagnostic =
          getReader(gradient)->emitOpError("C37: uses @");
      diagnostic << gradient.getSymName() << ", which no group sums over the "
                 << copies[original].size() + 1 << " stages that hold "
                 << original;
      diagnostic.attachNote(copies[original].front().getLoc())
          << "a copy of " << original;
      return diagnostic;
    }
  }
  return success();
}

LogicalResult SumRules::verifyReplicas() {
  if (!subject.isFrom(Level::Schedule))
    return success();
  for (auto variable : subject.module.getOps<VariableOp>()) {
    if (variable.getRole() != Role::Gradient || groupOf.contains(variable) ||
        countReplicas(variable) == 1 || !readers.contains(variable))
      continue;
    InFlightDiagnostic diagnostic =
        getReader(variable)->emitOpError("C37: uses @");
    diagnostic << variable.getSymName() << ", which no group sums over the "
               << countReplicas(variable) << " replicas of @"
               << *variable.getStage();
    diagnostic.attachNote(variable.getLoc()) << "the gradient";
    return diagnostic;
  }
  return success();
}

/// A global norm is that of all stages.
LogicalResult SumRules::verifySquares() {
  TrainingOp training = getTraining(subject.module);
  if (!training || training.getInfers())
    return success();
  ClippingAttr clipping = training.getClippingAttr();
  if (norm && !clipping)
    return norm.emitOpError("C37: makes a norm, but pipeline.training has no "
                            "clipping");
  if (!norm)
    return success();
  bool isGlobal = clipping.getScope() == ClipScope::Global;
  GroupOp group;
  for (Operation *op : squares) {
    auto variable = cast<VariableOp>(op);
    GroupOp own = groupOf.lookup(variable);
    bool isSummed = own && (!group || own == group) &&
                    own.getMembers().size() == squares.size();
    if (own)
      group = own;
    if (!isGlobal && own)
      return own.emitOpError("C37: sums @")
             << variable.getSymName() << ", but each stage is clipped by its "
             << "own norm";
    if (!isGlobal || squares.size() == 1 || isSummed)
      continue;
    InFlightDiagnostic diagnostic =
        getReader(variable)->emitOpError("C37: uses @");
    diagnostic << variable.getSymName() << ", which no group sums over the "
               << squares.size() << " stages of the norm";
    diagnostic.attachNote(variable.getLoc()) << "the squares of one stage";
    return diagnostic;
  }
  return success();
}

LogicalResult SumRules::verify() {
  if (failed(collect()))
    return failure();
  for (GroupOp group : subject.module.getOps<GroupOp>())
    if (failed(verifyGroup(group)))
      return failure();
  if (!subject.isFrom(Level::Training))
    return success();
  return success(succeeded(verifyCopies()) && succeeded(verifyReplicas()) &&
                 succeeded(verifySquares()));
}

LogicalResult penstock::verifySums(Subject &subject) {
  return SumRules(subject).verify();
}
