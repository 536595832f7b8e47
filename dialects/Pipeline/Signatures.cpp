//===- Signatures.cpp - What functions of tasks stand for -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Signatures.h. A value is named after the function that makes it, not
// after a channel: so one name is right wherever the value is passed on, and a
// message that is put in place of another has the wrong one.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Signatures.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace penstock::pipeline;

ValueTerms::ValueTerms(ModuleOp module) : symbols(module) {
  for (auto task : module.getOps<TaskOp>())
    if (!task.isBodyless())
      for (auto put : task.getBody().getOps<PutOp>())
        puts[{put.getChannelAttr(), task.getKind() == TaskKind::Evaluate}] =
            put;
}

Value ValueTerms::getPut(Value taken, PutOp *by) {
  auto take = taken.getDefiningOp<TakeOp>();
  if (!take)
    return {};
  bool evaluates =
      take->getParentOfType<TaskOp>().getKind() == TaskKind::Evaluate;
  PutOp put = puts.lookup({take.getChannelAttr(), evaluates});
  unsigned field = cast<OpResult>(taken).getResultNumber();
  if (!put || field >= put.getValues().size())
    return {};
  if (by)
    *by = put;
  return put.getValues()[field];
}

/// Returns the text for a number that an op computes from others.
static Attribute describeNumber(Operation *op, ArrayRef<Attribute> operands) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return constant.getValue();
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op->getName();
  if (Attribute properties = op->getPropertiesAsAttribute())
    stream << ' ' << properties;
  stream << '(';
  llvm::interleaveComma(operands, stream, [&](Attribute operand) {
    if (auto name = dyn_cast<StringAttr>(operand))
      stream << name.getValue();
    else
      stream << operand;
  });
  stream << ')';
  return StringAttr::get(op->getContext(), text);
}

Attribute ValueTerms::getTerm(Value value) {
  MLIRContext *context = value.getContext();
  // Tasks may pass a value on in a circle, which other rules reject.
  for (size_t steps = 0; steps <= puts.size(); ++steps) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return StringAttr::get(context, kCounterName);
    if (auto read = dyn_cast<ReadOp>(op))
      return read.getVariableAttr();
    if (auto number = dyn_cast<HyperparameterOp>(op))
      return number.getNameAttr();
    if (auto take = dyn_cast<TakeOp>(op)) {
      if (Value put = getPut(value)) {
        value = put;
        continue;
      }
      unsigned field = cast<OpResult>(value).getResultNumber();
      if (field)
        return FieldAttr::get(context, take.getChannelAttr(), field);
      return take.getChannelAttr();
    }
    if (auto call = dyn_cast<func::CallOp>(op)) {
      unsigned index = cast<OpResult>(value).getResultNumber();
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (SignatureAttr signature =
              callee ? getSignature(callee) : SignatureAttr();
          signature && index < signature.getResults().size())
        if (auto name = dyn_cast<StringAttr>(signature.getResults()[index]))
          return name;
      return FieldAttr::get(context, call.getCalleeAttr(), index);
    }
    if (isa<TensorType>(value.getType()))
      return UnitAttr::get(context);
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands())
      operands.push_back(getTerm(operand));
    return describeNumber(op, operands);
  }
  return UnitAttr::get(context);
}

Operation *ValueTerms::getOrigin(Value value) {
  PutOp put;
  for (size_t steps = 0; steps <= puts.size(); ++steps) {
    Value before = getPut(value, &put);
    if (!before)
      break;
    value = before;
  }
  return put ? put.getOperation() : value.getDefiningOp();
}

SmallVector<FlatSymbolRefAttr> ValueTerms::getTargets(Value result) {
  SmallVector<FlatSymbolRefAttr> targets;
  for (Operation *user : result.getUsers()) {
    if (auto write = dyn_cast<WriteOp>(user))
      targets.push_back(write.getVariableAttr());
    else if (auto put = dyn_cast<PutOp>(user))
      if (auto channel = symbols.lookup<ChannelOp>(put.getChannel());
          channel && (channel.getSink() || (channel->hasAttr(kParameterAttr) &&
                                            !channel.getOwnQueue())))
        targets.push_back(put.getChannelAttr());
  }
  llvm::sort(targets, [](FlatSymbolRefAttr a, FlatSymbolRefAttr b) {
    return a.getValue() < b.getValue();
  });
  targets.erase(llvm::unique(targets), targets.end());
  return targets;
}

SignatureAttr penstock::pipeline::getSignature(func::FuncOp function) {
  return function->getAttrOfType<SignatureAttr>(kSignatureAttr);
}

void penstock::pipeline::setSignature(func::FuncOp function,
                                      ArrayRef<Attribute> inputs,
                                      ArrayRef<Attribute> results) {
  MLIRContext *context = function.getContext();
  function->setAttr(kSignatureAttr,
                    SignatureAttr::get(context, ArrayAttr::get(context, inputs),
                                       ArrayAttr::get(context, results)));
}

bool penstock::pipeline::standsForRoles(SignatureAttr signature) {
  return llvm::any_of(signature.getInputs(), llvm::IsaPred<RoleAttr>) ||
         llvm::any_of(signature.getResults(),
                      llvm::IsaPred<RoleAttr, StringAttr>);
}

void penstock::pipeline::signFunctions(ModuleOp module) {
  ValueTerms terms(module);
  SymbolTable &symbols = terms.getSymbols();
  llvm::MapVector<func::FuncOp, SmallVector<func::CallOp, 1>> calls;
  for (auto task : module.getOps<TaskOp>())
    if (!task.isBodyless())
      for (auto call : task.getBody().getOps<func::CallOp>())
        if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee()))
          calls[callee].push_back(call);
  for (auto &[function, list] : calls) {
    func::FuncOp callee = function;
    SignatureAttr known = getSignature(callee);
    if (known && standsForRoles(known))
      continue;
    MLIRContext *context = module.getContext();
    auto combine = [&](ArrayRef<Attribute> several) -> Attribute {
      if (several.empty())
        return UnitAttr::get(context);
      return several.size() == 1 ? several.front()
                                 : ArrayAttr::get(context, several);
    };
    SmallVector<Attribute> inputs, results;
    for (unsigned i : llvm::seq(callee.getNumArguments())) {
      SmallVector<Attribute> values;
      for (func::CallOp call : list)
        values.push_back(terms.getTerm(call.getOperand(i)));
      inputs.push_back(combine(values));
    }
    for (unsigned i : llvm::seq(callee.getNumResults())) {
      // Calls that take nothing differ by nothing: a term for each counts them.
      SmallVector<Attribute> each;
      llvm::SetVector<Attribute> targets;
      for (func::CallOp call : list) {
        SmallVector<FlatSymbolRefAttr> own =
            terms.getTargets(call.getResult(i));
        if (own.empty())
          each.push_back(UnitAttr::get(context));
        llvm::append_range(each, own);
        targets.insert_range(own);
      }
      results.push_back(
          combine(inputs.empty() ? ArrayRef(each) : targets.getArrayRef()));
    }
    setSignature(callee, inputs, results);
  }
}

bool penstock::pipeline::isCalledOnce(func::FuncOp function) {
  auto uses = function.getSymbolUses(function->getParentOp());
  return uses && llvm::count_if(*uses, [](const SymbolTable::SymbolUse &use) {
                   return isa<func::CallOp>(use.getUser());
                 }) == 1;
}

void penstock::pipeline::insertTerm(func::FuncOp function, unsigned argument) {
  SignatureAttr signature = getSignature(function);
  if (!signature)
    return;
  SmallVector<Attribute> inputs(signature.getInputs().getValue());
  inputs.insert(inputs.begin() + argument,
                UnitAttr::get(function.getContext()));
  setSignature(function, inputs, signature.getResults().getValue());
}

std::string penstock::pipeline::getRateName(double steps) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "rate over " << llvm::format("%g", steps) << " steps";
  return text;
}
