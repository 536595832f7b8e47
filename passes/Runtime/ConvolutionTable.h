//===- ConvolutionTable.h - The convolutions of a program -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The descriptors that the runtime prepares, and the number of each op's.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_CONVOLUTIONTABLE_H
#define PENSTOCK_PASSES_RUNTIME_CONVOLUTIONTABLE_H

#include "Constants.h"
#include "ScratchPlaces.h"
#include "dialects/Kernel/Kernel.h"
#include "penstock/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <vector>

namespace penstock {

/// Distinct library convolutions of each device. Programs share kernels, and so
/// their numbers.
class ConvolutionTable {
public:
  explicit ConvolutionTable(const ScratchPlaces &places) : places(places) {}

  /// Adds a convolution that a device runs; no device: one in a kernel that
  /// nothing calls.
  void add(kernel::ConvOp conv, const CallDescriptor &descriptor,
           std::optional<int64_t> device);
  uint32_t getIndex(kernel::ConvOp conv) const { return numbers.at(conv); }
  /// Adds the call that packs weights, on any device: at updates, and at the
  /// start.
  void add(kernel::PackingAttrInterface order,
           const CallDescriptor &descriptor);
  uint32_t getIndex(kernel::PackingAttrInterface order) const {
    return entries.find(keyOf(order)) - entries.begin();
  }
  int64_t size() const { return static_cast<int64_t>(entries.size()); }
  /// The replay runs all of them on its one device.
  std::vector<Constant> getTable(ConstantBuilder &constants,
                                 std::optional<int64_t> device) const;

private:
  struct Entry {
    CallDescriptor descriptor;
    ScratchPlace scratch;
    int64_t device = 0;
    bool shared = false;
  };
  static mlir::ArrayAttr keyOf(kernel::PackingAttrInterface order) {
    return mlir::ArrayAttr::get(order.getContext(), {order});
  }
  static int64_t getDevice(const Entry &entry, std::optional<int64_t> replay);

  const ScratchPlaces &places;
  llvm::MapVector<mlir::ArrayAttr, Entry> entries;
  llvm::DenseMap<mlir::Operation *, uint32_t> numbers;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_CONVOLUTIONTABLE_H
