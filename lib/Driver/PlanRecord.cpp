//===- PlanRecord.cpp - The choices that a printed program carries ------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program printed at some level carries the flags that it was made with, so
// that it lowers from there to the same executable, and a flag that contradicts
// them is an error.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "penstock/Target/Cpu/ConvolutionLibrary.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace penstock;

/// In the plan of what infers only.
static constexpr llvm::StringLiteral kModeName = "mode";

void Compilation::recordPlan() {
  Builder builder(&context);
  NamedAttrList plan;
  if (auto before =
          (*module)->getAttrOfType<DictionaryAttr>(pipeline::kPlanAttr))
    plan.append(before.begin(), before.end());
  if (options.infer)
    plan.set(kModeName, builder.getStringAttr("infer"));
  else if (level == Level::Training) {
    plan.set("microbatches", builder.getI64IntegerAttr(options.microbatches));
    plan.set("optimizer", builder.getStringAttr(options.optimizer));
    if (options.batchNorm != "train")
      plan.set("batch-norm", builder.getStringAttr(options.batchNorm));
    plan.set("lr-schedule", builder.getStringAttr(options.rateSchedule));
    plan.set("clip-grad-norm", builder.getF64FloatAttr(options.clipGradNorm));
  } else if (level == Level::Schedule) {
    plan.set("schedule", builder.getStringAttr(options.schedule));
    plan.set("method", builder.getStringAttr(options.method));
  }
  if (!plan.empty())
    (*module)->setAttr(pipeline::kPlanAttr, plan.getDictionary(&context));
}

void Compilation::recordConvolution() {
  if (options.convolution == "direct")
    (*module)->setAttr(pipeline::kDirectConvolutionAttr,
                       UnitAttr::get(&context));
}

bool Compilation::adoptPlan() {
  auto adopt = [&](StringRef flag, auto &option, const auto &value) {
    if (options.given.count(flag.str()) && option != value) {
      fail(llvm::formatv("--{0}={1}: {2} was made with --{0}={3}", flag, option,
                         options.input, value));
      return false;
    }
    option = value;
    return true;
  };
  // Scratch is planned for the one or the other.
  bool isDirect = (*module)->hasAttr(pipeline::kDirectConvolutionAttr);
  if ((isDirect || level >= Level::Program) &&
      !adopt("convolution", options.convolution,
             std::string(isDirect ? "direct" : "fastest")))
    return false;
  recordConvolution();
  auto plan = (*module)->getAttrOfType<DictionaryAttr>(pipeline::kPlanAttr);
  if (!plan)
    return true;
  bool infers = plan.contains(kModeName);
  if (options.infer && !infers) {
    fail("--mode=infer: " + options.input + " was made with --mode=train");
    return false;
  }
  options.infer = infers;
  if (auto value = plan.getAs<IntegerAttr>("microbatches"))
    if (!adopt("microbatches", options.microbatches, value.getInt()))
      return false;
  if (auto value = plan.getAs<FloatAttr>("clip-grad-norm"))
    if (!adopt("clip-grad-norm", options.clipGradNorm,
               value.getValueAsDouble()))
      return false;
  for (auto [flag, option] :
       {std::pair<StringRef, std::string *>("optimizer", &options.optimizer),
        {"batch-norm", &options.batchNorm},
        {"lr-schedule", &options.rateSchedule},
        {"schedule", &options.schedule},
        {"method", &options.method}})
    if (auto value = plan.getAs<StringAttr>(flag))
      if (!adopt(flag, *option, value.str()))
        return false;
  return true;
}
