//===- CpuTarget.cpp - CPU devices ----------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products and convolutions go to oneDNN and to algorithms of our own beside
// it, the rest becomes machine code by LLVM.
//===----------------------------------------------------------------------===//

#include "penstock/Target/Cpu/CpuTarget.h"

#include "Library.h"
#include "penstock/Target/ObjectFile.h"
#include "penstock/onednn.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace penstock;

/// Lets the library plan as it will when the program runs.
static void limitLibrary(TargetAttrInterface target) {
  static std::once_flag once;
  std::call_once(once, [&] {
    MLIRContext *context = target.getContext();
    // An unknown processor is an error where code is made for it.
    ScopedDiagnosticHandler ignore(context, [](Diagnostic &) {});
    FailureOr<TargetCpu> cpu = resolveTargetCpu(
        cast<cpu::TargetAttr>(target).getMarch(), UnknownLoc::get(context));
    if (succeeded(cpu))
      runtime::limitOneDnn(cpu->required.c_str());
  });
}

namespace {

/// The f32 values in a vector of AVX-512.
constexpr int64_t kMostLanes = 16;

class CpuTarget : public Target {
public:
  using Target::Target;

  FailureOr<LibraryPlan> plan(TargetAttrInterface target,
                              kernel::LibraryCallOpInterface call,
                              std::string &reason) const override {
    limitLibrary(target);
    if (auto gemm = dyn_cast<kernel::GemmOp>(call.getOperation()))
      return cpu::planProduct(target.getThreads(), gemm, reason);
    FailureOr<cpu::ConvolutionPlan> plan = cpu::planConvolution(
        target.getThreads(), cast<kernel::ConvOp>(call.getOperation()), reason);
    if (failed(plan))
      return failure();
    return LibraryPlan{plan->config, plan->scratchBytes};
  }

  FailureOr<std::optional<WeightPacking>>
  planPacking(TargetAttrInterface target, kernel::LibraryCallOpInterface call,
              std::string &reason) const override {
    limitLibrary(target);
    if (auto gemm = dyn_cast<kernel::GemmOp>(call.getOperation()))
      return cpu::planProductPacking(target.getThreads(), gemm);
    return cpu::planConvolutionPacking(
        target.getThreads(), cast<kernel::ConvOp>(call.getOperation()), reason);
  }

  bool takesConvolution(TargetAttrInterface target,
                        const kernel::ConvolutionShape &shape, bool isDirect,
                        std::string &reason) const override {
    limitLibrary(target);
    return succeeded(cpu::planConvolution(
        target.getContext(), target.getThreads(), shape, /*config=*/{},
        /*readsPacked=*/false, isDirect, reason));
  }

  std::optional<CallDescriptor>
  describe(kernel::LibraryCallOpInterface call) const override {
    if (auto gemm = dyn_cast<kernel::GemmOp>(call.getOperation()))
      return cpu::describeProduct(gemm);
    return cpu::describeConvolution(cast<kernel::ConvOp>(call.getOperation()));
  }

  std::optional<CallDescriptor>
  describe(kernel::PackingAttrInterface order) const override {
    if (auto panels = dyn_cast<cpu::PanelsAttr>(order))
      return cpu::describePacking(panels);
    return cpu::describePacking(cast<cpu::BlockedAttr>(order));
  }

  OpCost getConvolutionCost(TargetAttrInterface target,
                            const kernel::ConvolutionShape &shape,
                            bool isDirect) const override {
    limitLibrary(target);
    return cpu::getConvolutionCost(
        target.getThreads(), shape, isDirect,
        Target::getConvolutionCost(target, shape, isDirect));
  }

  std::optional<PackedWeights>
  getPackedWeights(TargetAttrInterface target,
                   const kernel::ConvolutionShape &shape,
                   bool isDirect) const override {
    limitLibrary(target);
    return cpu::getPackedWeights(target.getContext(), target.getThreads(),
                                 shape, isDirect);
  }
  std::optional<PackedWeights>
  getPackedWeights(TargetAttrInterface,
                   const ProductShape &shape) const override {
    return cpu::getPackedWeights(shape);
  }

  int64_t countLanes(TargetAttrInterface target) const override {
    MLIRContext *context = target.getContext();
    // An unknown processor is an error where code is made for it.
    ScopedDiagnosticHandler ignore(context, [](Diagnostic &) {});
    FailureOr<int64_t> lanes = cpu::getVectorWidth(
        cast<cpu::TargetAttr>(target), UnknownLoc::get(context));
    return succeeded(lanes) ? *lanes : kMostLanes;
  }

  /// Those of a CPU with AVX-512; shorter vectors multiply fewer numbers at a
  /// time, and move as many bytes.
  MachineRates getRates(TargetAttrInterface target) const override {
    MachineRates rates;
    rates.flopsPerSecond *=
        static_cast<double>(countLanes(target)) / kMostLanes;
    rates.cachedBytesPerSecond = 80e9;
    return rates;
  }

  FailureOr<DeviceDescription> describe(TargetAttrInterface target,
                                        Location loc) const override {
    FailureOr<TargetCpu> cpu =
        resolveTargetCpu(cast<cpu::TargetAttr>(target).getMarch(), loc);
    if (failed(cpu))
      return failure();
    return DeviceDescription{cpu::CpuDialect::getDialectNamespace().str(),
                             target.getThreads(), cpu->name, cpu->required};
  }

  std::string getHostProcessor(TargetAttrInterface target) const override {
    return cast<cpu::TargetAttr>(target).getMarch().str();
  }

  std::vector<std::string>
  getLinkLibraries(TargetAttrInterface) const override {
    return {"libpenstock_cpu.a", "-lgomp"};
  }
};

} // namespace

void penstock::registerCpuTarget(DialectRegistry &registry) {
  registry.insert<cpu::CpuDialect>();
  registry.addExtension(+[](MLIRContext *, cpu::CpuDialect *dialect) {
    dialect->addInterfaces<CpuTarget>();
  });
}

FailureOr<int64_t> cpu::getVectorWidth(TargetAttr target, Location loc) {
  // Every kernel asks.
  static std::mutex mutex;
  static llvm::StringMap<int64_t> known;
  std::lock_guard<std::mutex> lock(mutex);
  if (auto width = known.find(target.getMarch()); width != known.end())
    return width->second;
  FailureOr<TargetCpu> cpu = resolveTargetCpu(target.getMarch(), loc);
  if (failed(cpu))
    return failure();
  return known[target.getMarch()] = cpu->vectorWidth;
}
