//===- PlanMemory.cpp - One arena per device ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every ring of slots an offset and a stride, and every device an arena
// whose size is thereby known at compile time: variables, then channels and the
// temporaries of kernels, which share bytes where they are never in use at the
// same time. All schedules share the storage of variables and, as segments do
// not overlap, of channels.
//===----------------------------------------------------------------------===//

#include "passes/Program/Memory/PlaceRings.h"
#include "passes/Program/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPLANMEMORY
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// A ring of buffers as the slots of one device use it.
struct Ring {
  uint64_t bytes = 0;
  uint64_t count = 1;
  uint64_t at = 0;
  uint64_t stride = 0;
  /// Places by message of an update, instead of the two before.
  std::vector<int64_t> places;
};

/// The schedule of a channel's slots, as each has its own, or 0; then symbol
/// and field.
using RingKey = std::tuple<uint64_t, StringAttr, uint64_t>;

/// The memory of a device, from its functions for all schedules.
struct Device {
  llvm::MapVector<RingKey, Ring> rings;
  SmallVector<std::pair<SlotOp, RingKey>> slots;
  /// Functions so far.
  uint64_t functions = 0;
  /// The temporaries of calls by kernel; null for those of no kernel.
  llvm::MapVector<StringAttr, SmallVector<ScratchOp>> scratches;
  /// The lifetimes of each schedule; nothing when one of them is not known.
  std::vector<DeviceLives> schedules;
  bool isFollowed = true;
};

FailureOr<uint64_t> getBytes(Operation *op, Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || !memref.hasStaticShape() || !memref.getLayout().isIdentity() ||
      !memref.getElementType().isIntOrIndexOrFloat())
    return op->emitError("needs a buffer of static shape and identity layout");
  Type element = memref.getElementType();
  uint64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return memref.getNumElements() * llvm::divideCeil(bits, 8);
}

struct PlanMemoryPass
    : public penstock::impl::PipelinePlanMemoryBase<PlanMemoryPass> {
  using PipelinePlanMemoryBase::PipelinePlanMemoryBase;

  void runOnOperation() override {
    ModuleOp root = getOperation();
    if (!llvm::isPowerOf2_64(alignment)) {
      root.emitError("pipeline-plan-memory: alignment must be a power of two");
      return signalPassFailure();
    }
    SmallVector<ModuleOp> modules{root};
    llvm::append_range(modules, root.getOps<ModuleOp>());
    for (ModuleOp module : modules)
      if (failed(planModule(module)))
        return signalPassFailure();
  }

  LogicalResult planModule(ModuleOp module) {
    // In increasing order of device numbers, whatever the order of functions.
    std::map<int64_t, Device> devices;
    func::FuncOp before;
    SymbolTableCollection tables;
    variables.clear();
    for (auto variable : module.getOps<VariableOp>())
      variables.insert(variable.getSymNameAttr());
    for (auto function : module.getOps<func::FuncOp>()) {
      auto number = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
      if (!number)
        continue;
      if (!before)
        before = function;
      Device &device = devices[number.getInt()];
      if (failed(follow(module, function, device, tables)) ||
          failed(collect(function, device)))
        return failure();
      ++device.functions;
    }
    for (auto arena : llvm::make_early_inc_range(module.getOps<ArenaOp>()))
      arena.erase();
    for (auto &[number, device] : devices) {
      uint64_t at = layOut(module, device);
      OpBuilder builder(before);
      auto attr = [&](uint64_t value) {
        return builder.getI64IntegerAttr(static_cast<int64_t>(value));
      };
      ArenaOp::create(builder, before.getLoc(), attr(number), attr(at),
                      attr(alignment));
      if (limit && at > limit)
        return reportTooLarge(module, number, device, at);
    }
    return success();
  }

  /// The slots and temporaries of a device function.
  LogicalResult collect(func::FuncOp function, Device &device) {
    WalkResult result = function.walk([&](Operation *op) {
      auto slot = dyn_cast<SlotOp>(op);
      auto scratch = dyn_cast<ScratchOp>(op);
      if (!slot && !scratch)
        return WalkResult::advance();
      FailureOr<uint64_t> bytes = getBytes(op, op->getResult(0).getType());
      if (failed(bytes))
        return WalkResult::interrupt();
      if (scratch) {
        StringAttr kernel;
        for (Operation *user : scratch->getUsers())
          if (auto call = dyn_cast<func::CallOp>(user))
            kernel = call.getCalleeAttr().getAttr();
        device.scratches[kernel].push_back(scratch);
        return WalkResult::advance();
      }
      StringAttr name = slot.getSymbolAttr().getAttr();
      RingKey key(variables.contains(name) ? 0 : device.functions, name,
                  slot.getField().value_or(0));
      device.slots.push_back({slot, key});
      Ring &ring = device.rings[key];
      ring.bytes = std::max(ring.bytes, *bytes);
      ring.count = std::max(ring.count, slot.getRing().value_or(1));
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult follow(ModuleOp module, func::FuncOp function, Device &device,
                       SymbolTableCollection &tables) {
    auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
    auto schedule =
        name ? tables.lookupSymbolIn<ScheduleOp>(module, name) : ScheduleOp();
    if (!schedule) {
      device.isFollowed = false;
      return success();
    }
    FailureOr<DeviceLives> lives = getLifetimes(function, schedule, tables);
    if (failed(lives))
      return failure();
    tighten(function, *lives);
    device.schedules.push_back(std::move(*lives));
    return success();
  }

  /// A channel has as many slots as its longest-lived field needs; the others
  /// get what they need.
  static void tighten(func::FuncOp function, DeviceLives &lives) {
    using Key = std::pair<Attribute, int64_t>;
    std::map<std::pair<StringRef, int64_t>, SmallVector<const MessageLife *>>
        messages;
    for (const MessageLife &life : lives.messages)
      messages[{life.cell.symbol.getValue(), life.cell.field}].push_back(&life);
    llvm::DenseMap<Key, int64_t> needs;
    for (auto &[name, list] : messages) {
      // In the order of their beginnings: who is still there?
      SmallVector<const MessageLife *> alive;
      int64_t most = 1;
      for (const MessageLife *life : list) {
        llvm::erase_if(alive, [&](const MessageLife *other) {
          return other->last < life->first;
        });
        for (const MessageLife *other : alive)
          most = std::max(most,
                          std::abs(life->cell.number - other->cell.number) + 1);
        alive.push_back(life);
      }
      needs[{list.front()->cell.symbol, list.front()->cell.field}] = most;
    }
    auto tightened = [&](Attribute symbol, int64_t field, int64_t ring) {
      auto need = needs.find({symbol, field});
      return need == needs.end() ? ring : std::min(ring, need->second);
    };
    function.walk([&](SlotOp slot) {
      auto ring = static_cast<int64_t>(slot.getRing().value_or(1));
      int64_t fewer =
          tightened(slot.getSymbolAttr().getAttr(),
                    static_cast<int64_t>(slot.getField().value_or(0)), ring);
      if (fewer == 1)
        slot.removeRingAttr();
      else if (fewer < ring)
        slot.setRing(fewer);
    });
    for (MessageLife &life : lives.messages)
      life.cell.ring =
          tightened(life.cell.symbol, life.cell.field, life.cell.ring);
  }

  /// Sets places; returns the first free byte.
  uint64_t layOut(ModuleOp module, Device &device) {
    uint64_t at = 0;
    // Variables of one role and number of versions form a block, repeated for
    // every version, so that what is done to each can be done to a range.
    llvm::MapVector<std::pair<Role, uint64_t>, SmallVector<Ring *>> blocks;
    for (auto variable : module.getOps<VariableOp>()) {
      auto ring = device.rings.find(RingKey(0, variable.getSymNameAttr(), 0));
      if (ring != device.rings.end())
        blocks[{variable.getRole(), ring->second.count}].push_back(
            &ring->second);
    }
    auto roles = llvm::to_vector(llvm::make_first_range(blocks));
    llvm::sort(roles);
    for (auto &role : roles) {
      uint64_t start = at;
      for (Ring *ring : blocks[role]) {
        ring->at = at;
        at += llvm::alignTo(ring->bytes, alignment);
      }
      uint64_t stride = at - start;
      for (Ring *ring : blocks[role])
        ring->stride = stride;
      at += stride * (role.second - 1);
    }
    uint64_t end = placeShared(module, device, at);

    for (auto &[slot, key] : device.slots) {
      const Ring &ring = device.rings[key];
      slot.removePlacesAttr();
      slot.setAt(ring.at);
      if (!ring.places.empty()) {
        slot.setAt(ring.places.front());
        slot.setRing(ring.places.size());
        slot.setPlaces(ring.places);
      }
      // Where there are places, it says only that they are aligned.
      if (slot.getRing().value_or(1) > 1)
        slot.setStride(ring.places.empty() ? ring.stride
                                           : alignment.getValue());
      else
        slot.removeStrideAttr();
    }
    return end;
  }

  /// Channels and temporaries; returns the end of all.
  uint64_t placeShared(ModuleOp module, Device &device, uint64_t base) {
    // Without schedules, nothing is known of when they are in use.
    if (!device.isFollowed)
      device.schedules.clear();
    // 1. Temporaries first: they have the largest say in who lies where.
    std::vector<MessageRing> rings = getScratchRings(device);
    size_t scratchCount = rings.size();

    // 2. The slots of channels.
    SmallVector<Ring *> placed;
    for (uint64_t schedule : llvm::seq(device.functions))
      for (auto channel : module.getOps<ChannelOp>())
        for (uint64_t field :
             llvm::seq<uint64_t>(0, getStagingField(channel) + 1)) {
          auto it = device.rings.find(
              RingKey(schedule, channel.getSymNameAttr(), field));
          if (it == device.rings.end())
            continue;
          MessageRing &ring = rings.emplace_back();
          ring.schedule = schedule;
          ring.channel = channel.getSymNameAttr();
          ring.field = static_cast<int64_t>(field);
          ring.bytes = getPlaceBytes(it->second.bytes);
          ring.count = static_cast<int64_t>(it->second.count);
          placed.push_back(&it->second);
        }
    auto end = static_cast<uint64_t>(
        placeRings(rings, device.schedules, static_cast<int64_t>(base)));

    // 3. Where they are.
    for (auto [ring, to] :
         llvm::zip_equal(ArrayRef(rings).drop_front(scratchCount), placed)) {
      to->at = ring.at;
      to->stride = ring.stride;
      to->places = ring.places;
    }
    llvm::DenseMap<StringAttr, uint64_t> placeOf;
    for (const MessageRing &ring : ArrayRef(rings).take_front(scratchCount))
      placeOf[ring.channel] = ring.at;
    for (auto &[kernel, scratches] : device.scratches)
      for (ScratchOp scratch : scratches) {
        auto place = placeOf.find(kernel);
        scratch.setAt(place == placeOf.end() ? placeOf.lookup(StringAttr())
                                             : place->second);
      }
    return end;
  }

  int64_t getPlaceBytes(uint64_t bytes) const {
    return static_cast<int64_t>(
        std::max<uint64_t>(llvm::alignTo(bytes, alignment), alignment));
  }

  /// A ring of one slot per kernel whose calls are known, and one for the
  /// temporaries of all others.
  std::vector<MessageRing> getScratchRings(const Device &device) const {
    llvm::DenseSet<StringAttr> called;
    for (const DeviceLives &lives : device.schedules)
      for (const TraceEvent &event : lives.trace)
        if (event.kind == TraceEvent::Call)
          called.insert(event.symbol);
    std::vector<MessageRing> rings;
    std::optional<size_t> others;
    for (auto &[kernel, scratches] : device.scratches) {
      bool isKnown = kernel && called.contains(kernel);
      size_t index = isKnown ? rings.size() : others.value_or(rings.size());
      if (index == rings.size()) {
        MessageRing &ring = rings.emplace_back();
        ring.isScratch = true;
        if (isKnown)
          ring.channel = kernel;
        else
          others = index;
      }
      for (ScratchOp scratch : scratches)
        rings[index].bytes = std::max(
            rings[index].bytes,
            getPlaceBytes(scratch.getBuffer().getType().getNumElements()));
    }
    return rings;
  }

  LogicalResult reportTooLarge(ModuleOp module, int64_t number,
                               const Device &device, uint64_t bytes) {
    InFlightDiagnostic diagnostic = module.emitError()
                                    << "device " << number << " (stages";
    for (auto stage : module.getOps<StageOp>())
      if (llvm::is_contained(stage.getDevices().value_or(ArrayRef<int64_t>()),
                             number))
        diagnostic << " @" << stage.getSymName();
    diagnostic << ") needs " << bytes << " bytes of memory, "
               << bytes - limit.getValue() << " more than its limit of "
               << limit.getValue();
    uint64_t weights = 0, channels = 0, temporaries = 0;
    for (auto &[key, ring] : device.rings) {
      uint64_t total = llvm::alignTo(ring.bytes, alignment) * ring.count;
      (module.lookupSymbol<VariableOp>(std::get<1>(key)) ? weights
                                                         : channels) += total;
    }
    for (auto &[kernel, scratches] : device.scratches)
      for (ScratchOp scratch : scratches)
        temporaries = std::max<uint64_t>(
            temporaries,
            getPlaceBytes(scratch.getBuffer().getType().getNumElements()));
    diagnostic.attachNote() << "variables " << weights << ", channels "
                            << channels << ", temporaries " << temporaries;
    return diagnostic;
  }

  /// The variables of the module that is being planned.
  llvm::DenseSet<StringAttr> variables;
};

} // namespace
