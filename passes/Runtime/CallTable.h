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

  /// The two programs in a module. They share kernels.
  enum class Of { Program, Replay };

  /// Adds a call that a device runs; no device: one in a kernel that nothing
  /// calls. Those of the replay are there already.
  void add(kernel::LibraryCallOpInterface call,
           const CallDescriptor &descriptor, Of of,
           std::optional<int64_t> device);
  /// Adds the call that packs weights on a device: at updates, and at the
  /// start.
  void add(kernel::PackingAttrInterface order, const CallDescriptor &descriptor,
           Of of, std::optional<int64_t> device);

  uint32_t getIndex(mlir::Operation *call) const { return numbers.at(call); }
  uint32_t getIndex(kernel::PackingAttrInterface order) const {
    return calls.find(getPackingKey(order)) - calls.begin();
  }
  bool contains(kernel::PackingAttrInterface order) const {
    return calls.contains(getPackingKey(order));
  }
  int64_t size() const { return static_cast<int64_t>(calls.size()); }
  std::vector<Constant> getTable(ConstantBuilder &constants, Of of) const;

private:
  /// The devices that run a call: none, one, or several, as the field of a
  /// descriptor says it.
  struct Runners {
    void add(int64_t device);
    int64_t field = static_cast<int32_t>(PENSTOCK_NO_DEVICE);
  };
  struct Call {
    CallDescriptor descriptor;
    ScratchPlace scratch;
    Runners program, replay;

    Runners &get(Of of) { return of == Of::Program ? program : replay; }
  };
  static mlir::ArrayAttr getPackingKey(kernel::PackingAttrInterface order) {
    return mlir::ArrayAttr::get(order.getContext(), {order});
  }

  const ScratchPlaces &places;
  llvm::MapVector<mlir::ArrayAttr, Call> calls;
  llvm::DenseMap<mlir::Operation *, uint32_t> numbers;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_CALLTABLE_H
