//===- PlanMemory.cpp - One arena per device ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every ring of slots an offset and a stride, and every device an arena
// whose size is thereby known at compile time. All schedules share the storage
// of variables and, as segments do not overlap, of channels.
//===----------------------------------------------------------------------===//

#include "passes/Program/Passes.h"
#include "penstock/Codegen/LibraryScratch.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace penstock {
#define GEN_PASS_DEF_PLANMEMORY
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
};

/// What a device needs, from its functions for all schedules.
struct Device {
  /// By symbol and field.
  llvm::MapVector<std::pair<StringAttr, uint64_t>, Ring> rings;
  SmallVector<SlotOp> slots;
  SmallVector<ScratchOp> scratches;
  uint64_t libraryBytes = 0;
  /// Library calls and the scratch that they ask for.
  llvm::MapVector<Operation *, uint64_t> products;
  /// By kernel, the most of its calls.
  llvm::DenseMap<Operation *, uint64_t> libraryOf;
  /// Where temporaries and the scratch of the library lie.
  uint64_t sharedAt = 0;
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

struct PlanMemory : public penstock::impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;

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
    for (auto function : module.getOps<func::FuncOp>()) {
      auto number = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
      if (!number)
        continue;
      if (!before)
        before = function;
      if (failed(collect(root, function, devices[number.getInt()])))
        return failure();
    }
    for (auto arena : llvm::make_early_inc_range(module.getOps<ArenaOp>()))
      arena.erase();
    shareProducts(devices);
    for (auto &[number, device] : devices) {
      uint64_t at = layOut(root, module, device);
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
          device.slots.push_back(slot);
          Ring &ring = device.rings[{slot.getSymbolAttr().getAttr(),
                                     slot.getField().value_or(0)}];
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

  /// Temporaries lie behind what the calls of their kernel take of the
  /// library's scratch, which is the same bytes for all kernels. Returns their
  /// end.
  uint64_t placeTemporaries(ModuleOp root, Device &device, uint64_t at) {
    device.sharedAt = at;
    uint64_t end = at + llvm::alignTo(device.libraryBytes, alignment);
    for (ScratchOp scratch : device.scratches) {
      uint64_t library = 0;
      for (Operation *user : scratch->getUsers())
        if (auto call = dyn_cast<func::CallOp>(user))
          library = std::max(
              library, device.libraryOf.lookup(
                           root.lookupSymbol<func::FuncOp>(call.getCallee())));
      uint64_t begin = at + llvm::alignTo(library, alignment);
      scratch.setAt(begin);
      uint64_t bytes = scratch.getBuffer().getType().getNumElements();
      end = std::max(end, begin + llvm::alignTo(bytes, alignment));
    }
    return end;
  }

  /// Sets places; returns the first free byte.
  uint64_t layOut(ModuleOp root, ModuleOp module, Device &device) {
    uint64_t at = 0;
    // Variables of one role and number of versions form a block, repeated for
    // every version, so that what is done to each can be done to a range.
    llvm::MapVector<std::pair<Role, uint64_t>, SmallVector<Ring *>> blocks;
    for (auto variable : module.getOps<VariableOp>()) {
      auto ring = device.rings.find({variable.getSymNameAttr(), 0});
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
    for (auto channel : module.getOps<ChannelOp>()) {
      for (uint64_t field : llvm::seq<uint64_t>(0, channel.getTypes().size())) {
        auto it = device.rings.find({channel.getSymNameAttr(), field});
        if (it == device.rings.end())
          continue;
        Ring &ring = it->second;
        ring.at = at;
        ring.stride = llvm::alignTo(ring.bytes, alignment);
        at += ring.stride * ring.count;
      }
    }

    for (SlotOp slot : device.slots) {
      const Ring &ring = device.rings[{slot.getSymbolAttr().getAttr(),
                                       slot.getField().value_or(0)}];
      slot.setAt(ring.at);
      if (slot.getRing().value_or(1) > 1)
        slot.setStride(ring.stride);
      else
        slot.removeStrideAttr();
    }
    return placeTemporaries(root, device, at);
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
    uint64_t variables = 0, channels = 0;
    for (auto &[key, ring] : device.rings) {
      uint64_t total = llvm::alignTo(ring.bytes, alignment) * ring.count;
      (module.lookupSymbol<VariableOp>(key.first) ? variables : channels) +=
          total;
    }
    diagnostic.attachNote()
        << "variables " << variables << ", channels " << channels
        << ", temporaries " << bytes - device.sharedAt;
    return diagnostic;
  }
};

} // namespace
