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

/// Resolves a processor once: every kernel asks. Emits an error at `loc` and
/// returns null if `march` is unknown.
static const TargetCpu *findCpu(StringRef march, Location loc) {
  static std::mutex mutex;
  static llvm::StringMap<TargetCpu> known;
  std::lock_guard<std::mutex> lock(mutex);
  if (auto cpu = known.find(march); cpu != known.end())
    return &cpu->second;
  FailureOr<TargetCpu> cpu = resolveTargetCpu(march, loc);
  if (failed(cpu))
    return nullptr;
  return &(known[march] = std::move(*cpu));
}

/// Returns null for an unknown processor: that is an error where code is made
/// for it.
static const TargetCpu *findKnownCpu(TargetAttrInterface target) {
  MLIRContext *context = target.getContext();
  ScopedDiagnosticHandler ignore(context, [](Diagnostic &) {});
  return findCpu(cast<cpu::TargetAttr>(target).getMarch(),
                 UnknownLoc::get(context));
}

/// Lets the library plan as it will when the program runs.
static void limitLibrary(TargetAttrInterface target) {
  static std::once_flag once;
  std::call_once(once, [&] {
    if (const TargetCpu *cpu = findKnownCpu(target))
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
    const TargetCpu *cpu = findKnownCpu(target);
    return cpu::getConvolutionCost(
        target.getThreads(), shape, isDirect,
        cpu && cpu->unitWidth < cpu->vectorWidth,
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
    const TargetCpu *cpu = findKnownCpu(target);
    return cpu ? cpu->vectorWidth : kMostLanes;
  }

  /// Those of a CPU that computes a vector of AVX-512 at a time; others
  /// multiply fewer numbers at a time, and move as many bytes.
  MachineRates getRates(TargetAttrInterface target) const override {
    MachineRates rates;
    if (const TargetCpu *cpu = findKnownCpu(target))
      rates.flopsPerSecond *= static_cast<double>(cpu->unitWidth) / kMostLanes;
    rates.cachedBytesPerSecond = 80e9;
    return rates;
  }

  FailureOr<DeviceDescription> describe(TargetAttrInterface target,
                                        Location loc) const override {
    const TargetCpu *cpu =
        findCpu(cast<cpu::TargetAttr>(target).getMarch(), loc);
    if (!cpu)
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
  const TargetCpu *cpu = findCpu(target.getMarch(), loc);
  if (!cpu)
    return failure();
  return cpu->vectorWidth;
}
