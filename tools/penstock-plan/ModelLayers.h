//===- ModelLayers.h - The layers of an ONNX model --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A profile made from a model: one layer per ONNX node that computes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_PLAN_MODELLAYERS_H
#define PENSTOCK_TOOLS_PENSTOCK_PLAN_MODELLAYERS_H

#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Import/Import.h"
#include "penstock/Planner/LayerGraph.h"

namespace penstock {

/// Nothing, and one line on stderr, when the model cannot be read. With
/// `profile` costs are measured, which needs a loss; else they are reckoned by
/// `rates`, where there are some.
std::optional<LayerGraph> loadModelLayers(llvm::StringRef path,
                                          const ImportOptions &options,
                                          llvm::StringRef loss, bool profile,
                                          std::optional<MachineRates> rates);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PENSTOCK_PLAN_MODELLAYERS_H
