//===- ArenaMap.h - Which buffers of a device share bytes -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule S9: slots and temporaries of one device as intervals of its arena. Those
// that meet must never be in use at the same time.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_PROOF_ARENAMAP_H
#define PENSTOCK_PASSES_PROGRAM_PROOF_ARENAMAP_H

#include "passes/Program/Memory/KernelMemory.h"
#include "passes/Program/Memory/PlaceRings.h"

#include "llvm/ADT/MapVector.h"

namespace penstock {

/// A slot by schedule (none for variables), symbol, field and number in its
/// ring.
using SlotKey = std::tuple<mlir::Attribute, mlir::Attribute, int64_t, int64_t>;

class ArenaMap {
public:
  ArenaMap(mlir::ModuleOp root, mlir::ModuleOp module, pipeline::ArenaOp arena,
           mlir::SymbolTableCollection &symbols)
      : root(root), module(module), symbols(&symbols), arena(arena) {
    for (auto variable : module.getOps<pipeline::VariableOp>())
      variables.insert(variable.getSymNameAttr());
  }

  /// Takes in the slots of one of the device's functions. Fails, with a
  /// diagnostic, on one that has no place, or another than elsewhere.
  mlir::LogicalResult add(mlir::func::FuncOp function);
  /// To be called once all functions are there.
  void findShared();
  mlir::LogicalResult verify();

  /// Other slots of messages that have bytes of this one.
  llvm::ArrayRef<SlotKey> getNeighbors(const SlotKey &slot) const {
    auto it = neighbors.find(slot);
    return it == neighbors.end() ? llvm::ArrayRef<SlotKey>() : it->second;
  }
  /// Slots of messages that have bytes of what a call takes besides.
  llvm::ArrayRef<SlotKey> getOverwritten(mlir::Operation *call) const {
    auto it = overwritten.find(call);
    return it == overwritten.end() ? llvm::ArrayRef<SlotKey>() : it->second;
  }

private:
  /// The slots of a ring, as the one says that names most of them.
  struct Place {
    pipeline::SlotOp slot;
    int64_t ring = 1, bytes = 0;
    mlir::StringAttr schedule;
    bool isVariable = false;
  };
  struct Interval {
    int64_t begin = 0, end = 0;
    mlir::Operation *op = nullptr;
    /// The place whose slot it is; none for temporaries.
    Place *place = nullptr;
    int64_t index = 0;
    size_t order = 0;
  };

  mlir::LogicalResult addPlace(pipeline::SlotOp slot,
                               mlir::StringAttr schedule);
  mlir::LogicalResult addCall(mlir::func::CallOp call);
  mlir::FailureOr<const KernelMemory *> getKernel(mlir::func::CallOp call);
  void addOverwritten(mlir::Operation *call, mlir::StringAttr schedule,
                      int64_t begin, int64_t end);
  std::vector<Interval> getIntervals();
  bool areInUse(const Interval &first, const Interval &second);
  mlir::LogicalResult collectUses();

  mlir::ModuleOp root, module;
  mlir::SymbolTableCollection *symbols;
  pipeline::ArenaOp arena;
  llvm::DenseSet<mlir::StringAttr> variables;
  llvm::SmallVector<mlir::func::FuncOp> functions;
  llvm::MapVector<std::tuple<mlir::Attribute, mlir::StringAttr, int64_t>, Place>
      places;
  llvm::SmallVector<pipeline::ScratchOp> scratches;
  llvm::DenseMap<SlotKey, llvm::SmallVector<SlotKey>> neighbors;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<SlotKey>> overwritten;
  llvm::DenseMap<mlir::Operation *, KernelMemory> kernels;
  /// Offsets of temporaries, by kernel with library calls.
  llvm::StringMap<int64_t> libraryPlaces;

  /// Found when the first two intervals meet.
  bool hasUses = false;
  std::vector<DeviceLives> schedules;
  llvm::MapVector<Place *, RingUse> uses;
  /// Calls by event.
  std::vector<mlir::Operation *> calls;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_PROOF_ARENAMAP_H
