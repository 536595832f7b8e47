//===- Loops.cpp - Loops whose number of runs is known --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run is a copy of the body in which the number of the run is a constant, so
// that a condition which counts folds before the next run is copied.
//===----------------------------------------------------------------------===//

#include "Loops.h"

#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {

class Unroller {
public:
  Unroller(LoopOp loop,
           llvm::function_ref<LogicalResult(Operation *)> resolveOp,
           ResolveNodeFn resolveNode)
      : loop(loop), resolveOp(resolveOp), resolveNode(resolveNode),
        builder(loop), name(nameOf(loop.getLoc()).str()),
        condition(loop.getInputs()[1]), carried(loop.getInputs().drop_front(2)),
        scanned(loop.getScanAxes().size()) {}

  LogicalResult unroll();

private:
  static StringRef nameOf(Location loc) {
    auto named = dyn_cast<NameLoc>(loc);
    return named ? named.getName().getValue() : StringRef("?");
  }
  InFlightDiagnostic emitError() {
    return mlir::emitError(loop.getLoc()) << "node '" << name << "' (Loop): ";
  }
  template <typename T> Value emitScalar(T value) {
    auto type =
        RankedTensorType::get({}, builder.getIntegerType(8 * sizeof(T)));
    return arith::ConstantOp::create(builder, loop.getLoc(),
                                     DenseElementsAttr::get(type, value));
  }
  /// The number of runs, or nothing where it is left open.
  LogicalResult findTripCount();
  /// Whether the condition lets another run begin.
  FailureOr<bool> goesOn();
  LogicalResult copyRun(int64_t run);
  /// Names of the body's ops say in which run they are.
  Location rename(Location loc, int64_t run);
  /// What the runs gave to scan output `i`, as one tensor; null after an error.
  Value join(unsigned i);

  LoopOp loop;
  llvm::function_ref<LogicalResult(Operation *)> resolveOp;
  ResolveNodeFn resolveNode;
  OpBuilder builder;
  std::string name;
  std::optional<int64_t> tripCount;
  Value condition;
  SmallVector<Value> carried;
  /// Per scan output, what each run gave.
  SmallVector<SmallVector<Value>> scanned;
};

} // namespace

LogicalResult Unroller::findTripCount() {
  Value count = loop.getInputs()[0];
  if (isa<NoneType>(count.getType()))
    return success();
  DenseElementsAttr constant = getConstant(count);
  if (!constant || constant.getNumElements() != 1 ||
      !constant.getElementType().isSignlessInteger(64))
    return emitError()
           << "the number of its runs must be a constant when the model is "
              "compiled; bind every symbolic dimension that it is computed "
              "from, or export the model with the loop unrolled";
  tripCount = (*constant.getValues<APInt>().begin()).getSExtValue();
  return success();
}

FailureOr<bool> Unroller::goesOn() {
  // Without a first condition, those of the body do not count.
  if (isa<NoneType>(loop.getInputs()[1].getType()))
    return true;
  DenseElementsAttr constant = getConstant(condition);
  if (!constant || constant.getNumElements() != 1 ||
      !constant.getElementType().isInteger(1))
    return emitError() << "whether it goes on is computed from data; the "
                          "number of its runs "
                          "must be known when the model is compiled";
  return *constant.getValues<bool>().begin();
}

Location Unroller::rename(Location loc, int64_t run) {
  if (auto named = dyn_cast<NameLoc>(loc)) {
    StringRef rest = named.getName().getValue();
    std::string text = rest.consume_front(name + "/")
                           ? (name + "/" + Twine(run) + "/" + rest).str()
                           : (rest + "/" + Twine(run)).str();
    return NameLoc::get(builder.getStringAttr(text),
                        rename(named.getChildLoc(), run));
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    return builder.getFusedLoc(
        llvm::map_to_vector(fused.getLocations(),
                            [&](Location part) { return rename(part, run); }));
  return loc;
}

LogicalResult Unroller::copyRun(int64_t run) {
  // 1. The copies. The terminator keeps hold of what the run gives.
  Block &body = loop.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArgument(0), emitScalar<int64_t>(run));
  if (isa<NoneType>(condition.getType())) {
    auto type = RankedTensorType::get({}, builder.getI1Type());
    condition = arith::ConstantOp::create(builder, loop.getLoc(),
                                          DenseElementsAttr::get(type, true));
  }
  mapping.map(body.getArgument(1), condition);
  mapping.map(body.getArguments().drop_front(2), carried);
  SmallVector<Operation *> copies;
  for (Operation &op : body) {
    copies.push_back(builder.clone(op, mapping));
    copies.back()->walk(
        [&](Operation *inner) { inner->setLoc(rename(inner->getLoc(), run)); });
  }
  Operation *yield = copies.pop_back_val();

  // 2. Their types and constants. An op may be gone afterwards.
  for (Operation *op : copies)
    if (failed(resolveOp(op)))
      return failure();
  ValueRange values = yield->getOperands();
  condition = values.front();
  carried.assign(values.begin() + 1, values.begin() + 1 + carried.size());
  for (auto [all, value] :
       llvm::zip_equal(scanned, values.take_back(scanned.size())))
    all.push_back(value);
  yield->erase();
  return success();
}

Value Unroller::join(unsigned i) {
  bool reversed = loop.getScanReversed()[i];
  int64_t axis = loop.getScanAxes()[i];
  if (scanned[i].empty()) {
    emitError() << "it never runs, and what it would give has no shape";
    return nullptr;
  }
  SmallVector<Value> parts;
  Value axes = emitIntegers(builder, loop.getLoc(), axis);
  for (Value part : scanned[i]) {
    parts.push_back(emitResolved(builder, loop.getLoc(), "Unsqueeze",
                                 {part, axes}, DictionaryAttr(), resolveNode));
    if (!parts.back())
      return nullptr;
  }
  if (reversed)
    std::reverse(parts.begin(), parts.end());
  NamedAttribute param =
      builder.getNamedAttr("axis", builder.getI64IntegerAttr(axis));
  return emitResolved(builder, loop.getLoc(), "Concat", parts,
                      builder.getDictionaryAttr(param), resolveNode);
}

LogicalResult Unroller::unroll() {
  // More are a program that no one wants to compile.
  constexpr int64_t kMostRuns = 4096;
  if (failed(findTripCount()))
    return failure();
  if (!tripCount && isa<NoneType>(condition.getType()))
    return emitError() << "it has neither a number of runs nor a condition";
  for (int64_t run = 0; !tripCount || run < *tripCount; ++run) {
    FailureOr<bool> more = goesOn();
    if (failed(more))
      return failure();
    if (!*more)
      break;
    if (run == kMostRuns)
      return emitError() << "it runs more than " << kMostRuns
                         << " times, and would be unrolled; bind smaller "
                            "dimensions";
    if (failed(copyRun(run)))
      return failure();
  }
  for (auto [i, output] : llvm::enumerate(loop.getOutputs())) {
    Value value;
    if (i < carried.size())
      value = carried[i];
    else if (output.use_empty())
      continue;
    else
      value = join(i - carried.size());
    if (!value)
      return failure();
    output.replaceAllUsesWith(value);
  }
  loop.erase();
  return success();
}

LogicalResult
penstock::unrollLoop(LoopOp loop,
                     llvm::function_ref<LogicalResult(Operation *)> resolveOp,
                     ResolveNodeFn resolveNode) {
  return Unroller(loop, resolveOp, resolveNode).unroll();
}
