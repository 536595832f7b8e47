//===- VerifyProgram.cpp - Proves device programs -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules S8 (device functions do what an order may say) and S9 (buffers that are
// in use at the same time share no byte of the arena). The functions are
// interpreted, for segments of several lengths, and their transfers, slots,
// versions and runs followed.
//===----------------------------------------------------------------------===//

#include "passes/Program/Passes.h"
#include "passes/Program/Proof/ArenaMap.h"
#include "passes/Program/Proof/ProgramMachine.h"

#include "llvm/Support/MathExtras.h"

#include <map>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEVERIFYPROGRAM
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

struct VerifyProgramPass
    : public penstock::impl::PipelineVerifyProgramBase<VerifyProgramPass> {
  void runOnOperation() override {
    ModuleOp root = getOperation();
    SmallVector<ModuleOp> modules{root};
    llvm::append_range(modules, root.getOps<ModuleOp>());
    for (ModuleOp module : modules)
      if (failed(verifyModule(module)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult verifyModule(ModuleOp module) {
    // S8 goes by addresses where it can. What is wrong with them is said after
    // it, since it shows mistakes where they are made.
    bool isMapped;
    {
      ScopedDiagnosticHandler silence(&getContext(),
                                      [](Diagnostic &) { return success(); });
      isMapped = succeeded(mapArenas(module));
    }
    if (!isMapped)
      maps.clear();
    if (failed(verifySchedules(module)) ||
        (!isMapped && failed(mapArenas(module))))
      return failure();
    for (auto &[device, map] : maps)
      if (failed(map.verify()))
        return failure();
    return success();
  }

  //===--------------------------------------------------------------------===//
  // S8
  //===--------------------------------------------------------------------===//

  LogicalResult verifySchedules(ModuleOp module) {
    for (auto schedule : module.getOps<ScheduleOp>()) {
      std::map<int64_t, func::FuncOp> functions;
      for (auto function : module.getOps<func::FuncOp>()) {
        auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
        auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
        if (!name || !device || name.getValue() != schedule.getSymName())
          continue;
        if (!functions.insert({device.getInt(), function}).second)
          return function.emitError()
                 << "S8: is the second function of device " << device.getInt()
                 << " for " << schedule.getSymNameAttr();
      }
      if (functions.empty())
        continue;
      // Long enough that every ring is used twice over, and once in the steady
      // state: those of variables turn once per update, others per microbatch.
      auto microbatches = static_cast<int64_t>(schedule.getMicrobatches());
      int64_t ring = 1, filling = 1;
      for (auto &[device, function] : functions) {
        FailureOr<int64_t> updates = getUpdatesUntilSteady(
            function, microbatches * static_cast<int64_t>(schedule.getWave()));
        if (failed(updates))
          return failure();
        filling = std::max(filling, *updates);
        function.walk([&](SlotOp slot) {
          auto size = static_cast<int64_t>(slot.getRing().value_or(1));
          bool isVariable = module.lookupSymbol<VariableOp>(slot.getSymbol());
          ring = std::max(
              ring,
              isVariable ? size : llvm::divideCeilSigned(size, microbatches));
        });
      }
      int64_t longest = std::max(ring, filling) + ring + 2;
      // With many microbatches all rings turn over within one update, and where
      // nothing turns slower, what is left to see are a segment of one update
      // and one boundary.
      if (ring == 1 && filling == 1 && hasManyMicrobatches(microbatches))
        longest = 2;
      for (auto &[device, function] : functions)
        if (failed(verifyBound(function, longest)))
          return failure();
      for (int64_t first : {0, 3})
        for (int64_t updates : llvm::seq_inclusive<int64_t>(1, longest))
          // Evaluation begins where it likes, at any number of updates.
          if (failed(execute(module, schedule, functions, first, updates,
                             /*newest=*/first + updates % (ring + 1))))
            return failure();
    }
    return success();
  }

  /// Checks that a segment which is shortened while it runs does what a segment
  /// of that length does.
  LogicalResult verifyBound(func::FuncOp function, int64_t longest) {
    bool asks = false;
    function.walk([&](BoundOp) { asks = true; });
    if (!asks)
      return success();
    for (int64_t length : {int64_t(1), longest - 1}) {
      // It learns of it in the last update, or where it begins the next one.
      for (int64_t reached : {length, length + 1})
        if (failed(verifyShortening(function, longest, {length, reached})))
          return failure();
    }
    return success();
  }

  LogicalResult verifyShortening(func::FuncOp function, int64_t longest,
                                 Shortening shortening) {
    auto trace = traceDevice(function, 0, longest, 0, shortening);
    auto expected = traceDevice(function, 0, shortening.updates, 0);
    if (failed(trace) || failed(expected))
      return failure();
    auto isAlike = [](const TraceEvent &a, const TraceEvent &b) {
      return a.op == b.op && a.number == b.number;
    };
    auto [event, other] =
        std::mismatch(trace->begin(), trace->end(), expected->begin(),
                      expected->end(), isAlike);
    if (event != trace->end())
      return event->op->emitError()
             << "S8: runs for number " << event->number
             << " in a segment that is shortened to " << shortening.updates
             << " updates, but not in one that has " << shortening.updates;
    if (other != expected->end())
      return other->op->emitError()
             << "S8: does not run for number " << other->number
             << " in a segment that is shortened to " << shortening.updates
             << " updates, but does in one that has " << shortening.updates;
    return success();
  }

  LogicalResult execute(ModuleOp module, ScheduleOp schedule,
                        const std::map<int64_t, func::FuncOp> &functions,
                        int64_t first, int64_t updates, int64_t newest) {
    ProgramMachine machine(module, schedule, first, updates, newest);
    for (auto &[device, function] : functions) {
      auto trace = traceDevice(function, first, updates, newest);
      if (failed(trace))
        return failure();
      auto map = maps.find(device);
      machine.addDevice(device, std::move(*trace),
                        map == maps.end() ? nullptr : &map->second);
    }
    return machine.run();
  }

  //===--------------------------------------------------------------------===//
  // S9
  //===--------------------------------------------------------------------===//

  /// Where everything is.
  LogicalResult mapArenas(ModuleOp module) {
    maps.clear();
    std::map<int64_t, ArenaOp> arenas;
    for (auto arena : module.getOps<ArenaOp>())
      if (!arenas.insert({arena.getDevice(), arena}).second)
        return arena.emitError("S9: is the second arena of this device");
    for (auto function : module.getOps<func::FuncOp>()) {
      auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
      if (!device)
        continue;
      auto arena = arenas.find(device.getInt());
      if (arena == arenas.end())
        return function.emitError()
               << "S9: device " << device.getInt() << " has no pipeline.arena";
      auto [map, isNew] = maps.try_emplace(device.getInt(), getOperation(),
                                           module, arena->second);
      if (failed(map->second.add(function)))
        return failure();
    }
    for (auto &[device, map] : maps)
      map.findShared();
    return success();
  }

  std::map<int64_t, ArenaMap> maps;
};

} // namespace
