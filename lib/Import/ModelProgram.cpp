//===- ModelProgram.cpp - The program around the graph of a model ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model is a program of one stage with one forward task.
//===----------------------------------------------------------------------===//

#include "Importer.h"

#include "dialects/Pipeline/ModelFiles.h"
#include "dialects/Pipeline/ParameterGroups.h"

#include "dialects/Onnx/DiscardableAttributes.h"

#include "llvm/Support/Path.h"

using namespace llvm;
using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

StringAttr Importer::makeSymbol(StringRef wanted) {
  std::string name = wanted.str();
  for (unsigned copy = 1; !symbols.insert(name).second; ++copy)
    name = (wanted + "." + Twine(copy)).str();
  return builder.getStringAttr(name);
}

/// An input of the name `labels` is given by --labels as well.
static pipeline::SourceAttr getSource(Builder &builder, StringRef input) {
  MLIRContext *context = builder.getContext();
  if (input == pipeline::stringifySourceKind(pipeline::SourceKind::Labels))
    return pipeline::SourceAttr::get(context, pipeline::SourceKind::Labels, {});
  return pipeline::SourceAttr::get(context, pipeline::SourceKind::Input,
                                   builder.getStringAttr(input));
}

LogicalResult Importer::buildProgram(ModuleOp module) {
  // Variables come first: their symbols are the names of the initializers.
  for (const Weight &weight : weights)
    symbols.insert(weight.tensor->name);
  StringRef graphName = file->getModel().graph().name();
  StringRef stem = graphName.empty() ? sys::path::stem(path) : graphName;
  std::string base = stem.empty() ? "model" : stem.str();
  StringAttr stage = makeSymbol(base);
  auto stageRef = FlatSymbolRefAttr::get(stage);
  function.setSymNameAttr(makeSymbol(base + ".forward"));
  StringAttr task = makeSymbol(base + ".F");

  builder.setInsertionPointToStart(module.getBody());
  pipeline::StageOp::create(builder, loc, stage, DenseI64ArrayAttr());
  SmallVector<FlatSymbolRefAttr> channels;
  Block &block = function.getBody().front();
  for (auto [index, input] : enumerate(inputs)) {
    StringAttr symbol = makeSymbol(input->name());
    channels.push_back(FlatSymbolRefAttr::get(symbol));
    pipeline::ChannelOp::create(
        builder, loc, symbol,
        builder.getTypeArrayAttr(block.getArgument(index).getType()),
        getSource(builder, input->name()), pipeline::SinkAttr(), IntegerAttr(),
        IntegerAttr());
  }
  for (const Weight &weight : weights) {
    auto variable = pipeline::VariableOp::create(
        builder, loc, builder.getStringAttr(weight.tensor->name),
        TypeAttr::get(weight.type),
        pipeline::RoleAttr::get(builder.getContext(), weight.role), stageRef,
        pipeline::BytesAttr::get(builder.getContext(), weight.range.file,
                                 weight.range.offset,
                                 weight.range.bytes.size()),
        weight.frozen ? builder.getUnitAttr() : UnitAttr());
    if (weight.noDecay)
      variable->setAttr(pipeline::kNoDecayAttr, builder.getUnitAttr());
    if (weight.rateScale)
      variable->setAttr(pipeline::kRateScaleAttr,
                        builder.getF64FloatAttr(*weight.rateScale));
    NamedAttrList tied;
    for (const auto &[name, range, order] : weight.tied) {
      auto bytes = pipeline::BytesAttr::get(builder.getContext(), range.file,
                                            range.offset, range.bytes.size());
      tied.set(name, order.empty() ? Attribute(bytes)
                                   : pipeline::TransposedAttr::get(
                                         builder.getContext(), bytes, order));
    }
    if (!tied.empty())
      variable->setAttr(pipeline::kTiedAttr,
                        tied.getDictionary(builder.getContext()));
  }

  auto taskOp = pipeline::TaskOp::create(
      builder, loc, task,
      pipeline::TaskKindAttr::get(builder.getContext(),
                                  pipeline::TaskKind::Forward),
      stageRef, ArrayAttr(), ArrayAttr());
  builder.setInsertionPointToStart(taskOp.addBody());
  SmallVector<Value> operands;
  for (auto [index, channel] : enumerate(channels))
    operands.push_back(
        pipeline::TakeOp::create(builder, loc,
                                 TypeRange(block.getArgument(index).getType()),
                                 channel)
            .getResult(0));
  for (const Weight &weight : weights)
    operands.push_back(pipeline::ReadOp::create(
        builder, loc, weight.type,
        FlatSymbolRefAttr::get(builder.getContext(), weight.tensor->name),
        IntegerAttr()));
  // Results are put once their types are known.
  func::CallOp::create(builder, loc, function, operands);

  module->setAttr(pipeline::kModelAttr,
                  pipeline::BytesAttr::get(builder.getContext(),
                                           file->getPath(), 0,
                                           file->getSize()));
  SmallVector<StringRef> external(file->getExternalFiles());
  if (!external.empty())
    module->setAttr(pipeline::kExternalDataAttr,
                    builder.getStrArrayAttr(external));
  if (!unusedInputs.empty())
    module->setAttr(kUnusedInputsAttr, builder.getStrArrayAttr(unusedInputs));
  if (options.onlyLossOutput && !unreached.empty())
    module->setAttr(kUnreachedInitializersAttr,
                    builder.getStrArrayAttr(unreached));
  if (!constants.empty())
    module->setAttr(kConstantInitializersAttr,
                    builder.getArrayAttr(SmallVector<Attribute>(
                        llvm::make_second_range(constants))));
  return success();
}
