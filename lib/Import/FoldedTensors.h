//===- FoldedTensors.h - What an exporter computed of weights ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The optimiser of PyTorch's newer exporter computes what depends on no input,
// and notes what from: of a module's parameters, or of constants only.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_FOLDEDTENSORS_H
#define PENSTOCK_LIB_IMPORT_FOLDEDTENSORS_H

#include "WireFormat.h"

namespace penstock::onnx {

/// A tensor that the exporter computed.
struct FoldedTensor {
  std::string name;
  /// The parameters of the module that it comes from, in the file or not.
  std::vector<std::string> parameters;
};

/// Nothing for files that do not say which tensors are parameters.
std::vector<FoldedTensor> findFolded(const ModelRecord &model);

/// Whether some transpose of a tensor has its bytes in the same order, as that
/// of zeros has: then these do not say which of its elements is which. True,
/// too, of more than six axes.
bool equalsTranspose(llvm::StringRef bytes, llvm::ArrayRef<int64_t> shape);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_FOLDEDTENSORS_H
