//===- VerifyProgram.cpp - Proves device programs -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules S8 (device functions do what an order may say), S9 (buffers that are in
// use at the same time share no byte of the arena), S11 (calls are those that
// tasks state) and S12 (sums come before their readers). The functions are
// interpreted, for segments of several lengths, and their transfers, slots,
// versions and runs followed.
//===----------------------------------------------------------------------===//

#include "passes/Program/Passes.h"
#include "passes/Program/Proof/ArenaMap.h"
#include "passes/Program/Proof/ProgramMachine.h"
#include "passes/Program/Proof/Repetition.h"

#include "llvm/Support/MathExtras.h"

#include <map>
#include <set>

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
    tables = std::make_shared<SymbolTableCollection>();
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

  using Codes = std::map<int64_t, DeviceCode>;
  /// Updates of the longest segment in which an operation runs.
  using Lengths = llvm::DenseMap<Operation *, int64_t>;

  /// Where an end of a channel has replicas, the runtime knows both ends by
  /// their lists: whoever sends or receives stands in one. Tasks run on the
  /// devices of their stage.
  LogicalResult verifyPlaces(func::FuncOp function, int64_t device) {
    bool isTraining = trains(function->getParentOfType<ModuleOp>());
    auto verifyMark = [&](MarkOp mark) {
      auto task =
          tables->lookupNearestSymbolFrom<TaskOp>(function, mark.getTaskAttr());
      auto stage = task ? tables->lookupNearestSymbolFrom<StageOp>(
                              function, task.getStageAttr())
                        : StageOp();
      if (!stage)
        return WalkResult::advance();
      auto places =
          getPlaces(stage, isTraining && task.getKind() == TaskKind::Evaluate);
      if (llvm::is_contained(places, device))
        return WalkResult::advance();
      InFlightDiagnostic diagnostic = mark.emitError();
      diagnostic << "S8: device " << device << " runs " << mark.getTaskAttr()
                 << ", a task of "
                 << (places.size() == 1 ? "device " : "devices ");
      llvm::interleaveComma(places, diagnostic);
      return WalkResult::interrupt();
    };
    auto verify = [&](Operation *op, FlatSymbolRefAttr name,
                      StringRef attribute) {
      auto channel = tables->lookupNearestSymbolFrom<ChannelOp>(function, name);
      if (!channel ||
          (!channel->hasAttr(kSendersAttr) &&
           !channel->hasAttr(kReceiversAttr)) ||
          llvm::is_contained(getEnds(channel, attribute), device))
        return WalkResult::advance();
      op->emitError() << "S8: device " << device << " is none of " << attribute
                      << " of " << name;
      return WalkResult::interrupt();
    };
    return failure(
        function
            ->walk([&](Operation *op) {
              if (auto send = dyn_cast<StartSendOp>(op))
                return verify(op, send.getChannelAttr(), kSendersAttr);
              if (auto recv = dyn_cast<StartRecvOp>(op))
                return verify(op, recv.getChannelAttr(), kReceiversAttr);
              if (auto mark = dyn_cast<MarkOp>(op))
                return verifyMark(mark);
              return WalkResult::advance();
            })
            .wasInterrupted());
  }

  LogicalResult verifySchedules(ModuleOp module) {
    for (auto schedule : module.getOps<ScheduleOp>()) {
      Codes codes;
      for (auto function : module.getOps<func::FuncOp>()) {
        auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
        auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
        if (!name || !device || name.getValue() != schedule.getSymName())
          continue;
        FailureOr<DeviceCode> code = DeviceCode::get(function, *tables);
        if (failed(code) || failed(verifyPlaces(function, device.getInt())))
          return failure();
        if (!codes.insert({device.getInt(), std::move(*code)}).second)
          return function.emitError()
                 << "S8: is the second function of device " << device.getInt()
                 << " for " << schedule.getSymNameAttr();
      }
      if (!codes.empty() && failed(verifySchedule(module, schedule, codes)))
        return failure();
    }
    return success();
  }

  /// Returns how many versions an update of the program makes of the variables
  /// that updates of workers make, of which a wave has several.
  static llvm::DenseMap<Attribute, int64_t> countPeriods(ModuleOp module,
                                                         ScheduleOp schedule) {
    llvm::DenseMap<Attribute, int64_t> periods;
    for (auto task : module.getOps<TaskOp>()) {
      if (task.getKind() != TaskKind::Update || !task.getCallsAttr())
        continue;
      for (auto call : task.getCallsAttr().getAsRange<CallAttr>())
        for (Attribute term : call.getOperands())
          if (auto buffer = dyn_cast<OperandAttr>(term);
              buffer && buffer.getAccess() != AccessKind::Read)
            periods[buffer.getSymbol().getAttr()] =
                static_cast<int64_t>(schedule.getWave());
    }
    return periods;
  }

  LogicalResult verifySchedule(ModuleOp module, ScheduleOp schedule,
                               const Codes &codes) {
    // Long enough that every ring is used twice over, and once in the steady
    // state: those of variables turn once per update, others per microbatch.
    auto microbatches = static_cast<int64_t>(schedule.getMicrobatches());
    auto wave = static_cast<int64_t>(schedule.getWave());
    int64_t ring = 1, filling = 1;
    bool takesNewest = false;
    SymbolTable symbols(module);
    llvm::DenseMap<Attribute, int64_t> periods = countPeriods(module, schedule);
    for (auto &[device, code] : codes) {
      FailureOr<int64_t> updates =
          getUpdatesUntilSteady(code, microbatches * wave);
      if (failed(updates))
        return failure();
      filling = std::max(filling, *updates);
      takesNewest |= code.takesNewest();
      code.getFunction().walk([&](SlotOp slot) {
        auto size = static_cast<int64_t>(slot.getRing().value_or(1));
        StringAttr name = slot.getSymbolAttr().getAttr();
        auto channel = symbols.lookup<ChannelOp>(name);
        int64_t period = !channel                ? periods.lookup(name)
                         : channel.getOwnQueue() ? 1
                                                 : microbatches * wave;
        ring = std::max(
            ring, llvm::divideCeilSigned(size, std::max<int64_t>(period, 1)));
      });
    }
    int64_t longest = std::max(ring, filling) + ring + 2;
    // With many microbatches all rings turn over within one update, and where
    // nothing turns slower, what is left to see are a segment of one update
    // and one boundary.
    if (ring == 1 && filling == 1 && hasManyMicrobatches(microbatches))
      longest = 2;

    longest = getUpdatesUntilRepeated(codes, longest);
    for (auto &[device, code] : codes)
      if (failed(verifyBound(code, longest)))
        return failure();

    // The longest stands for all, if shorter ones are it with events left out;
    // of waves, the last ones are folded in otherwise. If it is wrong, the
    // shortest wrong one shows best what is.
    bool covers = wave == 1;
    {
      ScopedDiagnosticHandler silence(&getContext(),
                                      [](Diagnostic &) { return success(); });
      // Evaluation reads one version, the first, another, or one that has taken
      // the place of the first.
      SmallVector<int64_t, 3> versions = {0};
      if (takesNewest)
        versions.append({1, ring});
      for (int64_t first : {0, 3})
        for (int64_t newest : versions)
          if (covers && failed(execute(module, schedule, codes, first, longest,
                                       first + newest, &covers, nullptr)))
            covers = false;
    }
    if (!covers &&
        failed(executeLengths(module, schedule, codes, longest, ring)))
      return failure();
    for (auto &[device, code] : codes)
      if (failed(verifyRepetition(code, longest)))
        return failure();
    return success();
  }

  /// Executes segments of every length up to `longest`, and from another update
  /// the longest of those in which each operation runs.
  LogicalResult executeLengths(ModuleOp module, ScheduleOp schedule,
                               const Codes &codes, int64_t longest,
                               int64_t ring) {
    Lengths lengths;
    auto executeFrom = [&](int64_t first, int64_t updates) {
      // Evaluation begins where it likes, at any number of updates.
      return execute(module, schedule, codes, first, updates,
                     /*newest=*/first + updates % (ring + 1), nullptr,
                     &lengths);
    };
    auto all = llvm::seq_inclusive<int64_t>(1, longest);
    for (int64_t updates : all)
      if (failed(executeFrom(0, updates)))
        return failure();
    std::set<int64_t> needed;
    for (auto [op, updates] : lengths)
      needed.insert(updates);
    bool isRight;
    {
      ScopedDiagnosticHandler silence(&getContext(),
                                      [](Diagnostic &) { return success(); });
      isRight = llvm::all_of(needed, [&](int64_t updates) {
        return succeeded(executeFrom(3, updates));
      });
    }
    if (isRight)
      return success();
    for (int64_t updates : all)
      if (failed(executeFrom(3, updates)))
        return failure();
    return success();
  }

  /// Returns how many updates, `updates` at least, a segment has in which all
  /// functions come to repeat themselves; `updates` where they do not.
  int64_t getUpdatesUntilRepeated(const Codes &codes, int64_t updates) {
    constexpr int64_t kMostMore = 64;
    ScopedDiagnosticHandler silence(&getContext(),
                                    [](Diagnostic &) { return success(); });
    int64_t longest = updates;
    for (auto &[device, code] : codes) {
      int64_t more = 0;
      while (failed(verifyRepetition(code, longest + more))) {
        if (more >= kMostMore)
          return updates;
        more = std::max<int64_t>(2 * more, 1);
      }
      longest += more;
    }
    return longest;
  }

  /// Checks that a segment which is shortened while it runs does what a segment
  /// of that length does.
  LogicalResult verifyBound(const DeviceCode &code, int64_t longest) {
    if (!code.asksForBound())
      return success();
    for (int64_t length : {int64_t(1), longest - 1}) {
      // It learns of it in the last update, or where it begins the next one.
      for (int64_t reached : {length, length + 1})
        if (failed(verifyShortening(code, longest, {length, reached})))
          return failure();
    }
    return success();
  }

  LogicalResult verifyShortening(const DeviceCode &code, int64_t longest,
                                 Shortening shortening) {
    DeviceRun run(code, 0, longest, 0, shortening);
    DeviceRun other(code, 0, shortening.updates, 0);
    TraceEvent event, expected;
    while (true) {
      FailureOr<bool> isThere = run.next(event);
      FailureOr<bool> isExpected = other.next(expected);
      if (failed(isThere) || failed(isExpected))
        return failure();
      if (!*isThere && !*isExpected)
        return success();
      if (*isThere && *isExpected && event.op == expected.op &&
          event.number == expected.number)
        continue;
      if (*isThere)
        return event.op->emitError()
               << "S8: runs for number " << event.number
               << " in a segment that is shortened to " << shortening.updates
               << " updates, but not in one that has " << shortening.updates;
      return expected.op->emitError()
             << "S8: does not run for number " << expected.number
             << " in a segment that is shortened to " << shortening.updates
             << " updates, but does in one that has " << shortening.updates;
    }
  }

  LogicalResult execute(ModuleOp module, ScheduleOp schedule,
                        const Codes &codes, int64_t first, int64_t updates,
                        int64_t newest, bool *covers, Lengths *lengths) {
    ProgramMachine machine(module, schedule, first, updates, newest);
    if (lengths)
      machine.keepLengths(*lengths);
    for (auto &[device, code] : codes) {
      auto map = maps.find(device);
      machine.addDevice(device, code,
                        map == maps.end() ? nullptr : &map->second);
    }
    if (failed(machine.run(/*explains=*/!covers)))
      return failure();
    if (covers)
      *covers = machine.coversShorter();
    return success();
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
                                           module, arena->second, *tables);
      if (failed(map->second.add(function)))
        return failure();
    }
    for (auto &[device, map] : maps)
      map.findShared();
    return success();
  }

  std::map<int64_t, ArenaMap> maps;
  /// One for all devices: to make one for each takes time with the square of
  /// their number. Shared, as passes are copied.
  std::shared_ptr<SymbolTableCollection> tables;
};

} // namespace
