//===- Importer.h - From an ONNX file to a module ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the steps of an import share.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_IMPORTER_H
#define PENSTOCK_LIB_IMPORT_IMPORTER_H

#include "GraphImporter.h"
#include "ModelFile.h"
#include "OperandRoles.h"

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <memory>
#include <optional>

namespace penstock::onnx {

/// A float initializer that is an argument of the function.
struct Weight {
  const TensorRecord *tensor;
  mlir::RankedTensorType type;
  ByteRange range;
  bool frozen;
  pipeline::Role role;
  /// Others that are the same parameter (--tie, folded copies), and those that
  /// are a transpose of it, whose axes are the parameter's in `order`.
  struct Tied {
    llvm::StringRef name;
    ByteRange range;
    llvm::SmallVector<int64_t> order = {};
  };
  llvm::SmallVector<Tied> tied = {};
  bool noDecay = false;
  std::optional<double> rateScale = std::nullopt;
};

/// Imports one model.
class Importer {
public:
  Importer(mlir::MLIRContext *context, llvm::StringRef path,
           const ImportOptions &options)
      : path(path), options(options), builder(context),
        loc(builder.getUnknownLoc()) {}

  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  mlir::LogicalResult importInputs(GraphImporter &graph);
  mlir::LogicalResult importInitializers(GraphImporter &graph);
  mlir::LogicalResult importInitializer(GraphImporter &graph,
                                        const TensorRecord &tensor);
  mlir::FailureOr<bool> isFrozen(const TensorRecord &tensor,
                                 mlir::RankedTensorType type,
                                 const ByteRange &range);
  Weight *findWeight(llvm::StringRef name);
  void redefineAsOrdered(GraphImporter &graph, Weight &source,
                         const Weight &folded, llvm::ArrayRef<int64_t> order);
  mlir::LogicalResult unfoldInitializers(GraphImporter &graph);
  mlir::LogicalResult tieInitializers(GraphImporter &graph);
  void warnIfUnmatched(llvm::StringRef flag, llvm::StringRef pattern);
  void warnOfMerged();
  mlir::LogicalResult assignGroups();
  void warnOfHeldScalars();
  mlir::LogicalResult checkFoldedNorms();
  mlir::LogicalResult importOutputs(GraphImporter &graph);
  void noteUnreached(const Weight &weight);
  void dropDeadCode();
  mlir::LogicalResult bindArguments();
  mlir::LogicalResult buildProgram(mlir::ModuleOp module);
  mlir::StringAttr makeSymbol(llvm::StringRef wanted);
  mlir::InFlightDiagnostic error(const llvm::Twine &message) {
    return mlir::emitError(loc) << message;
  }

  llvm::StringRef path;
  const ImportOptions &options;
  mlir::OpBuilder builder;
  mlir::Location loc;
  std::unique_ptr<ModelFile> file;
  mlir::func::FuncOp function;
  /// The inputs; with the weights behind them, they are indexed by block
  /// argument.
  llvm::SmallVector<const ::onnx::ValueInfoProto *> inputs;
  llvm::SmallVector<Weight> weights;
  llvm::SmallVector<llvm::StringRef> outputs, unusedInputs;
  /// Initializers that would train if the outputs needed them.
  llvm::SmallVector<llvm::StringRef> unreached;
  /// Float initializers that became constants.
  llvm::MapVector<mlir::Operation *, mlir::Attribute> constants;
  llvm::StringSet<> initializerNames;
  /// The roles of initializers that are no weights.
  std::optional<OperandRoles> roles;
  /// Initializers that the exporter marks as no parameters, or computed of
  /// such.
  llvm::StringSet<> buffers;
  /// Initializers that it marks as parameters.
  llvm::StringSet<> parameters;
  llvm::StringSet<> symbols;
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_IMPORTER_H
