//===- LiveBytes.cpp - How small an arena could be ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See LiveBytes.h. Follows the trace of every device function over a segment
// that is long enough for its steady state. Buffers count with the alignment
// that they have in the arena.
//===----------------------------------------------------------------------===//

#include "passes/Program/LiveBytes.h"

#include "passes/Program/DeviceTrace.h"
#include "penstock/Codegen/LibraryScratch.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static int64_t getBytes(Type type, int64_t alignment) {
  auto memref = cast<MemRefType>(type);
  Type element = memref.getElementType();
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return static_cast<int64_t>(llvm::alignTo(
      memref.getNumElements() * llvm::divideCeil(bits, 8), alignment));
}

/// First and last op of the entry block that use a buffer or a view of it.
static void extendToUses(Value buffer, Block &entry,
                         const llvm::DenseMap<Operation *, int64_t> &positions,
                         int64_t &first, int64_t &last) {
  for (Operation *user : buffer.getUsers()) {
    if (isa<ViewLikeOpInterface>(user)) {
      for (Value result : user->getResults())
        extendToUses(result, entry, positions, first, last);
      continue;
    }
    int64_t position = positions.lookup(entry.findAncestorOpInBlock(*user));
    first = std::min(first, position);
    last = std::max(last, position);
  }
}

FailureOr<KernelBytes> penstock::getKernelBytes(func::FuncOp kernel,
                                                int64_t threads,
                                                int64_t alignment) {
  KernelBytes result;
  if (kernel.isDeclaration())
    return result;
  Block &entry = kernel.getBody().front();
  llvm::DenseMap<Operation *, int64_t> positions;
  for (auto [position, op] : llvm::enumerate(entry))
    positions[&op] = static_cast<int64_t>(position);
  // By position: bytes that begin and that end to be alive there.
  std::vector<int64_t> begins(positions.size() + 1), library(positions.size());
  unsigned arguments = kernel.getNumArguments();
  if (arguments > 0 && kernel.getArgAttr(arguments - 1, kScratchAttr)) {
    for (Operation *user : kernel.getArgument(arguments - 1).getUsers()) {
      auto view = dyn_cast<memref::ViewOp>(user);
      if (!view)
        return user->emitError("uses temporary memory other than by a view");
      int64_t first = static_cast<int64_t>(positions.size()), last = -1;
      extendToUses(view, entry, positions, first, last);
      if (last < 0)
        continue;
      int64_t bytes = getBytes(view.getType(), alignment);
      begins[first] += bytes;
      begins[last + 1] -= bytes;
    }
  }
  WalkResult walked = kernel.walk([&](Operation *op) {
    FailureOr<std::optional<int64_t>> bytes = libraryScratchBytes(op, threads);
    if (failed(bytes))
      return WalkResult::interrupt();
    if (!*bytes)
      return WalkResult::advance();
    int64_t position = positions.lookup(entry.findAncestorOpInBlock(*op));
    library[position] = std::max(library[position], **bytes);
    result.libraryBytes = std::max(result.libraryBytes, **bytes);
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return kernel.emitError("has a product that no library computes");
  int64_t live = 0;
  for (auto [position, bytes] : llvm::enumerate(library)) {
    live += begins[position];
    result.liveBytes = std::max(result.liveBytes, live + bytes);
  }
  return result;
}

namespace {
/// A channel's name, field and message.
using CellKey = std::tuple<StringRef, int64_t, int64_t>;

/// One buffer of a message: when it is alive, in events of the trace.
struct Lifetime {
  size_t first = 0, last = 0;
  int64_t bytes = 0;
};

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
  FailureOr<KernelBytes> bytes =
      getKernelBytes(kernel, static_cast<int64_t>(arena.getThreads()),
                     static_cast<int64_t>(arena.getAlignment()));
  if (failed(bytes))
    return failure();
  return kernels[name] = bytes->liveBytes;
}

/// The most bytes of messages and temporaries of one device and schedule.
FailureOr<int64_t> LiveBytes::follow(func::FuncOp function, ScheduleOp schedule,
                                     ArenaOp arena) {
  int64_t ring = 1;
  llvm::DenseMap<std::pair<Attribute, int64_t>, int64_t> bytesOf;
  function.walk([&](SlotOp slot) {
    ring = std::max<int64_t>(ring, slot.getRing().value_or(1));
    bytesOf[{slot.getSymbolAttr().getAttr(),
             static_cast<int64_t>(slot.getField().value_or(0))}] =
        getBytes(slot.getType(), static_cast<int64_t>(arena.getAlignment()));
  });
  auto microbatches = static_cast<int64_t>(schedule.getMicrobatches());
  int64_t updates = 2 * ((ring + microbatches - 1) / microbatches) + 2;
  FailureOr<std::vector<TraceEvent>> trace =
      traceDevice(function, 0, updates, 0);
  if (failed(trace))
    return failure();
  std::map<CellKey, Lifetime> lifetimes;
  // A message is alive until the device knows that it was sent. Transfers with
  // peers end in the order of their issue; those of a source or sink in one of
  // their own.
  std::map<std::pair<StringRef, int64_t>, size_t> issued;
  std::map<size_t, std::pair<StringRef, CellKey>> leaving;
  auto isExternal = [&](StringRef name) {
    auto channel = symbols.lookup<ChannelOp>(name);
    return channel && (channel.getSource() || channel.getSink());
  };
  for (auto [index, event] : llvm::enumerate(*trace)) {
    for (const Access &access : event.accesses) {
      const CellRef &cell = access.cell;
      if (!symbols.lookup<ChannelOp>(cell.symbol))
        continue;
      CellKey key(cell.symbol.getValue(), cell.field, cell.number);
      auto [it, isNew] = lifetimes.try_emplace(key);
      if (isNew)
        it->second = {index, index, bytesOf.lookup({cell.symbol, cell.field})};
      it->second.last = std::max(it->second.last, index);
      if (event.kind == TraceEvent::Send) {
        leaving[index] = {event.symbol.getValue(), key};
        it->second.last = trace->size() - 1;
      }
    }
    StringRef channel = event.symbol.getValue();
    if (event.kind == TraceEvent::Send || event.kind == TraceEvent::Recv)
      issued[{channel, event.number}] = index;
    auto awaited = event.kind == TraceEvent::Await
                       ? issued.find({channel, event.number})
                       : issued.end();
    if (awaited == issued.end())
      continue;
    for (auto it = leaving.begin();
         it != leaving.end() && it->first <= awaited->second;) {
      StringRef sent = it->second.first;
      bool isDone = isExternal(channel) ? sent == channel : !isExternal(sent);
      if (isDone)
        lifetimes[it->second.second].last = index;
      it = isDone ? leaving.erase(it) : std::next(it);
    }
  }
  std::vector<int64_t> begins(trace->size() + 1);
  for (auto &[key, lifetime] : lifetimes) {
    begins[lifetime.first] += lifetime.bytes;
    begins[lifetime.last + 1] -= lifetime.bytes;
  }
  int64_t live = 0, peak = 0;
  for (auto [index, event] : llvm::enumerate(*trace)) {
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
