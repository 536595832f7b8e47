//===- Import.h - From an ONNX file to a module -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a binary or textual ONNX model into a module at level `onnx`: one
// stage, one forward task, one function of `onnx.node` ops. Weights stay in the
// file: variables refer to them by byte range. Result types of the nodes are
// unknown (`tensor<*xf32>`) until the pass `onnx-resolve-shapes` has run.
//
// Names: the location of a node is its ONNX name, with the names of its outputs
// as children: loc("fc1/MatMul"("h1")). A nameless node gets the name of its
// operator and its number in the graph, as in Relu_7. Nodes of an inlined
// function are CALL/NODE; the names of a call and of its outputs are further
// children at the nodes that compute these outputs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_IMPORT_IMPORT_H
#define PENSTOCK_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

struct ImportOptions {
  /// Sizes of symbolic dimensions. The key is the name of the dimension, or
  /// INPUT:AXIS.
  std::map<std::string, int64_t> dims;
  /// Size of the leading dimension of the inputs, where it is symbolic, or 1.
  std::optional<int64_t> microbatchSize;
  /// Keeps only the output that enters the loss: `lossInput`, which a model of
  /// one output need not say.
  /// Nodes that do not reach it are dropped. Otherwise all outputs are kept.
  bool onlyLossOutput = false;
  std::string lossInput;
  /// Regular expressions, searched in the names of float initializers: only
  /// these train (empty: all but scalars); these do not (empty: none).
  std::string trainRegex;
  std::string freezeRegex;
  /// Parameters without weight decay, and those whose learning rate is
  /// multiplied, in the same way.
  std::string noDecayRegex;
  std::vector<std::pair<std::string, double>> rateScales;
  /// Pairs of equal initializers; the second becomes the first.
  std::vector<std::pair<std::string, std::string>> ties;
  /// Batch norms that the exporter computed into the weights before them are no
  /// error in training.
  bool allowFolded = false;
  /// Where a binary copy of the model is written if its weights have no raw
  /// bytes in the file itself (textual models; float16 values stored as
  /// integers). Empty: such a model is an error.
  std::string binaryCopy;
};

/// Imports the model at `path`. Null, and an error diagnostic, on failure.
/// Loads the dialects it needs.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext *context,
                                              llvm::StringRef path,
                                              const ImportOptions &options);

/// Returns true if `path` names an ONNX model, by its extension: .onnx or
/// .onnxtext.
bool isModelPath(llvm::StringRef path);

/// Prints diagnostics as lines "FILE: message", "FILE: warning: message" or
/// "FILE: note: message". Locations are left out: the messages name the nodes.
class ModelDiagnosticHandler : public mlir::ScopedDiagnosticHandler {
public:
  ModelDiagnosticHandler(mlir::MLIRContext *context, llvm::StringRef file,
                         llvm::raw_ostream &stream = llvm::errs());
};

} // namespace penstock

#endif // PENSTOCK_IMPORT_IMPORT_H
