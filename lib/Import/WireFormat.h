//===- WireFormat.h - Where the weights are in a model file -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A walk over the protobuf encoding of a model that finds the byte range of
// every initializer's values, and leaves the values where they are.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_WIREFORMAT_H
#define PENSTOCK_LIB_IMPORT_WIREFORMAT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace penstock::onnx {

/// An initializer, as the file describes it.
struct TensorRecord {
  std::string name;
  llvm::SmallVector<int64_t> dims;
  /// TensorProto.DataType.
  int64_t dataType = 0;

  /// True if the values are in another file, and the entries that say where.
  bool external = false;
  std::vector<std::pair<std::string, std::string>> externalData;

  /// True if the file holds the values as they are in memory, and where. An
  /// initializer without any values has the range 0, 0.
  bool hasBytes = false;
  uint64_t offset = 0;
  uint64_t length = 0;

  /// The range of the whole TensorProto message.
  uint64_t messageOffset = 0;
  uint64_t messageLength = 0;
};

/// A model file, taken apart.
struct ModelRecord {
  /// The model without its initializers: small, whatever the weights are.
  std::string skeleton;
  std::vector<TensorRecord> initializers;
  bool hasSparseInitializers = false;
  /// Names of inputs and initializers that the exporter says are buffers or
  /// constants, and no parameters. Only PyTorch's newer exporter says.
  std::vector<std::string> buffers;
  /// Names of what it says are parameters.
  std::vector<std::string> parameters;
  /// The program's inputs, as PyTorch's newer exporter prints them: which of
  /// them are parameters. Empty in other files.
  std::string signature;
  /// Names of what its optimizer computed, and the printed list of what from.
  std::vector<std::pair<std::string, std::string>> folded;
  /// The nodes of the main graph into whose weights its optimizer computed a
  /// batch norm, by name or else by operator.
  std::vector<std::string> foldedNorms;
};

/// Takes apart the encoded ModelProto `bytes`. The error says at which byte it
/// is not one.
llvm::Expected<ModelRecord> walkModel(llvm::StringRef bytes);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_WIREFORMAT_H
