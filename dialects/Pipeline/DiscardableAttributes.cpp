//===- DiscardableAttributes.cpp - What they may be on --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table of the attributes on ops, and the rules of those on arguments.
//===----------------------------------------------------------------------===//

#include "dialects/AttributeRules.h"
#include "dialects/Pipeline/ModelFiles.h"
#include "dialects/Pipeline/ParameterGroups.h"
#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// Seconds of forward, backward and update.
static bool isTriples(Attribute value) {
  auto seconds = dyn_cast<DenseF64ArrayAttr>(value);
  return seconds && seconds.size() % 3 == 0;
}

static bool isDevices(Operation *op, Attribute value) {
  auto devices = dyn_cast<DenseI64ArrayAttr>(value);
  return isa<ChannelOp>(op) && devices &&
         llvm::all_of(devices.asArrayRef(), [](int64_t d) { return d >= 0; });
}

static bool isAtLeast(Attribute value, int64_t least) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

/// Returns true if the attribute stands on a source of integers.
static bool isRangeOfSource(Operation *op, Attribute value) {
  auto channel = dyn_cast<ChannelOp>(op);
  return channel && channel.getSource() && channel.getTypes().size() == 1 &&
         channel.getTensorType(0).getElementType().isInteger() &&
         isa<RangeAttr>(value);
}

static bool isLags(Operation *op, Attribute value) {
  auto lags = dyn_cast<DenseI64ArrayAttr>(value);
  return isa<StageOp>(op) && lags && (lags.size() == 2 || lags.size() == 3) &&
         llvm::all_of(lags.asArrayRef(), [](int64_t lag) { return lag >= 0; });
}

/// On a channel that one of several workers has of a source or sink.
static bool isTurn(Operation *op, Attribute value) {
  auto channel = dyn_cast<ChannelOp>(op);
  auto turn = dyn_cast<DenseI64ArrayAttr>(value);
  return channel && (channel.getSource() || channel.getSink()) && turn &&
         turn.size() == 2 && turn[0] >= 0 && turn[0] < turn[1];
}

BytesAttr penstock::pipeline::getBytes(Attribute tied) {
  auto transposed = dyn_cast<TransposedAttr>(tied);
  return transposed ? transposed.getBytes() : dyn_cast<BytesAttr>(tied);
}

static bool isTied(Operation *op, Attribute value) {
  auto variable = dyn_cast<VariableOp>(op);
  auto others = dyn_cast<DictionaryAttr>(value);
  return variable && others &&
         llvm::is_contained({Role::Parameter, Role::Master, Role::Compensation},
                            variable.getRole()) &&
         llvm::all_of(others, [&](NamedAttribute other) {
           if (auto transposed = dyn_cast<TransposedAttr>(other.getValue()))
             return static_cast<int64_t>(transposed.getOrder().size()) ==
                    variable.getTensorType().getRank();
           return bool(getBytes(other.getValue()));
         });
}

/// A word that belongs to state of a parameter.
static bool isKind(Operation *op, Attribute value) {
  auto variable = dyn_cast<VariableOp>(op);
  auto kind = dyn_cast<StringAttr>(value);
  return variable && kind && variable->hasAttr(kParameterAttr) &&
         llvm::is_contained({Role::Optimizer, Role::Compensation, Role::Master},
                            variable.getRole()) &&
         !kind.empty() && llvm::all_of(kind.getValue(), [](char letter) {
           return llvm::isLower(letter) || letter == '_';
         });
}

static bool isParameter(Operation *op) {
  auto variable = dyn_cast<VariableOp>(op);
  return variable && variable.getRole() == Role::Parameter;
}

static bool isBackwardTask(Operation *op) {
  auto task = dyn_cast<TaskOp>(op);
  return task && llvm::is_contained({TaskKind::Backward, TaskKind::InputGrad,
                                     TaskKind::WeightGrad},
                                    task.getKind());
}

static const AttributeRule rules[] = {
    {kModelAttr, isOn<ModuleOp, BytesAttr>, "a byte range, on the module"},
    {kExternalDataAttr,
     [](Operation *op, Attribute value) {
       auto files = dyn_cast<ArrayAttr>(value);
       return isa<ModuleOp>(op) && files &&
              llvm::all_of(files, llvm::IsaPred<StringAttr>);
     },
     "a list of files, on the module"},
    {kDirectConvolutionAttr, isOn<ModuleOp, UnitAttr>,
     "without a value, on the module"},
    {kStageSecondsAttr,
     [](Operation *op, Attribute value) {
       return isa<ModuleOp>(op) && isTriples(value);
     },
     "three numbers of type f64 for each stage, on the module"},
    {kPlanTargetAttr, isOn<ModuleOp, TargetAttrInterface>,
     "the target of devices, on the module"},
    {kPlanRatesAttr,
     [](Operation *op, Attribute value) {
       auto rates = dyn_cast<DenseF64ArrayAttr>(value);
       return isa<ModuleOp>(op) && rates && rates.size() == 5;
     },
     "five numbers of type f64, on the module"},
    {kPlanUpdateAttr,
     [](Operation *op, Attribute value) {
       auto update = dyn_cast<DenseI64ArrayAttr>(value);
       return isa<ModuleOp>(op) && update && update.size() == 2 &&
              update[0] > 0 && update[1] >= 0;
     },
     "the microbatches of an update and its passes over a weight, of type i64, "
     "on the module"},
    {kScheduleAttr, isOn<func::FuncOp, FlatSymbolRefAttr>,
     "the name of a schedule, on the program of a device"},
    {kDeviceAttr,
     [](Operation *op, Attribute value) {
       return isa<func::FuncOp>(op) && isAtLeast(value, 0);
     },
     "the number of a device, on its program"},
    {kRateAttr, isOn<FunctionOpInterface, UnitAttr>,
     "without a value, on a function"},
    {kRateOfAttr, isOn<FunctionOpInterface, FlatSymbolRefAttr>,
     "the name of a stage, on a function"},
    {kTargetAttr, isOn<func::FuncOp, TargetAttrInterface>,
     "the target of devices, on a function that they run"},
    {kSignatureAttr,
     [](Operation *op, Attribute value) {
       auto function = dyn_cast<func::FuncOp>(op);
       auto signature = dyn_cast<SignatureAttr>(value);
       return function && signature &&
              signature.getInputs().size() == function.getNumArguments() &&
              signature.getResults().size() == function.getNumResults();
     },
     "a term for each argument and result, on a function"},
    {kUnitSecondsAttr,
     [](Operation *op, Attribute value) {
       return isa<func::FuncOp>(op) && isTriples(value);
     },
     "three numbers of type f64 for each unit, on a function"},
    {kRangeAttr, isRangeOfSource,
     "a range, on a channel with a source of integers"},
    {kParameterAttr,
     [](Operation *op, Attribute value) {
       return isa<VariableOp, ChannelOp>(op) && isa<FlatSymbolRefAttr>(value);
     },
     "the name of a parameter, on a variable or a channel"},
    {kKindAttr, isKind,
     "a word of small letters, on state of a parameter that it names"},
    {kTiedAttr, isTied,
     "byte ranges by name, on a parameter, its master or its average, "
     "transposed where they have its rank"},
    {kRateScaleAttr,
     [](Operation *op, Attribute value) {
       auto scale = dyn_cast<FloatAttr>(value);
       return (isParameter(op) || isa<FunctionOpInterface>(op)) && scale &&
              scale.getType().isF64() && scale.getValue().isFinite() &&
              !scale.getValue().isNegative();
     },
     "a number of type f64 that is at least 0, on a parameter or a function"},
    {kNoDecayAttr,
     [](Operation *op, Attribute value) {
       return isParameter(op) && isa<UnitAttr>(value);
     },
     "without a value, on a parameter"},
    {kPartsAttr,
     [](Operation *op, Attribute value) {
       auto variable = dyn_cast<VariableOp>(op);
       return variable && variable.getRole() == Role::Gradient &&
              isAtLeast(value, 1);
     },
     "a number of parts, on a gradient"},
    {kSendersAttr, isDevices, "a list of devices, on a channel"},
    {kReceiversAttr, isDevices, "a list of devices, on a channel"},
    {kOnceAttr, isOn<GroupOp, UnitAttr>, "without a value, on a group"},
    {kTurnAttr, isTurn,
     "the number of a worker and how many there are, on a channel with a "
     "source "
     "or a sink"},
    {kLagsAttr, isLags,
     "the lags of forward and backward, and of what an update blends, on a "
     "stage"},
    {kRecomputesAttr,
     [](Operation *op, Attribute value) {
       return isBackwardTask(op) && isa<UnitAttr>(value);
     },
     "without a value, on a backward task or a half of one"},
    {kCompensatesFromAttr,
     [](Operation *op, Attribute value) {
       return isa<CompensateOp>(op) && isAtLeast(value, 1);
     },
     "the number of a version, on a compensation"},
    {kSentAttr,
     [](Operation *op, Attribute value) {
       return op->getNumResults() == 1 && isa<FlatSymbolRefAttr>(value);
     },
     "the name of a parameter, on an op that copies it"},
};

LogicalResult PipelineDialect::verifyOperationAttribute(Operation *op,
                                                        NamedAttribute attr) {
  return verifyAttribute(rules, op, attr);
}

/// Result i of a function is stored into an argument of its type.
static LogicalResult verifyInto(Operation *op, unsigned argument,
                                Attribute value) {
  auto function = dyn_cast<func::FuncOp>(op);
  auto result = dyn_cast<IntegerAttr>(value);
  if (!function || !result)
    return op->emitOpError()
           << "'" << kIntoAttr << "' is the number of a function's result";
  // A bufferized function has no tensor results left.
  Type type = function.getArgumentTypes()[argument];
  if (!isa<TensorType>(type))
    return success();
  if (result.getInt() < 0 ||
      result.getInt() >= static_cast<int64_t>(function.getNumResults()))
    return op->emitOpError()
           << "'" << kIntoAttr << "' names result " << result.getInt() << " of "
           << function.getNumResults();
  if (function.getResultTypes()[result.getInt()] != type)
    return op->emitOpError()
           << "'" << kIntoAttr << "' stores "
           << function.getResultTypes()[result.getInt()] << " into " << type;
  return success();
}

LogicalResult PipelineDialect::verifyRegionArgAttribute(Operation *op,
                                                        unsigned region,
                                                        unsigned argument,
                                                        NamedAttribute attr) {
  StringRef name = attr.getName();
  if (name == kIntoAttr)
    return verifyInto(op, argument, attr.getValue());
  auto function = dyn_cast<func::FuncOp>(op);
  bool isMarked = function && isa<UnitAttr>(attr.getValue()) &&
                  isa<MemRefType>(function.getArgumentTypes()[argument]);
  if (name == kOutAttr)
    return isMarked ? success()
                    : op->emitOpError()
                          << "'" << name
                          << "' is without a value, on a buffer of a kernel";
  if (name == kScratchAttr)
    return isMarked && argument + 1 == function.getNumArguments()
               ? success()
               : op->emitOpError() << "'" << name
                                   << "' is without a value, on the last "
                                      "buffer of a kernel";
  return op->emitOpError() << "'" << name << "' is no attribute of an argument";
}
