//===- ArenaMap.h - Which buffers of a device share bytes -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule S9: slots and temporaries of one device as intervals of its arena. Those
// that meet must never be in use at the same time.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_ARENAMAP_H
#define PENSTOCK_PASSES_PROGRAM_ARENAMAP_H

#include "passes/Program/KernelMemory.h"
#include "passes/Program/PlaceRings.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace penstock {

/// A slot by what it belongs to, without the number of a message.
using SlotKey = std::tuple<mlir::StringRef, int64_t, int64_t>;

class ArenaMap {
public:
  ArenaMap(mlir::ModuleOp root, mlir::ModuleOp module, pipeline::ArenaOp arena)
      : root(root), module(module), arena(arena) {}

  /// Takes in the slots of one of the device's functions. Fails, with a
  /// diagnostic, on one that has no place, or another than elsewhere.
  mlir::LogicalResult add(mlir::func::FuncOp function);
  /// To be called once all functions are there.
  void findShared();
  mlir::LogicalResult verify();

  /// Other slots of messages that have bytes of this one.
  llvm::ArrayRef<SlotKey> getNeighbours(const SlotKey &slot) const {
    auto it = neighbours.find(slot);
    return it == neighbours.end() ? llvm::ArrayRef<SlotKey>() : it->second;
  }
  /// Slots of messages that have bytes of what a call takes besides.
  llvm::ArrayRef<SlotKey> getOverwritten(mlir::Operation *call) const {
    auto it = overwritten.find(call);
    return it == overwritten.end() ? llvm::ArrayRef<SlotKey>() : it->second;
  }

private:
  /// The place of a ring in the arena, and the first slot that says so.
  struct Place {
    pipeline::SlotOp slot;
    int64_t at = 0, stride = 0, ring = 1, bytes = 0;
    bool isVariable = false;
  };
  struct Interval {
    int64_t begin = 0, end = 0;
    mlir::Operation *op = nullptr;
    /// The place whose slot it is; none for temporaries and the library.
    Place *place = nullptr;
    int64_t index = 0;
    size_t order = 0;
  };

  mlir::LogicalResult addPlace(pipeline::SlotOp slot, int64_t stride,
                               int64_t bytes);
  mlir::LogicalResult addScratch(pipeline::ScratchOp scratch);
  mlir::FailureOr<const KernelMemory *> getKernel(mlir::func::CallOp call);
  void addOverwritten(mlir::Operation *call, int64_t begin, int64_t end);
  std::vector<Interval> getIntervals();
  bool areInUse(const Interval &first, const Interval &second);
  mlir::LogicalResult collectUses();

  mlir::ModuleOp root, module;
  pipeline::ArenaOp arena;
  llvm::SmallVector<mlir::func::FuncOp> functions;
  llvm::MapVector<std::pair<mlir::StringAttr, int64_t>, Place> places;
  llvm::SmallVector<pipeline::ScratchOp> scratches;
  std::map<SlotKey, llvm::SmallVector<SlotKey>> neighbours;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<SlotKey>> overwritten;
  llvm::DenseMap<mlir::Operation *, KernelMemory> kernels;

  /// Found when the first two intervals meet.
  bool hasUses = false;
  std::vector<DeviceLives> schedules;
  llvm::MapVector<Place *, RingUse> uses;
  /// By event, the calls.
  std::vector<mlir::Operation *> calls;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_ARENAMAP_H
