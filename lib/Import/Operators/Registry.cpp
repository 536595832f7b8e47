//===- Registry.cpp - The table of ONNX operators -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the table together and answers questions to it; see
// OperatorRegistry.h.
//===----------------------------------------------------------------------===//

#include "penstock/Import/OperatorRegistry.h"

#include "OperatorTable.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

using namespace mlir;
using namespace penstock::onnx;

//===--- The table ---===//

static auto getKey(const Operator &entry) {
  return std::tuple(entry.domain, entry.type, entry.since);
}

static void sort(OperatorTable &table) {
  llvm::sort(table.entries, [](const Operator &a, const Operator &b) {
    return getKey(a) < getKey(b);
  });
}

static OperatorTable &getTable() {
  static OperatorTable table = [] {
    OperatorTable table;
#define PENSTOCK_OPERATORS(family) add##family(table);
#include "Operators.def"
    sort(table);
    return table;
  }();
  return table;
}

ArrayRef<Operator> penstock::onnx::getOperators() { return getTable().entries; }

void penstock::onnx::addOperators(void (*add)(OperatorTable &table)) {
  add(getTable());
  sort(getTable());
}

const Operator *penstock::onnx::lookupOperator(StringRef domain, StringRef type,
                                               int64_t opset) {
  domain = normalizeDomain(domain);
  ArrayRef<Operator> entries = getOperators();
  const Operator *next =
      llvm::upper_bound(entries, std::tuple(domain, type, opset),
                        [](const auto &key, const Operator &entry) {
                          return key < getKey(entry);
                        });
  if (next == entries.begin())
    return nullptr;
  const Operator *entry = std::prev(next);
  return entry->domain == domain && entry->type == type ? entry : nullptr;
}

const Operator *penstock::onnx::lookupOperator(NodeOp node) {
  const Operator *entry = lookupOperator(node.getDomainName(), node.getOpType(),
                                         static_cast<int64_t>(node.getSince()));
  bool exact = entry && entry->since == static_cast<int64_t>(node.getSince());
  return exact ? entry : nullptr;
}

Type penstock::onnx::getElementType(MLIRContext *context, int64_t dataType) {
  Builder builder(context);
  auto unsignedType = [&](unsigned width) {
    return IntegerType::get(context, width, IntegerType::Unsigned);
  };
  switch (dataType) { // TensorProto.DataType
  case 1:
    return builder.getF32Type();
  case 2:
    return unsignedType(8);
  case 3:
    return builder.getIntegerType(8);
  case 4:
    return unsignedType(16);
  case 5:
    return builder.getIntegerType(16);
  case 6:
    return builder.getI32Type();
  case 7:
    return builder.getI64Type();
  case 9:
    return builder.getI1Type();
  case 10:
    return builder.getF16Type();
  case 11:
    return builder.getF64Type();
  case 12:
    return unsignedType(32);
  case 13:
    return unsignedType(64);
  case 16:
    return builder.getBF16Type();
  default:
    return Type();
  }
}

//===--- Names and errors ---===//

/// The first name in a location, or "".
static StringRef findName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = findName(part); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return findName(call.getCallee());
  return "";
}

std::string penstock::onnx::getNodeName(NodeOp node) {
  if (StringRef name = findName(node.getLoc()); !name.empty())
    return name.str();
  unsigned position = 0;
  for (auto other : node->getBlock()->getOps<NodeOp>()) {
    if (other == node)
      break;
    ++position;
  }
  return (node.getOpType() + "#" + Twine(position)).str();
}

/// "com.microsoft.Gelu, since-version 1".
static std::string describe(NodeOp node) {
  std::string text = node.getDomainName().str();
  if (!text.empty())
    text += ".";
  return text + node.getOpType().str() + ", since-version " +
         std::to_string(node.getSince());
}

InFlightDiagnostic penstock::onnx::emitNodeError(NodeOp node) {
  return mlir::emitError(node.getLoc())
         << "node '" << getNodeName(node) << "' (" << describe(node) << "): ";
}

//===--- Inference and folding ---===//

static LogicalResult emitUnknown(NodeOp node) {
  return emitNodeError(node)
         << "this operator is not supported; rewrite it with operators that "
            "are, or cut it out of the model";
}

FailureOr<SmallVector<Type>> penstock::onnx::computeResultTypes(NodeOp node) {
  const Operator *entry = lookupOperator(node);
  if (!entry)
    return emitUnknown(node);
  NodeBinder binder(node);
  NodeOutputs<Type> types = entry->infer(binder);
  if (succeeded(types) && types->size() != node.getNumResults())
    return emitNodeError(node)
           << "has " << node.getNumResults() << " outputs; the operator has "
           << types->size();
  return types;
}

std::optional<Operator::Range> penstock::onnx::getOperandRange(NodeOp node,
                                                               unsigned i) {
  const Operator *entry = lookupOperator(node);
  if (!entry || !entry->range)
    return std::nullopt;
  NodeBinder binder(node);
  return entry->range(binder, i);
}

LogicalResult penstock::onnx::inferResultTypes(NodeOp node) {
  FailureOr<SmallVector<Type>> types = computeResultTypes(node);
  if (failed(types))
    return failure();
  for (auto [result, type] : llvm::zip_equal(node.getOutputs(), *types))
    result.setType(type);
  return success();
}

LogicalResult penstock::onnx::foldNode(
    NodeOp node, SmallVectorImpl<DenseElementsAttr> &values, int64_t limit) {
  values.clear();
  const Operator *entry = lookupOperator(node);
  if (!entry || !entry->fold)
    return success();
  for (Value result : node.getOutputs()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || !type.hasStaticShape() || type.getNumElements() > limit)
      return success();
  }
  NodeBinder binder(node);
  NodeOutputs<DenseElementsAttr> folded = entry->fold(binder);
  if (succeeded(folded))
    llvm::append_range(values, *folded);
  return success(succeeded(folded));
}

LogicalResult penstock::onnx::lowerNode(NodeOp node, OpBuilder &builder,
                                        SmallVectorImpl<Value> &values) {
  FailureOr<SmallVector<Type>> types = computeResultTypes(node);
  if (failed(types))
    return failure();
  for (auto [given, computed] : llvm::zip_equal(node.getResultTypes(), *types))
    if (given != computed)
      return emitNodeError(node)
             << "has type " << given << ", but " << computed
             << " follows from its operands; run onnx-resolve-shapes first";

  Emitter emitter(builder, node.getLoc());
  SmallVector<DenseElementsAttr> constants;
  if (failed(foldNode(node, constants)))
    return failure();
  for (DenseElementsAttr constant : constants)
    values.push_back(emitter.constant(constant));
  if (!constants.empty())
    return success();

  // The entry names the operands, for its errors, when it infers.
  const Operator *entry = lookupOperator(node);
  NodeBinder binder(node);
  if (failed(entry->infer(binder)))
    return failure();
  NodeOutputs<Value> lowered = entry->lower(binder, emitter);
  if (succeeded(lowered))
    llvm::append_range(values, *lowered);
  return success(succeeded(lowered));
}

DenseElementsAttr penstock::onnx::getConstant(Value value) {
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return isa<RankedTensorType>(constant.getType()) ? constant
                                                     : DenseElementsAttr();
  auto node = value.getDefiningOp<NodeOp>();
  if (!node || node.getOpType() != "Constant")
    return {};
  // A faulty one is reported when its own types are inferred.
  ScopedDiagnosticHandler silent(node.getContext(),
                                 [](Diagnostic &) { return success(); });
  const Operator *entry = lookupOperator(node);
  NodeBinder binder(node);
  if (!entry)
    return {};
  NodeOutputs<DenseElementsAttr> values = entry->fold(binder);
  return succeeded(values) ? values->front() : DenseElementsAttr();
}

//===--- Unsupported nodes ---===//

bool UnsupportedNodes::addIfUnknown(NodeOp node) {
  if (lookupOperator(node))
    return false;
  add(node);
  return true;
}

void UnsupportedNodes::add(NodeOp node) {
  std::string type = describe(node);
  auto *group = llvm::find_if(
      nodes, [&](const auto &entry) { return entry.first == type; });
  if (group == nodes.end()) {
    nodes.push_back({type, {}});
    group = std::prev(nodes.end());
  }
  group->second.push_back(getNodeName(node));
}

LogicalResult UnsupportedNodes::report(Location loc) const {
  if (nodes.empty())
    return success();
  size_t count = 0;
  for (const auto &[type, names] : nodes)
    count += names.size();
  InFlightDiagnostic error = mlir::emitError(loc);
  error << (count == 1 ? "1 node is" : Twine(count) + " nodes are")
        << " not supported:";
  bool first = true;
  for (const auto &[type, names] : nodes) {
    error << (first ? " " : "; ") << names.size() << " x " << type << " (";
    llvm::interleave(
        names, [&](const std::string &name) { error << "'" << name << "'"; },
        [&] { error << ", "; });
    error << ")";
    first = false;
  }
  return error << "; rewrite them with supported operators, or cut them out of "
                  "the model";
}
