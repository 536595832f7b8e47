//===- GemmTable.h - The library products of a program ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The descriptors that the runtime prepares, and the number of each op's.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_GEMMTABLE_H
#define PENSTOCK_PASSES_RUNTIME_GEMMTABLE_H

#include "dialects/Kernel/Kernel.h"
#include "passes/Runtime/ScratchPlaces.h"
#include "penstock/Target/Target.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace penstock {

/// Distinct library products of each device. Programs share kernels, and so
/// their numbers.
class GemmTable {
public:
  explicit GemmTable(const ScratchPlaces &places) : places(places) {}

  /// Adds a product that a device runs; no device: one in a kernel that nothing
  /// calls.
  void add(kernel::GemmOp gemm, const CallDescriptor &descriptor,
           std::optional<int64_t> device);
  uint32_t getIndex(kernel::GemmOp gemm) const { return numbers.at(gemm); }
  /// Adds the call that packs weights, on any device: at updates, and at the
  /// start.
  void add(kernel::PackingAttrInterface order,
           const CallDescriptor &descriptor);
  bool contains(kernel::PackingAttrInterface order) const {
    return products.contains(keyOf(order));
  }
  uint32_t getIndex(kernel::PackingAttrInterface order) const {
    return products.find(keyOf(order)) - products.begin();
  }
  /// The replay runs all products on its one device.
  std::vector<Constant> getTable(ConstantBuilder &constants,
                                 std::optional<int64_t> device) const;

private:
  struct Product {
    CallDescriptor descriptor;
    ScratchPlace scratch;
    int64_t device = 0;
    bool shared = false;
  };
  /// All that tells products apart; the ops are gone when the table is made.
  static mlir::ArrayAttr getKey(kernel::GemmOp gemm, int64_t device,
                                const ScratchPlace &scratch);
  static mlir::ArrayAttr keyOf(kernel::PackingAttrInterface order) {
    return mlir::ArrayAttr::get(order.getContext(), {order});
  }
  const ScratchPlaces &places;
  llvm::MapVector<mlir::ArrayAttr, Product> products;
  llvm::DenseMap<mlir::Operation *, uint32_t> numbers;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_GEMMTABLE_H
