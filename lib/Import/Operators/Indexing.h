//===- Indexing.h - Gathers that several operators emit ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that take elements at computed or constant positions.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_INDEXING_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_INDEXING_H

#include "Emitter.h"

namespace penstock::onnx {

/// data[i0, .., indices[i0, .., in], .., in], the index at `axis`.
mlir::Value emitGatherElements(Emitter &emitter, mlir::Value data,
                               mlir::Value indices, int64_t axis);

/// The slices of `data` at the constant positions of `axis`, in their order.
mlir::Value emitTake(Emitter &emitter, mlir::Value data, int64_t axis,
                     llvm::ArrayRef<int64_t> positions);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_INDEXING_H
