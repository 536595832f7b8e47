//===- VerifyRates.cpp - Updates take the rate that training has ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule C47: from the hyperparameter to an update, the learning rate goes
// through the functions of training, of the stage and of the parameter. All of
// them take and make a rate, so that their signatures cannot tell them apart.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Pipeline/ParameterGroups.h"
#include "dialects/Pipeline/Signatures.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// Learning rates of one module.
class RateRules {
public:
  explicit RateRules(Subject &subject);
  LogicalResult verifyLog();
  LogicalResult verify(TaskOp task);

private:
  /// The functions that a number went through, the last one first.
  struct Course {
    SmallVector<func::FuncOp> functions;
    /// Null if it is made of anything else.
    HyperparameterOp base;
  };

  Course follow(Value number);
  VariableOp getParameter(func::CallOp update);
  LogicalResult verifyUpdate(func::CallOp call, StageOp stage);
  LogicalResult verifyPrediction(PredictOp predict);

  Subject &subject;
  /// The functions that make the rate of training, those of stages, and those
  /// of parameters, by their factor.
  func::FuncOp schedule;
  llvm::DenseMap<Attribute, func::FuncOp> ofStages, ofScales;
};

} // namespace

static bool isStep(func::FuncOp function) {
  return function->hasAttr(kRateAttr) || function->hasAttr(kRateOfAttr) ||
         function->hasAttr(kRateScaleAttr);
}

static std::string print(ArrayRef<func::FuncOp> functions) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(llvm::reverse(functions), stream, [&](auto function) {
    stream << '@' << function.getSymName();
  });
  return text.empty() ? "no function" : text;
}

RateRules::RateRules(Subject &subject) : subject(subject) {
  for (auto function : subject.module.getOps<func::FuncOp>()) {
    if (function->hasAttr(kRateAttr))
      schedule = function;
    if (Attribute stage = function->getAttr(kRateOfAttr))
      ofStages[stage] = function;
    if (Attribute scale = function->getAttr(kRateScaleAttr))
      ofScales[scale] = function;
  }
}

/// The log has the rates that the function makes.
LogicalResult RateRules::verifyLog() {
  TrainingOp training = getTraining(subject.module);
  if (!subject.isFrom(Level::Schedule) || !training ||
      subject.module->getParentOp() ||
      (training.getRateAttr() != nullptr) == (schedule != nullptr))
    return success();
  if (schedule)
    return schedule.emitOpError("C47: makes the learning rate, but "
                                "pipeline.training has no rate");
  return training.emitOpError("C47: has a rate, but no function has "
                              "pipeline.rate, and makes it");
}

RateRules::Course RateRules::follow(Value number) {
  Course course;
  for (auto call = number.getDefiningOp<func::CallOp>(); call;
       call = number.getDefiningOp<func::CallOp>()) {
    auto callee = subject.symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || !call.getNumOperands())
      return course;
    course.functions.push_back(callee);
    number = call.getOperand(0);
  }
  course.base = number.getDefiningOp<HyperparameterOp>();
  return course;
}

/// Returns what an update is of, by what it reads of a parameter, or null.
VariableOp RateRules::getParameter(func::CallOp update) {
  for (Value operand : update.getOperands())
    if (auto read = operand.getDefiningOp<ReadOp>())
      if (auto variable =
              subject.symbols.lookup<VariableOp>(read.getVariable()))
        if (auto name =
                variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr))
          return subject.symbols.lookup<VariableOp>(name.getValue());
  return {};
}

LogicalResult RateRules::verifyUpdate(func::CallOp call, StageOp stage) {
  VariableOp parameter = getParameter(call);
  if (!parameter)
    return success();
  SmallVector<func::FuncOp> due;
  Attribute scale = parameter->getAttr(kRateScaleAttr);
  if (scale && cast<FloatAttr>(scale).getValueAsDouble() != 1) {
    due.push_back(ofScales.lookup(scale));
    if (!due.back())
      return call.emitOpError("C47: is of ")
             << FlatSymbolRefAttr::get(parameter)
             << ", but no function scales the learning rate by " << scale;
  }
  if (auto ofStage = ofStages.lookup(FlatSymbolRefAttr::get(stage)))
    due.push_back(ofStage);
  if (schedule)
    due.push_back(schedule);
  for (Value operand : call.getOperands()) {
    if (!operand.getType().isF32())
      continue;
    Course course = follow(operand);
    if (!course.base)
      continue;
    // The last function may make numbers of an optimizer from the rate.
    ArrayRef<func::FuncOp> taken(course.functions);
    if (!taken.empty() && !isStep(taken.front()))
      taken = taken.drop_front();
    if (taken != ArrayRef(due))
      return call.emitOpError("C47: takes the learning rate of ")
             << FlatSymbolRefAttr::get(parameter) << " through " << print(taken)
             << " instead of " << print(due);
  }
  return success();
}

/// Predictions take the rates to come: a function of their own makes those.
LogicalResult RateRules::verifyPrediction(PredictOp predict) {
  Course course = follow(predict.getRate());
  bool isOwn = course.functions.size() == 1 && !isStep(course.functions[0]);
  if (!course.base || isOwn || (course.functions.empty() && !schedule))
    return success();
  return predict.emitOpError("C47: takes the learning rate through ")
         << print(course.functions)
         << " instead of one function of the rates to come";
}

LogicalResult RateRules::verify(TaskOp task) {
  auto stage = subject.symbols.lookup<StageOp>(task.getStage());
  if (!stage)
    return success();
  Attribute weight = RoleAttr::get(task.getContext(), Role::Parameter);
  for (Operation &op : task.getBody().front()) {
    if (auto predict = dyn_cast<PredictOp>(op);
        predict && failed(verifyPrediction(predict)))
      return failure();
    auto call = dyn_cast<func::CallOp>(op);
    auto callee = call ? subject.symbols.lookup<func::FuncOp>(call.getCallee())
                       : func::FuncOp();
    SignatureAttr signature = callee ? getSignature(callee) : SignatureAttr();
    if (signature &&
        llvm::is_contained(signature.getResults().getValue(), weight) &&
        failed(verifyUpdate(call, stage)))
      return failure();
  }
  return success();
}

LogicalResult penstock::verifyRates(Subject &subject) {
  RateRules rules(subject);
  if (failed(rules.verifyLog()))
    return failure();
  if (subject.isFrom(Level::Program))
    return success();
  for (TaskOp task : subject.module.getOps<TaskOp>())
    if (!task.isBodyless() && task.getKind() == TaskKind::Update &&
        failed(rules.verify(task)))
      return failure();
  return success();
}
