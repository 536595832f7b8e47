//===- PlanMemory.cpp - One arena per device ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every ring of slots an offset and a stride, and every device an arena
// whose size is thereby known at compile time: variables, then temporaries,
// then channels, which may reach into what temporaries leave free while they
// are in use. All schedules share the storage of variables and, as segments do
// not overlap, of channels.
//===----------------------------------------------------------------------===//

#include "passes/Program/KernelMemory.h"
#include "passes/Program/Passes.h"
#include "passes/Program/PlaceRings.h"
#include "passes/Program/Places.h"
#include "penstock/Codegen/LibraryScratch.h"

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
  /// By message of an update, in place of the two before.
  std::vector<int64_t> places;
};

/// The schedule of a channel's slots, as each has its own, or 0; then symbol
/// and field.
using RingKey = std::tuple<uint64_t, StringAttr, uint64_t>;

/// What a device needs, from its functions for all schedules.
struct Device {
  llvm::MapVector<RingKey, Ring> rings;
  SmallVector<std::pair<SlotOp, RingKey>> slots;
  /// Functions so far.
  uint64_t functions = 0;
  SmallVector<ScratchOp> scratches;
  uint64_t libraryBytes = 0;
  /// Library calls and the scratch that they ask for.
  llvm::MapVector<Operation *, uint64_t> products;
  /// By kernel, the most of its calls.
  llvm::DenseMap<Operation *, uint64_t> libraryOf;
  /// Where temporaries and the scratch of the library lie, and what they take.
  uint64_t sharedAt = 0;
  uint64_t sharedBytes = 0;
  /// What each schedule does; nothing when one of them is not known.
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
    if (!llvm::isPowerOf2_64(alignment) || threads == 0) {
      root.emitError("pipeline-plan-memory: alignment must be a power of two, "
                     "threads positive");
      return signalPassFailure();
    }
    SmallVector<ModuleOp> modules{root};
    llvm::append_range(modules, root.getOps<ModuleOp>());
    for (ModuleOp module : modules)
      if (failed(planModule(root, module)))
        return signalPassFailure();
  }

  LogicalResult planModule(ModuleOp root, ModuleOp module) {
    // In increasing order of device numbers, whatever the order of functions.
    std::map<int64_t, Device> devices;
    func::FuncOp before;
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
      if (failed(follow(module, function, device)) ||
          failed(collect(root, function, device)))
        return failure();
      ++device.functions;
    }
    for (auto arena : llvm::make_early_inc_range(module.getOps<ArenaOp>()))
      arena.erase();
    shareProducts(devices);
    for (auto &[number, device] : devices) {
      FailureOr<uint64_t> end = layOut(root, module, device);
      if (failed(end))
        return failure();
      uint64_t at = *end;
      OpBuilder builder(before);
      auto attr = [&](uint64_t value) {
        return builder.getI64IntegerAttr(static_cast<int64_t>(value));
      };
      ArenaOp::create(builder, before.getLoc(), attr(number), attr(at),
                      attr(device.sharedAt), attr(device.libraryBytes),
                      attr(threads), attr(alignment));
      if (limit && at > limit)
        return reportTooLarge(module, number, device, at);
    }
    return success();
  }

  /// The slots of a device function and the library calls of what it calls.
  LogicalResult collect(ModuleOp root, func::FuncOp function, Device &device) {
    SmallVector<func::FuncOp> callees{function};
    llvm::SmallSetVector<Operation *, 16> known;
    while (!callees.empty()) {
      func::FuncOp next = callees.pop_back_val();
      if (!known.insert(next))
        continue;
      WalkResult result = next.walk([&](Operation *op) {
        if (auto slot = dyn_cast<SlotOp>(op)) {
          FailureOr<uint64_t> bytes = getBytes(slot, slot.getType());
          if (failed(bytes))
            return WalkResult::interrupt();
          StringAttr name = slot.getSymbolAttr().getAttr();
          RingKey key(variables.contains(name) ? 0 : device.functions, name,
                      slot.getField().value_or(0));
          device.slots.push_back({slot, key});
          Ring &ring = device.rings[key];
          ring.bytes = std::max(ring.bytes, *bytes);
          ring.count = std::max(ring.count, slot.getRing().value_or(1));
        } else if (auto scratch = dyn_cast<ScratchOp>(op)) {
          FailureOr<uint64_t> bytes = getBytes(scratch, scratch.getType());
          if (failed(bytes))
            return WalkResult::interrupt();
          device.scratches.push_back(scratch);
        } else if (auto call = dyn_cast<func::CallOp>(op)) {
          auto callee = root.lookupSymbol<func::FuncOp>(call.getCallee());
          if (callee)
            callees.push_back(callee);
        }
        return collectLibraryCall(op, device);
      });
      if (result.wasInterrupted())
        return failure();
    }
    return success();
  }

  LogicalResult follow(ModuleOp module, func::FuncOp function, Device &device) {
    auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
    auto schedule = name ? module.lookupSymbol<ScheduleOp>(name) : ScheduleOp();
    if (!schedule) {
      device.isFollowed = false;
      return success();
    }
    FailureOr<DeviceLives> lives = getLifetimes(function, schedule);
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

  WalkResult collectLibraryCall(Operation *op, Device &device) {
    std::string reason;
    FailureOr<std::optional<int64_t>> bytes =
        libraryScratchBytes(op, static_cast<int64_t>(threads), &reason);
    if (failed(bytes)) {
      op->emitError("no library can compute this product: ") << reason;
      return WalkResult::interrupt();
    }
    if (*bytes) {
      device.products[op] = static_cast<uint64_t>(**bytes);
      uint64_t &most = device.libraryOf[op->getParentOfType<func::FuncOp>()];
      most = std::max(most, device.products[op]);
    }
    return WalkResult::advance();
  }

  /// Products of a kernel that several devices share are prepared on all.
  static void shareProducts(std::map<int64_t, Device> &devices) {
    llvm::MapVector<Operation *, unsigned> users;
    for (auto &[number, device] : devices)
      for (auto &[gemm, bytes] : device.products)
        ++users[gemm];
    for (auto &[number, device] : devices)
      for (auto &[gemm, bytes] : device.products)
        for (auto &[other, needs] : devices)
          if (&needs == &device || users[gemm] > 1)
            needs.libraryBytes = std::max(needs.libraryBytes, bytes);
  }

  /// Temporaries lie where library calls have their scratch, if those of their
  /// kernel leave them alone, or else behind it.
  LogicalResult placeTemporaries(ModuleOp root, Device &device, uint64_t at) {
    device.sharedAt = at;
    device.sharedBytes = llvm::alignTo(device.libraryBytes, alignment);
    llvm::DenseMap<Operation *, bool> isClear;
    for (ScratchOp scratch : device.scratches) {
      uint64_t library = 0;
      for (Operation *user : scratch->getUsers()) {
        auto call = dyn_cast<func::CallOp>(user);
        auto kernel = call ? root.lookupSymbol<func::FuncOp>(call.getCallee())
                           : func::FuncOp();
        if (!kernel)
          continue;
        auto [known, isNew] = isClear.try_emplace(kernel, false);
        if (isNew) {
          FailureOr<KernelMemory> memory =
              KernelMemory::get(kernel, static_cast<int64_t>(threads));
          if (failed(memory))
            return failure();
          known->second = memory->isClear(0);
        }
        if (!known->second)
          library = std::max(library, device.libraryOf.lookup(kernel));
      }
      uint64_t distance = llvm::alignTo(library, alignment);
      scratch.setAt(at + distance);
      uint64_t bytes = scratch.getBuffer().getType().getNumElements();
      device.sharedBytes = std::max(device.sharedBytes,
                                    distance + llvm::alignTo(bytes, alignment));
    }
    return success();
  }

  /// By event of all schedules: what a call takes of the shared region.
  std::vector<int64_t> getScratchByEvent(ModuleOp root, const Device &device) {
    std::vector<int64_t> result;
    for (const DeviceLives &lives : device.schedules)
      for (const TraceEvent &event : lives.trace) {
        uint64_t bytes = 0;
        if (auto call = dyn_cast<func::CallOp>(event.op)) {
          bytes = device.libraryOf.lookup(
              root.lookupSymbol<func::FuncOp>(call.getCallee()));
          for (Value operand : call.getOperands())
            if (auto scratch = operand.getDefiningOp<ScratchOp>())
              bytes = std::max<uint64_t>(
                  bytes, *scratch.getAt() - device.sharedAt +
                             scratch.getBuffer().getType().getNumElements());
        }
        result.push_back(static_cast<int64_t>(bytes));
      }
    return result;
  }

  /// Sets places; returns the first free byte.
  FailureOr<uint64_t> layOut(ModuleOp root, ModuleOp module, Device &device) {
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
    if (failed(placeTemporaries(root, device, at)))
      return failure();
    uint64_t end = placeChannels(root, module, device);

    for (auto &[slot, key] : device.slots) {
      const Ring &ring = device.rings[key];
      slot->removeAttr(kPlacesAttr);
      slot.setAt(ring.at);
      if (!ring.places.empty()) {
        slot.setAt(ring.places.front());
        slot.setRing(ring.places.size());
        slot->setAttr(kPlacesAttr,
                      DenseI64ArrayAttr::get(slot.getContext(), ring.places));
      }
      // Where there are places, it says only that they are aligned.
      if (slot.getRing().value_or(1) > 1)
        slot.setStride(ring.places.empty() ? ring.stride
                                           : alignment.getValue());
      else
        slot.removeStrideAttr();
    }
    return std::max(at + device.sharedBytes, end);
  }

  /// Returns the end of all channels.
  uint64_t placeChannels(ModuleOp root, ModuleOp module, Device &device) {
    SmallVector<MessageRing> rings;
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
          ring.bytes = static_cast<int64_t>(std::max<uint64_t>(
              llvm::alignTo(it->second.bytes, alignment), alignment));
          ring.count = static_cast<int64_t>(it->second.count);
          placed.push_back(&it->second);
        }
    if (rings.empty())
      return 0;
    // Without schedules, nothing is known of when they are in use.
    if (!device.isFollowed)
      device.schedules.clear();
    auto end = static_cast<uint64_t>(
        placeRings(rings, device.schedules, getScratchByEvent(root, device),
                   static_cast<int64_t>(device.sharedAt),
                   static_cast<int64_t>(device.sharedBytes),
                   static_cast<int64_t>(alignment)));
    for (auto [ring, to] : llvm::zip_equal(rings, placed)) {
      to->at = ring.at;
      to->stride = ring.stride;
      to->places = ring.places;
    }
    return end;
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
    uint64_t weights = 0, channels = 0;
    for (auto &[key, ring] : device.rings) {
      uint64_t total = llvm::alignTo(ring.bytes, alignment) * ring.count;
      (module.lookupSymbol<VariableOp>(std::get<1>(key)) ? weights
                                                         : channels) += total;
    }
    diagnostic.attachNote()
        << "variables " << weights << ", channels " << channels
        << ", temporaries " << device.sharedBytes;
    return diagnostic;
  }

  /// Of the module that is being planned.
  llvm::DenseSet<StringAttr> variables;
};

} // namespace
