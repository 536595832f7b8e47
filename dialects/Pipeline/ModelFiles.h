//===- ModelFiles.h - The files of a model ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that is saved writes all files of the model, also those that hold
// nothing that trains.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_MODELFILES_H
#define PENSTOCK_DIALECTS_PIPELINE_MODELFILES_H

#include "llvm/ADT/StringRef.h"

namespace penstock::pipeline {

/// ["f.data"], on the module: the files of external data of the model.
inline constexpr llvm::StringLiteral kExternalDataAttr =
    "pipeline.external_data";

} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_MODELFILES_H
