//===- GemmTable.h - The library products of a program ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The descriptors that the runtime prepares, and the number of each op's.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_GEMMTABLE_H
#define PENSTOCK_PASSES_RUNTIME_GEMMTABLE_H

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Runtime/ScratchPlaces.h"
#include "penstock/abi.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace penstock {

/// Distinct library products of each device. Programs share kernels, and so
/// their numbers.
class GemmTable {
public:
  explicit GemmTable(const ScratchPlaces &places) : places(places) {}

  mlir::LogicalResult add(pipeline::GemmOp gemm, int64_t device);
  /// A product that no device runs, in a kernel that nothing calls.
  mlir::LogicalResult addUnused(pipeline::GemmOp gemm);
  uint32_t getIndex(pipeline::GemmOp gemm) const;
  /// What prepacks weights, on any device: at updates, and at the start.
  void add(pipeline::PanelsAttr panels);
  uint32_t getIndex(pipeline::PanelsAttr panels) const;
  /// The replay runs all products on its one device.
  std::vector<Constant> getTable(ConstantBuilder &constants,
                                 std::optional<int64_t> device) const;

private:
  struct Product {
    penstock_gemm_descriptor descriptor;
    ScratchPlace scratch;
    int64_t device = 0;
    bool shared = false;
  };
  /// All that tells products apart; the ops are gone when the table is made.
  static mlir::ArrayAttr getKey(pipeline::GemmOp gemm, int64_t device,
                                const ScratchPlace &scratch);
  const ScratchPlaces &places;
  llvm::MapVector<mlir::ArrayAttr, Product> products;
  llvm::DenseMap<mlir::Operation *, uint32_t> numbers;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_GEMMTABLE_H
