//===- ArenaMap.cpp - Which buffers of a device share bytes ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ArenaMap.h. Variables share with nothing. Temporaries share with each
// other, as one call runs at a time, and with slots that no call needs that
// uses them.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/ArenaMap.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// The name of the schedule that a device function belongs to.
static StringAttr getSchedule(func::FuncOp function) {
  auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
  return name ? name.getAttr() : StringAttr();
}

LogicalResult ArenaMap::add(func::FuncOp function) {
  functions.push_back(function);
  auto alignment = static_cast<int64_t>(arena.getAlignment());
  WalkResult result = function.walk([&](Operation *op) {
    auto slot = dyn_cast<SlotOp>(op);
    auto scratch = dyn_cast<ScratchOp>(op);
    if (auto call = dyn_cast<func::CallOp>(op))
      return WalkResult(addCall(call));
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
    if (slot)
      return WalkResult(addPlace(slot, getSchedule(function)));
    scratches.push_back(scratch);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ArenaMap::addPlace(SlotOp slot, StringAttr schedule) {
  auto ring = static_cast<int64_t>(slot.getRing().value_or(1));
  auto field = static_cast<int64_t>(slot.getField().value_or(0));
  int64_t bytes = getBufferBytes(slot.getType());
  StringAttr name = slot.getSymbolAttr().getAttr();
  bool isVariable = variables.contains(name);
  if (isVariable)
    schedule = StringAttr();
  auto [it, isNew] =
      places.insert({{schedule, name, field},
                     Place{slot, ring, bytes, schedule, isVariable}});
  if (isNew)
    return success();
  Place &place = it->second;
  // Where a version of a variable is has to be the same to all schedules.
  bool isSame = place.bytes == bytes && (!isVariable || ring == place.ring);
  for (int64_t i : llvm::seq<int64_t>(0, std::min(ring, place.ring)))
    isSame &= slot.getOffset(i) == place.slot.getOffset(i);
  if (!isSame) {
    InFlightDiagnostic diagnostic =
        slot.emitError("S9: is in another place than elsewhere");
    diagnostic.attachNote(place.slot.getLoc()) << "elsewhere";
    return diagnostic;
  }
  if (ring > place.ring) {
    place.slot = slot;
    place.ring = ring;
  }
  return success();
}

FailureOr<const KernelMemory *> ArenaMap::getKernel(func::CallOp call) {
  auto kernel =
      symbols->lookupSymbolIn<func::FuncOp>(root, call.getCalleeAttr());
  auto [known, isNew] = kernels.try_emplace(kernel);
  if (isNew && kernel) {
    FailureOr<KernelMemory> memory = KernelMemory::get(kernel);
    if (failed(memory))
      return failure();
    known->second = std::move(*memory);
  }
  return &known->second;
}

/// Checks that the temporaries of a kernel are in order, and that they lie
/// where its library calls are prepared to find them.
LogicalResult ArenaMap::addCall(func::CallOp call) {
  bool isNew =
      !kernels.contains(symbols->lookupSymbolIn(root, call.getCalleeAttr()));
  FailureOr<const KernelMemory *> kernel = getKernel(call);
  if (failed(kernel) || (isNew && failed((*kernel)->verify())))
    return failure();
  if ((*kernel)->calls.empty())
    return success();
  auto scratch = call.getOperands().back().getDefiningOp<ScratchOp>();
  auto at = static_cast<int64_t>(scratch ? scratch.getAt().value_or(0) : 0);
  auto [place, isFirst] = libraryPlaces.try_emplace(call.getCallee(), at);
  if (scratch && place->second == at)
    return success();
  return call.emitError("S9: has its temporaries elsewhere than another call "
                        "of @")
         << call.getCallee() << ", whose library calls have one place";
}

std::vector<ArenaMap::Interval> ArenaMap::getIntervals() {
  std::vector<Interval> intervals;
  for (ScratchOp scratch : scratches) {
    auto at = static_cast<int64_t>(*scratch.getAt());
    intervals.push_back({at, at + getBufferBytes(scratch.getType()), scratch});
  }
  for (auto &[key, place] : places)
    for (int64_t i : llvm::seq<int64_t>(0, place.ring)) {
      int64_t begin = place.slot.getOffset(i);
      intervals.push_back({begin, begin + place.bytes, place.slot, &place, i});
    }
  for (auto [order, interval] : llvm::enumerate(intervals))
    interval.order = order;
  llvm::sort(intervals, [](const Interval &a, const Interval &b) {
    return std::tie(a.begin, a.order) < std::tie(b.begin, b.order);
  });
  return intervals;
}

//===----------------------------------------------------------------------===//
// What meets
//===----------------------------------------------------------------------===//

static SlotKey getKey(SlotOp slot, StringAttr schedule, int64_t index) {
  return {schedule, slot.getSymbolAttr().getAttr(),
          static_cast<int64_t>(slot.getField().value_or(0)), index};
}

/// Calls visit(first, second) for intervals that meet, first beginning no later
/// than second.
template <typename Intervals, typename Visit>
static LogicalResult forEachMeeting(const Intervals &intervals, Visit visit) {
  SmallVector<const typename Intervals::value_type *> open;
  for (const auto &interval : intervals) {
    llvm::erase_if(
        open, [&](const auto *other) { return other->end <= interval.begin; });
    for (const auto *other : open)
      if (failed(visit(*other, interval)))
        return failure();
    if (interval.end > interval.begin)
      open.push_back(&interval);
  }
  return success();
}

void ArenaMap::addOverwritten(Operation *call, StringAttr schedule,
                              int64_t begin, int64_t end) {
  for (auto &[key, place] : places) {
    if (place.isVariable || place.schedule != schedule)
      continue;
    for (int64_t i : llvm::seq<int64_t>(0, place.ring)) {
      int64_t from = place.slot.getOffset(i);
      if (from < end && begin < from + place.bytes)
        overwritten[call].push_back(getKey(place.slot, schedule, i));
    }
  }
}

void ArenaMap::findShared() {
  (void)forEachMeeting(
      getIntervals(), [&](const Interval &first, const Interval &second) {
        if (first.place && second.place && !first.place->isVariable &&
            !second.place->isVariable &&
            first.place->schedule == second.place->schedule) {
          StringAttr schedule = first.place->schedule;
          SlotKey a = getKey(first.place->slot, schedule, first.index);
          SlotKey b = getKey(second.place->slot, schedule, second.index);
          neighbors[a].push_back(b);
          neighbors[b].push_back(a);
        }
        return success();
      });
  for (func::FuncOp function : functions)
    function.walk([&](func::CallOp call) {
      for (Value operand : call.getOperands())
        if (auto scratch = operand.getDefiningOp<ScratchOp>()) {
          auto at = static_cast<int64_t>(*scratch.getAt());
          addOverwritten(call, getSchedule(function), at,
                         at + getBufferBytes(scratch.getType()));
        }
    });
}

LogicalResult ArenaMap::collectUses() {
  hasUses = true;
  for (func::FuncOp function : functions) {
    auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
    auto schedule =
        name ? symbols->lookupSymbolIn<ScheduleOp>(module, name) : ScheduleOp();
    if (!schedule) {
      schedules.clear();
      break;
    }
    FailureOr<DeviceLives> lives = getLifetimes(function, schedule, *symbols);
    if (failed(lives))
      return failure();
    schedules.push_back(std::move(*lives));
  }
  SmallVector<MessageRing> rings;
  for (auto &[key, place] : places) {
    MessageRing &ring = rings.emplace_back();
    for (auto [index, function] : llvm::enumerate(functions))
      if (getSchedule(function) == place.schedule)
        ring.schedule = index;
    ring.channel = std::get<1>(key);
    ring.field = std::get<2>(key);
    ring.count = place.ring;
  }
  for (auto [entry, use] :
       llvm::zip_equal(places, getRingUses(rings, schedules)))
    uses[&entry.second] = std::move(use);
  for (const DeviceLives &lives : schedules)
    for (const TraceEvent &event : lives.trace)
      calls.push_back(event.kind == TraceEvent::Call ? event.op : nullptr);
  return success();
}

/// Returns true if intervals that overlap are ever in use at the same time.
bool ArenaMap::areInUse(const Interval &first, const Interval &second) {
  if (!first.place && !second.place)
    return false;
  if ((first.place && first.place->isVariable) ||
      (second.place && second.place->isVariable) || schedules.empty())
    return true;
  if (first.place && second.place)
    return uses[first.place]
        .of(first.index)
        .anyCommon(uses[second.place].of(second.index));
  const Interval &slot = first.place ? first : second;
  SlotKey key = getKey(slot.place->slot, slot.place->schedule, slot.index);
  for (unsigned event : uses[slot.place].of(slot.index).set_bits())
    if (event < calls.size() && calls[event] &&
        llvm::is_contained(getOverwritten(calls[event]), key))
      return true;
  return false;
}

LogicalResult ArenaMap::verify() {
  std::vector<Interval> intervals = getIntervals();
  auto bytes = static_cast<int64_t>(arena.getBytes());
  for (const Interval &interval : intervals)
    if (interval.end > bytes)
      return interval.op->emitError("S9: ends at byte ")
             << interval.end << " of an arena of " << bytes;
  return forEachMeeting(
      intervals, [&](const Interval &first, const Interval &second) {
        if (!hasUses && failed(collectUses()))
          return failure();
        if (!areInUse(first, second))
          return success();
        InFlightDiagnostic diagnostic =
            second.op->emitError("S9: shares bytes from ")
            << second.begin << " on with another buffer";
        diagnostic.attachNote(first.op->getLoc()) << "the other buffer";
        return failure();
      });
}
