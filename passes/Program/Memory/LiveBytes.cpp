//===- LiveBytes.cpp - How small an arena could be ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See LiveBytes.h. Follows the trace of every device function over a segment
// that is long enough for its steady state. Buffers count with the alignment
// that they have in the arena.
//===----------------------------------------------------------------------===//

#include "passes/Program/Memory/LiveBytes.h"

#include "passes/Program/Memory/KernelMemory.h"
#include "passes/Program/Memory/Lifetimes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static int64_t getBytes(Type type, int64_t alignment) {
  return static_cast<int64_t>(llvm::alignTo(getBufferBytes(type), alignment));
}

namespace {
class LiveBytes {
public:
  explicit LiveBytes(ModuleOp module) : module(module), symbols(module) {}
  FailureOr<std::map<int64_t, int64_t>> run();

private:
  FailureOr<int64_t> follow(func::FuncOp function, ScheduleOp schedule,
                            ArenaOp arena);
  FailureOr<int64_t> getKernelPeak(StringAttr name, ArenaOp arena);

  ModuleOp module;
  SymbolTable symbols;
  SymbolTableCollection tables;
  llvm::DenseMap<Attribute, int64_t> kernels;
};
} // namespace

FailureOr<int64_t> LiveBytes::getKernelPeak(StringAttr name, ArenaOp arena) {
  auto [it, isNew] = kernels.try_emplace(name, 0);
  if (!isNew)
    return it->second;
  auto kernel = symbols.lookup<func::FuncOp>(name);
  if (!kernel)
    return module.emitError() << "there is no function @" << name.getValue();
  FailureOr<KernelMemory> memory = KernelMemory::get(kernel);
  if (failed(memory))
    return failure();
  return kernels[name] =
             memory->getPeak(static_cast<int64_t>(arena.getAlignment()));
}

/// The most bytes of messages and temporaries of one device and schedule.
FailureOr<int64_t> LiveBytes::follow(func::FuncOp function, ScheduleOp schedule,
                                     ArenaOp arena) {
  FailureOr<DeviceLives> lives = getLifetimes(function, schedule, tables);
  if (failed(lives))
    return failure();
  llvm::DenseMap<std::pair<Attribute, int64_t>, int64_t> bytesOf;
  function.walk([&](SlotOp slot) {
    bytesOf[{slot.getSymbolAttr().getAttr(),
             static_cast<int64_t>(slot.getField().value_or(0))}] =
        getBytes(slot.getType(), static_cast<int64_t>(arena.getAlignment()));
  });
  std::vector<int64_t> begins(lives->trace.size() + 1);
  for (const MessageLife &life : lives->messages) {
    int64_t bytes = bytesOf.lookup({life.cell.symbol, life.cell.field});
    begins[life.first] += bytes;
    begins[life.last + 1] -= bytes;
  }
  int64_t live = 0, peak = 0;
  for (auto [index, event] : llvm::enumerate(lives->trace)) {
    live += begins[index];
    int64_t now = live;
    if (event.kind == TraceEvent::Call) {
      FailureOr<int64_t> kernel = getKernelPeak(event.symbol, arena);
      if (failed(kernel))
        return failure();
      now += *kernel;
    }
    peak = std::max(peak, now);
  }
  return peak;
}

FailureOr<std::map<int64_t, int64_t>> LiveBytes::run() {
  std::map<int64_t, ArenaOp> arenas;
  for (auto arena : module.getOps<ArenaOp>())
    arenas[static_cast<int64_t>(arena.getDevice())] = arena;
  std::map<int64_t, int64_t> peaks;
  std::map<int64_t, std::map<StringRef, int64_t>> variables;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
    auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
    auto schedule =
        name ? symbols.lookup<ScheduleOp>(name.getValue()) : ScheduleOp();
    if (!device || !schedule || !arenas.count(device.getInt()))
      continue;
    ArenaOp arena = arenas[device.getInt()];
    FailureOr<int64_t> peak = follow(function, schedule, arena);
    if (failed(peak))
      return failure();
    int64_t &most = peaks[device.getInt()];
    most = std::max(most, *peak);
    function.walk([&](SlotOp slot) {
      if (!symbols.lookup<VariableOp>(slot.getSymbol()))
        return;
      int64_t &bytes = variables[device.getInt()][slot.getSymbol()];
      bytes =
          std::max(bytes, getBytes(slot.getType(),
                                   static_cast<int64_t>(arena.getAlignment())) *
                              static_cast<int64_t>(slot.getRing().value_or(1)));
    });
  }
  for (auto &[device, peak] : peaks)
    for (auto &[name, bytes] : variables[device])
      peak += bytes;
  return peaks;
}

FailureOr<std::map<int64_t, int64_t>>
penstock::getPeakLiveBytes(ModuleOp module) {
  return LiveBytes(module).run();
}
