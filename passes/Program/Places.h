//===- Places.h - Slots that are no progression -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An attribute of pipeline.slot: the place of each slot of its ring, where `at`
// and `stride` cannot say it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_PLACES_H
#define PENSTOCK_PASSES_PROGRAM_PLACES_H

#include "dialects/Pipeline/Pipeline.h"

namespace penstock {

inline constexpr llvm::StringLiteral kPlacesAttr = "pipeline.places";

/// Where slot `index` of the ring is, of a slot that has its place.
inline int64_t getPlace(pipeline::SlotOp slot, int64_t index) {
  if (auto places = slot->getAttrOfType<mlir::DenseI64ArrayAttr>(kPlacesAttr);
      places && index < places.size())
    return places[index];
  return static_cast<int64_t>(slot.getAt().value_or(0)) +
         index * static_cast<int64_t>(slot.getStride().value_or(0));
}

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_PLACES_H
