//===- CallTable.h - Library calls of one kind ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The products or the convolutions of a program, replay included. Equal calls
// of one device that have their scratch in one place are one descriptor.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_CALLTABLE_H
#define PENSTOCK_PASSES_RUNTIME_CALLTABLE_H

#include "dialects/Kernel/Kernel.h"
#include "passes/Runtime/ScratchPlaces.h"
#include "penstock/Target/Target.h"

#include "llvm/ADT/MapVector.h"

#include <optional>
#include <vector>

namespace penstock {

class CallTable {
public:
  explicit CallTable(const ScratchPlaces &places) : places(places) {}

  /// Adds a call that a device runs; no device: one in a kernel that nothing
  /// calls.
  void add(kernel::LibraryCallOpInterface call,
           const CallDescriptor &descriptor, std::optional<int64_t> device);
  /// Adds the call that packs weights, on any device: at updates, and at the
  /// start.
  void add(kernel::PackingAttrInterface order,
           const CallDescriptor &descriptor);

  uint32_t getIndex(mlir::Operation *call) const { return numbers.at(call); }
  uint32_t getIndex(kernel::PackingAttrInterface order) const {
    return calls.find(keyOf(order)) - calls.begin();
  }
  bool contains(kernel::PackingAttrInterface order) const {
    return calls.contains(keyOf(order));
  }
  int64_t size() const { return static_cast<int64_t>(calls.size()); }
  /// Returns the descriptors; the replay runs all calls on its one device.
  std::vector<Constant> getTable(ConstantBuilder &constants,
                                 std::optional<int64_t> device) const;

private:
  struct Call {
    CallDescriptor descriptor;
    ScratchPlace scratch;
    int64_t device = 0;
    bool shared = false;
  };
  static mlir::ArrayAttr keyOf(kernel::PackingAttrInterface order) {
    return mlir::ArrayAttr::get(order.getContext(), {order});
  }
  static int64_t getDevice(const Call &call, std::optional<int64_t> replay);

  const ScratchPlaces &places;
  llvm::MapVector<mlir::ArrayAttr, Call> calls;
  llvm::DenseMap<mlir::Operation *, uint32_t> numbers;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_CALLTABLE_H
