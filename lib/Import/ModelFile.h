//===- ModelFile.h - An ONNX file, read -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph as protobuf messages, and the initializers as byte ranges of files
// that stay mapped.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_MODELFILE_H
#define PENSTOCK_LIB_IMPORT_MODELFILE_H

#include "FoldedTensors.h"
#include "Proto.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <memory>

namespace penstock::onnx {

/// Values of an initializer, in a file.
struct ByteRange {
  std::string file;
  uint64_t offset = 0;
  llvm::StringRef bytes;
};

class ModelFile {
public:
  /// Opens the model at `path`. One whose weights have no bytes in the file is
  /// written to `binaryCopy` first, and read from there.
  static llvm::Expected<std::unique_ptr<ModelFile>>
  open(llvm::StringRef path, llvm::StringRef binaryCopy);

  const ::onnx::ModelProto &getModel() const { return model; }
  llvm::ArrayRef<TensorRecord> getInitializers() const {
    return record.initializers;
  }
  /// Names of what the exporter marks as a buffer or constant.
  llvm::ArrayRef<std::string> getBuffers() const { return record.buffers; }
  /// Names of what it marks as a parameter.
  llvm::ArrayRef<std::string> getParameters() const {
    return record.parameters;
  }
  /// Returns the tensors that it computed of parameters or constants.
  std::vector<FoldedTensor> getFolded() const { return findFolded(record); }
  /// Names of nodes into whose weights it computed a batch norm.
  llvm::ArrayRef<std::string> getFoldedNorms() const {
    return record.foldedNorms;
  }
  bool hasSparseInitializers() const { return record.hasSparseInitializers; }

  /// The file that the byte ranges refer to: the model, or its binary copy.
  llvm::StringRef getPath() const { return path; }
  uint64_t getSize() const { return buffer->getBufferSize(); }
  /// The files of external data that getBytes() has read, in order.
  auto getExternalFiles() const {
    return llvm::make_first_range(externalFiles);
  }

  /// Where the values of an initializer are. Its type has been checked to need
  /// `expectedBytes`.
  llvm::Expected<ByteRange> getBytes(const TensorRecord &tensor,
                                     uint64_t expectedBytes);
  /// Forgets what was read of the files; they are read again where needed. The
  /// memory of the compiler does not grow with the weights.
  void giveBackPages();
  /// The message of an initializer that must be decoded.
  llvm::Expected<::onnx::TensorProto> decode(const TensorRecord &tensor) const;

private:
  llvm::Error read(llvm::StringRef binaryCopy);
  llvm::Error adopt(std::unique_ptr<llvm::MemoryBuffer> bytes);
  llvm::Error copyTo(llvm::StringRef copy, ::onnx::ModelProto &whole);

  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  ModelRecord record;
  ::onnx::ModelProto model;
  std::map<std::string, std::unique_ptr<llvm::MemoryBuffer>> externalFiles;
};

/// The type of a tensor of the model; an error names what is wrong with it.
llvm::Expected<mlir::RankedTensorType>
getTensorType(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> dims,
              int64_t dataType);

/// The values of a tensor, from bytes as ONNX lays them out.
mlir::DenseElementsAttr getElements(mlir::RankedTensorType type,
                                    llvm::StringRef bytes);
/// The values of a tensor message that holds them itself.
llvm::Expected<mlir::DenseElementsAttr>
getElements(mlir::MLIRContext *context, const ::onnx::TensorProto &tensor);

/// Returns true if the float values `bytes` are all finite.
bool allFinite(mlir::FloatType type, llvm::StringRef bytes);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_MODELFILE_H
