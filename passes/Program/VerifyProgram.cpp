//===- VerifyProgram.cpp - Proves device programs -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules S8 (device functions do what an order may say) and S9 (no two buffers
// share a byte of the arena). The functions are interpreted, for segments of
// several lengths, and their transfers, slots, versions and runs followed.
//===----------------------------------------------------------------------===//

#include "passes/Program/LiveBytes.h"
#include "passes/Program/Passes.h"
#include "passes/Program/ProgramMachine.h"

#include "llvm/Support/MathExtras.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEVERIFYPROGRAM
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// The place of a ring in the arena, and the first slot that says so.
struct Place {
  SlotOp slot;
  int64_t at = 0, stride = 0, ring = 1, bytes = 0;
};

struct Interval {
  int64_t begin, end;
  Operation *op;
  /// Temporaries of different calls may share bytes, with each other and with
  /// library scratch of other calls.
  bool isScratch;
  size_t order = 0;
};

int64_t getBytes(Type type) {
  auto memref = cast<MemRefType>(type);
  Type element = memref.getElementType();
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return memref.getNumElements() * ((bits + 7) / 8);
}

struct VerifyProgramPass
    : public penstock::impl::PipelineVerifyProgramBase<VerifyProgramPass> {
  void runOnOperation() override {
    ModuleOp root = getOperation();
    SmallVector<ModuleOp> modules{root};
    llvm::append_range(modules, root.getOps<ModuleOp>());
    for (ModuleOp module : modules)
      if (failed(verifySchedules(module)) || failed(verifyArenas(module)))
        return signalPassFailure();
    markAllAnalysesPreserved();
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
      // Long enough that every ring is used twice over in the steady state:
      // those of variables turn once per update, others per microbatch.
      auto microbatches = static_cast<int64_t>(schedule.getMicrobatches());
      int64_t ring = 1;
      for (auto &[device, function] : functions)
        function.walk([&](SlotOp slot) {
          auto size = static_cast<int64_t>(slot.getRing().value_or(1));
          bool isVariable = module.lookupSymbol<VariableOp>(slot.getSymbol());
          ring = std::max(
              ring,
              isVariable ? size : llvm::divideCeilSigned(size, microbatches));
        });
      int64_t longest = 2 * ring + 2;
      // With many microbatches all rings turn over within one update, and where
      // nothing turns slower, what is left to see is one boundary.
      constexpr int64_t kMany = 1 << 10;
      int64_t shortest = 1;
      if (ring == 1 && microbatches >= kMany)
        shortest = longest = 2;
      for (int64_t first : {0, 3})
        for (int64_t updates : llvm::seq_inclusive<int64_t>(shortest, longest))
          // Evaluation begins where it likes, at any number of updates.
          if (failed(execute(module, schedule, functions, first, updates,
                             /*newest=*/first + updates % (ring + 1))))
            return failure();
    }
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
      machine.addDevice(device, std::move(*trace));
    }
    return machine.run();
  }

  //===--------------------------------------------------------------------===//
  // S9
  //===--------------------------------------------------------------------===//

  LogicalResult verifyArenas(ModuleOp module) {
    std::map<int64_t, ArenaOp> arenas;
    for (auto arena : module.getOps<ArenaOp>())
      if (!arenas.insert({arena.getDevice(), arena}).second)
        return arena.emitError("S9: is the second arena of this device");
    std::map<int64_t, SmallVector<func::FuncOp>> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr))
        functions[device.getInt()].push_back(function);
    for (auto &[device, list] : functions) {
      auto arena = arenas.find(device);
      if (arena == arenas.end())
        return list.front().emitError()
               << "S9: device " << device << " has no pipeline.arena";
      if (failed(verifyArena(arena->second, list)))
        return failure();
    }
    return success();
  }

  LogicalResult verifyArena(ArenaOp arena, ArrayRef<func::FuncOp> functions) {
    llvm::MapVector<std::pair<Attribute, int64_t>, Place> places;
    std::vector<Interval> intervals;
    auto alignment = static_cast<int64_t>(arena.getAlignment());
    for (func::FuncOp function : functions) {
      WalkResult result = function.walk([&](Operation *op) {
        auto slot = dyn_cast<SlotOp>(op);
        auto scratch = dyn_cast<ScratchOp>(op);
        if (!slot && !scratch)
          return WalkResult::advance();
        std::optional<uint64_t> at = slot ? slot.getAt() : scratch.getAt();
        if (!at) {
          op->emitError("S9: has no place in the arena");
          return WalkResult::interrupt();
        }
        int64_t stride = slot ? slot.getStride().value_or(0) : 0;
        if (int64_t(*at) % alignment || stride % alignment) {
          op->emitError("S9: is not aligned to ") << alignment << " bytes";
          return WalkResult::interrupt();
        }
        int64_t bytes = getBytes(op->getResult(0).getType());
        if (scratch && failed(checkLibrary(arena, scratch)))
          return WalkResult::interrupt();
        if (scratch)
          intervals.push_back({int64_t(*at), int64_t(*at) + bytes, op, true});
        else if (failed(addPlace(places, slot, stride, bytes)))
          return WalkResult::interrupt();
        return WalkResult::advance();
      });
      if (result.wasInterrupted())
        return failure();
    }
    for (auto &[key, place] : places)
      for (int64_t i : llvm::seq<int64_t>(0, place.ring)) {
        int64_t begin = place.at + i * place.stride;
        intervals.push_back({begin, begin + place.bytes, place.slot, false});
      }
    return checkIntervals(arena, std::move(intervals));
  }

  /// Temporaries of a kernel keep clear of what its own library calls use.
  LogicalResult checkLibrary(ArenaOp arena, ScratchOp scratch) {
    auto begin = static_cast<int64_t>(*scratch.getAt());
    int64_t end = begin + getBytes(scratch.getType());
    auto libraryAt = static_cast<int64_t>(arena.getLibraryAt());
    for (Operation *user : scratch->getUsers()) {
      auto call = dyn_cast<func::CallOp>(user);
      auto kernel =
          call ? getOperation().lookupSymbol<func::FuncOp>(call.getCallee())
               : func::FuncOp();
      if (!kernel)
        continue;
      auto [known, isNew] = libraryOf.try_emplace(kernel, 0);
      if (isNew) {
        FailureOr<KernelBytes> bytes =
            getKernelBytes(kernel, static_cast<int64_t>(arena.getThreads()),
                           static_cast<int64_t>(arena.getAlignment()));
        if (failed(bytes))
          return failure();
        known->second = bytes->libraryBytes;
      }
      if (begin < libraryAt + known->second && libraryAt < end)
        return scratch.emitError("S9: shares bytes with the library scratch of "
                                 "@")
               << call.getCallee();
    }
    return success();
  }

  LogicalResult
  addPlace(llvm::MapVector<std::pair<Attribute, int64_t>, Place> &places,
           SlotOp slot, int64_t stride, int64_t bytes) {
    auto at = static_cast<int64_t>(*slot.getAt());
    auto ring = static_cast<int64_t>(slot.getRing().value_or(1));
    auto field = static_cast<int64_t>(slot.getField().value_or(0));
    auto [it, isNew] = places.insert(
        {{slot.getSymbolAttr(), field}, Place{slot, at, stride, ring, bytes}});
    if (isNew)
      return success();
    Place &place = it->second;
    // A schedule may use fewer slots of a channel than another.
    bool sameStride = ring == 1 || place.ring == 1 || place.stride == stride;
    if (place.at != at || !sameStride || place.bytes != bytes) {
      InFlightDiagnostic diagnostic =
          slot.emitError("S9: is in another place than elsewhere");
      diagnostic.attachNote(place.slot.getLoc()) << "elsewhere";
      return diagnostic;
    }
    place.stride = std::max(place.stride, stride);
    place.ring = std::max(place.ring, ring);
    return success();
  }

  LogicalResult checkIntervals(ArenaOp arena, std::vector<Interval> intervals) {
    auto libraryAt = static_cast<int64_t>(arena.getLibraryAt());
    auto libraryBytes = static_cast<int64_t>(arena.getLibraryBytes());
    auto bytes = static_cast<int64_t>(arena.getBytes());
    if (libraryBytes)
      intervals.insert(intervals.begin(),
                       {libraryAt, libraryAt + libraryBytes, arena, true});
    for (auto [order, interval] : llvm::enumerate(intervals))
      interval.order = order;
    llvm::sort(intervals, [](const Interval &a, const Interval &b) {
      return std::tie(a.begin, a.order) < std::tie(b.begin, b.order);
    });
    const Interval *last = nullptr;
    for (const Interval &interval : intervals) {
      if (interval.end > bytes)
        return interval.op->emitError("S9: ends at byte ")
               << interval.end << " of an arena of " << bytes;
      if (last && interval.begin < last->end &&
          !(interval.isScratch && last->isScratch)) {
        InFlightDiagnostic diagnostic =
            interval.op->emitError("S9: shares bytes from ")
            << interval.begin << " on with another buffer";
        diagnostic.attachNote(last->op->getLoc()) << "the other buffer";
        return diagnostic;
      }
      if (!last || interval.end > last->end)
        last = &interval;
    }
    return success();
  }

  /// By kernel: bytes of library scratch that its calls use.
  llvm::DenseMap<Operation *, int64_t> libraryOf;
};

} // namespace
