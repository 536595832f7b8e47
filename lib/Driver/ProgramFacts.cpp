//===- ProgramFacts.cpp - What a printed program holds --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that is printed at some level says what it was made with, so that
// it lowers from there to the same executable. A flag that contradicts it is an
// error.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "penstock/Driver/Registration.h"
#include "penstock/Methods/Method.h"
#include "penstock/Schedule/FromIR.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <charconv>

using namespace mlir;
using namespace penstock;

void Compilation::recordTraining(Level target) {
  pipeline::TrainingOp training = pipeline::getTraining(*module);
  auto precision = options.precision == "bf16" ? pipeline::Precision::BF16
                                               : pipeline::Precision::F32;
  if (options.infer) {
    if (!training)
      pipeline::addTraining(*module, pipeline::OptimizerAttr())
          .setPrecision(precision);
    return;
  }
  if (target < Level::Training)
    return;
  if (!training) {
    training =
        pipeline::addTraining(*module, options.optimizer.toAttr(&context));
    training.setMicrobatches(options.microbatches);
    if (!(options.rateSchedule == RateSchedule()))
      training.setRateAttr(options.rateSchedule.toAttr(&context));
    // What spans all stages is a barrier, which only a flush has anyway.
    if (options.clipGradNorm != 0)
      training.setClippingAttr(pipeline::ClippingAttr::get(
          &context, Builder(&context).getF64FloatAttr(options.clipGradNorm),
          options.method.isAsynchronous() ? pipeline::ClipScope::Stage
                                          : pipeline::ClipScope::Global));
    training.setBatchNorm(options.batchNorm);
    training.setPrecision(precision);
  }
  // Where averages of weights are made is up to the method.
  bool matters = options.optimizer.getAverageDecay() > 0 &&
                 options.method.getMethod().foldsWaves(options.method);
  if ((target >= Level::Schedule || matters) && !training.getMethodAttr())
    training.setMethodAttr(options.method.toAttr(&context));
}

void Compilation::recordConvolution() {
  if (options.convolution == "direct")
    (*module)->setAttr(pipeline::kDirectConvolutionAttr,
                       UnitAttr::get(&context));
}

template <typename Value>
bool Compilation::adopt(StringRef flag, Value &option, const Value &value) {
  if (options.given.count(flag.str()) && !(option == value)) {
    fail(llvm::formatv("--{0}={1}: {2} was made with --{0}={3}", flag, option,
                       options.input, value));
    return false;
  }
  option = value;
  return true;
}

/// All flags without effect are named at once.
bool Compilation::checkEffects() {
  std::vector<std::string> idle;
  for (const auto &[flag, last] : options.lastLevels)
    if (!last || level > *last)
      idle.push_back("--" + flag);
  // A schedule that a table described has no name to compare with.
  if (level >= Level::Schedule && options.given.count("schedule") &&
      llvm::none_of(module->getOps<pipeline::ScheduleOp>(), [](auto schedule) {
        return bool(schedule.getGeneratorAttr());
      }))
    idle.emplace_back("--schedule");
  if (idle.empty())
    return true;
  fail(llvm::formatv("{0} {1} no effect on {2}, which is at level {3}; give "
                     "{4} when its model is compiled",
                     llvm::join(idle, ", "), idle.size() == 1 ? "has" : "have",
                     options.input, getLevelName(level),
                     idle.size() == 1 ? "it" : "them"));
  return false;
}

/// Says the same of flags of training, if --mode=infer did not lead to it.
bool Compilation::checkInference() {
  if (options.given.count("mode") || options.ofTraining.empty())
    return true;
  fail(llvm::formatv("{0} {1} no effect on {2}, which was made with "
                     "--mode=infer",
                     llvm::join(options.ofTraining, ", "),
                     options.ofTraining.size() == 1 ? "has" : "have",
                     options.input));
  return false;
}

/// Checks that the flags agree with the devices, which are part of the program.
bool Compilation::agreesWithDevices() {
  auto targets = getTargets(&context, options);
  for (StringRef flag :
       {"threads", "march", "target", "device-targets", "gpu-arch", "precision",
        "library-workspace", "gpu-kernels"}) {
    if (!options.given.count(flag.str()))
      continue;
    for (auto device : module->getOps<pipeline::DeviceOp>()) {
      size_t number = static_cast<size_t>(device.getNumber());
      bool agrees = flag != "device-targets"
                        ? llvm::is_contained(targets, device.getTarget())
                        : number < targets.size() &&
                              targets[number] == device.getTarget();
      if (agrees)
        continue;
      std::string own;
      llvm::raw_string_ostream(own) << device.getTarget();
      fail(llvm::formatv("--{0}: {1} was made for other devices: {2}", flag,
                         options.input, own));
      return false;
    }
  }
  return true;
}

/// As --ema has it.
static std::string formatDecay(const OptimizerSpec &optimizer) {
  char text[32];
  std::to_chars_result end =
      std::to_chars(text, std::end(text), optimizer.getAverageDecay());
  return std::string(text, end.ptr);
}

bool Compilation::adoptFacts() {
  if (!checkEffects())
    return false;
  // Scratch is planned for the one or the other.
  bool isDirect = (*module)->hasAttr(pipeline::kDirectConvolutionAttr);
  if ((isDirect || level >= Level::Program) &&
      !adopt("convolution", options.convolution,
             std::string(isDirect ? "direct" : "fastest")))
    return false;
  recordConvolution();
  if (!agreesWithDevices())
    return false;
  pipeline::TrainingOp training = pipeline::getTraining(*module);
  if (!training)
    return true;
  if (options.infer && !training.getInfers()) {
    fail("--mode=infer: " + options.input + " was made with --mode=train");
    return false;
  }
  options.infer = training.getInfers();
  bool isBf16 = training.getPrecision() == pipeline::Precision::BF16;
  if (options.given.count("precision") &&
      isBf16 != (options.precision == "bf16")) {
    fail(llvm::formatv("--precision={0}: {1} was made {2}--precision=bf16",
                       options.precision, options.input,
                       isBf16 ? "with " : "without "));
    return false;
  }
  if (isBf16)
    options.precision = "bf16";
  if (options.infer)
    return checkInference();
  pipeline::ClippingAttr clipping = training.getClippingAttr();
  auto made = OptimizerSpec::fromAttr(training.getOptimizerAttr());
  std::string average = formatDecay(options.optimizer);
  std::string batchNorm = stringifyBatchNorm(options.batchNorm).str();
  if (!adopt("microbatches", options.microbatches,
             int64_t(training.getMicrobatches())) ||
      !adopt("clip-grad-norm", options.clipGradNorm,
             clipping ? clipping.getNorm().getValueAsDouble() : 0) ||
      !adopt("ema", average, formatDecay(made)) ||
      !adopt("optimizer", options.optimizer, made) ||
      !adopt("batch-norm", batchNorm,
             stringifyBatchNorm(training.getBatchNorm()).str()) ||
      !adopt("lr-schedule", options.rateSchedule,
             RateSchedule::fromAttr(training.getRateAttr())))
    return false;
  options.batchNorm = training.getBatchNorm();
  for (auto schedule : module->getOps<pipeline::ScheduleOp>())
    if (pipeline::GeneratorAttr generator = schedule.getGeneratorAttr()) {
      if (!adopt("schedule", options.schedule, generator.getText()))
        return false;
      if (auto spec = schedule::getSchedule(generator))
        options.generator = *spec;
    }
  return !training.getMethodAttr() ||
         adopt("method", options.method,
               MethodSpec::fromAttr(training.getMethodAttr()));
}
