//===- FoldedTensors.h - What an exporter computed of weights ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The optimizer of PyTorch's newer exporter computes what depends on no input,
// and notes what from: of a module's parameters, or of constants only.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_FOLDEDTENSORS_H
#define PENSTOCK_LIB_IMPORT_FOLDEDTENSORS_H

#include "WireFormat.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace penstock::onnx {

/// A tensor that the exporter computed.
struct FoldedTensor {
  std::string name;
  /// The parameters of the module that it comes from, in the file or not.
  std::vector<std::string> parameters;
};

/// Nothing for files that do not say which tensors are parameters.
std::vector<FoldedTensor> findFolded(const ModelRecord &model);

/// The order of axes in which a tensor of this shape, whose bytes are `source`,
/// has `bytes`. Nothing if none has, or several, as of zeros or a symmetric
/// matrix: then the values do not say which of the elements is which. Nothing,
/// too, of more than six axes.
std::optional<llvm::SmallVector<int64_t>>
findOrder(llvm::StringRef source, llvm::ArrayRef<int64_t> shape,
          llvm::StringRef bytes);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_FOLDEDTENSORS_H
