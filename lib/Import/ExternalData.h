//===- ExternalData.h - Weights beside the model ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the file and byte range of an initializer whose values are not in the
// model file. A model may come from anywhere: it must not make us read outside
// of its own folder.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_EXTERNALDATA_H
#define PENSTOCK_LIB_IMPORT_EXTERNALDATA_H

#include "WireFormat.h"

namespace penstock::onnx {

struct ExternalRange {
  /// The folder of the model, as given, and the relative path in the model.
  std::string file;
  uint64_t offset = 0;
  uint64_t length = 0;
};

/// Checks and resolves the external data of `tensor`, which must have
/// `expectedBytes`. `modelPath` is the model file.
llvm::Expected<ExternalRange> resolveExternalData(const TensorRecord &tensor,
                                                  llvm::StringRef modelPath,
                                                  uint64_t expectedBytes);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_EXTERNALDATA_H
