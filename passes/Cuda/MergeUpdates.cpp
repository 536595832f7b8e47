//===- MergeUpdates.cpp - Updates of many weights by one kernel -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model has dozens of weights, many of them so small that a launch takes
// longer than the kernel. Their updates differ in nothing but size and place,
// and touch nothing in common.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEMERGEUPDATES
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// A kernel takes at most 4 KiB of parameters, 8 bytes each.
constexpr size_t kMostParameters = 480;

/// A call of a function that is one elementwise op on whole buffers.
struct Update {
  func::CallOp call;
  func::FuncOp callee;
  linalg::GenericOp op;
  /// The variables whose slots it touches.
  llvm::StringSet<> variables;

  /// The caller's value for one of the function, or the function's constant.
  PointerUnion<Value, Attribute> resolve(Value value);
};

PointerUnion<Value, Attribute> Update::resolve(Value value) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant;
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == &callee.front())
    return call.getOperand(argument.getArgNumber());
  return value;
}

/// Returns whether the elements of all operands are updated one by one,
/// wherever they lie.
bool isElementwise(linalg::GenericOp op) {
  if (!op.hasPureBufferSemantics() || op.hasDynamicShape() ||
      op.getNumReductionLoops() || op.hasIndexSemantics())
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (type && (!type.getLayout().isIdentity() ||
                 !op.getMatchingIndexingMap(&operand).isIdentity() ||
                 !isa<BlockArgument>(operand.get())))
      return false;
  }
  WalkResult touchesMemory = op.getBody()->walk([](Operation *inner) {
    return isMemoryEffectFree(inner) ? WalkResult::advance()
                                     : WalkResult::interrupt();
  });
  return !touchesMemory.wasInterrupted();
}

std::optional<Update> getUpdate(Operation *op, SymbolTable &symbols,
                                StringRef kind) {
  Update update;
  update.call = dyn_cast<func::CallOp>(op);
  if (!update.call || update.call.getNumResults())
    return std::nullopt;
  update.callee = symbols.lookup<func::FuncOp>(update.call.getCallee());
  if (!update.callee || !isStageFunction(update.callee, kind) ||
      !llvm::hasSingleElement(update.callee.getBody()))
    return std::nullopt;
  auto target =
      dyn_cast_or_null<cuda::TargetAttr>(pipeline::getTarget(update.callee));
  if (target && target.getPlain())
    return std::nullopt;
  for (Operation &inner : update.callee.front().without_terminator()) {
    if (isPure(&inner) && inner.hasTrait<OpTrait::ConstantLike>())
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(inner);
    if (!generic || update.op || !isElementwise(generic))
      return std::nullopt;
    update.op = generic;
  }
  if (!update.op)
    return std::nullopt;
  for (Value value : update.call.getOperands()) {
    if (!isa<MemRefType>(value.getType()))
      continue;
    auto slot = value.getDefiningOp<pipeline::SlotOp>();
    if (!slot)
      return std::nullopt;
    update.variables.insert(slot.getSymbol());
  }
  // A message may have the memory of one that another update reads last.
  for (Value init : update.op.getDpsInits()) {
    auto argument = cast<BlockArgument>(init);
    auto slot = update.call.getOperand(argument.getArgNumber())
                    .getDefiningOp<pipeline::SlotOp>();
    if (symbols.lookup<pipeline::ChannelOp>(slot.getSymbol()))
      return std::nullopt;
  }
  return update;
}

/// Returns whether two updates compute the same, of other elements.
bool areAlike(Update &a, Update &b) {
  linalg::GenericOp first = a.op, second = b.op;
  if (first->getNumOperands() != second->getNumOperands() ||
      first.getNumDpsInits() != second.getNumDpsInits())
    return false;
  auto getElement = [](Value value) {
    return getElementTypeOrSelf(value.getType());
  };
  auto haveSameValue = [&](Value x, Value y) {
    return a.resolve(x) == b.resolve(y);
  };
  for (auto [x, y] :
       llvm::zip_equal(first->getOperands(), second->getOperands())) {
    bool isBuffer = isa<MemRefType>(x.getType());
    if (getElement(x) != getElement(y) ||
        isBuffer != isa<MemRefType>(y.getType()) ||
        (!isBuffer && !haveSameValue(x, y)))
      return false;
  }
  llvm::DenseMap<Value, Value> known;
  return OperationEquivalence::isRegionEquivalentTo(
      &first.getRegion(), &second.getRegion(),
      [&](Value x, Value y) {
        auto found = known.find(x);
        return success(found == known.end() ? haveSameValue(x, y)
                                            : found->second == y);
      },
      [&](Value x, Value y) { known[x] = y; },
      OperationEquivalence::IgnoreLocations);
}

class UpdateMerger {
public:
  UpdateMerger(ModuleOp module, StringRef kind) : symbols(module), kind(kind) {}

  void run(Block &block);

private:
  using Group = SmallVector<Update>;
  /// Puts an update to those like it, or begins a group.
  void add(std::vector<Group> &groups, Update update);
  void merge(ArrayRef<Update> updates);

  SymbolTable symbols;
  StringRef kind;
};

void UpdateMerger::add(std::vector<Group> &groups, Update update) {
  for (Group &group : groups)
    if (areAlike(group.front(), update) &&
        (group.size() + 1) * update.call.getNumOperands() <= kMostParameters) {
      group.push_back(std::move(update));
      return;
    }
  groups.push_back({std::move(update)});
}

void UpdateMerger::run(Block &block) {
  std::vector<Group> groups;
  llvm::StringSet<> variables;
  auto finish = [&] {
    for (const Group &group : groups)
      if (group.size() > 1)
        merge(group);
    groups.clear();
    variables.clear();
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        run(inner);
    if (isPure(&op))
      continue;
    std::optional<Update> update = getUpdate(&op, symbols, kind);
    if (!update) {
      finish();
      continue;
    }
    bool isOwn = llvm::none_of(update->variables.keys(), [&](StringRef name) {
      return variables.contains(name);
    });
    if (!isOwn)
      finish();
    for (StringRef name : update->variables.keys())
      variables.insert(name);
    add(groups, std::move(*update));
  }
  finish();
}

void UpdateMerger::merge(ArrayRef<Update> updates) {
  // 1. A function of all operands.
  llvm::SetVector<Value> operands;
  for (const Update &update : updates)
    for (Value operand : update.call->getOperands())
      operands.insert(operand);
  const Update &last = updates.back();
  func::CallOp lastCall = last.call;
  Location loc = lastCall.getLoc();
  OpBuilder builder(last.callee);
  StringRef base = func::FuncOp(last.callee).getSymName().split('.').first;
  auto function = func::FuncOp::create(
      builder, loc, (base + ".merged").str(),
      builder.getFunctionType(ValueRange(operands.getArrayRef()).getTypes(),
                              {}));
  function.setPrivate();
  function->setDiscardableAttrs(
      func::FuncOp(last.callee)->getDiscardableAttrDictionary());
  symbols.insert(function);

  // 2. Each update is a case, and none of them has to wait for another.
  builder.setInsertionPointToStart(function.addEntryBlock());
  IRMapping arguments;
  arguments.map(operands.getArrayRef(), function.getArguments());
  llvm::DenseMap<Attribute, Value> constants;
  SmallVector<IRMapping> mappings;
  for (const Update &update : updates) {
    IRMapping &mapping = mappings.emplace_back();
    func::FuncOp callee = update.callee;
    func::CallOp call = update.call;
    for (auto [argument, operand] :
         llvm::zip_equal(callee.getArguments(), call.getOperands()))
      mapping.map(argument, arguments.lookup(operand));
    for (Operation &op : callee.front().without_terminator()) {
      Attribute value;
      if (!matchPattern(&op, m_Constant(&value)))
        continue;
      Value &constant = constants[value];
      if (!constant || constant.getType() != op.getResult(0).getType())
        constant = builder.clone(op)->getResult(0);
      mapping.map(op.getResult(0), constant);
    }
  }
  auto forall =
      scf::ForallOp::create(builder, loc,
                            ArrayRef<OpFoldResult>(builder.getIndexAttr(
                                static_cast<int64_t>(updates.size()))),
                            ValueRange(), std::nullopt);
  func::ReturnOp::create(builder, loc);
  builder.setInsertionPointToStart(forall.getBody());
  SmallVector<int64_t> cases = llvm::to_vector(
      llvm::seq<int64_t>(0, static_cast<int64_t>(updates.size())));
  auto choice = scf::IndexSwitchOp::create(builder, loc, TypeRange(),
                                           forall.getInductionVar(0), cases,
                                           cases.size());
  for (auto [region, update, mapping] :
       llvm::zip_equal(choice.getCaseRegions(), updates, mappings)) {
    builder.setInsertionPointToStart(&region.emplaceBlock());
    builder.clone(*linalg::GenericOp(update.op), mapping);
    scf::YieldOp::create(builder, loc);
  }
  builder.setInsertionPointToStart(&choice.getDefaultRegion().emplaceBlock());
  scf::YieldOp::create(builder, loc);

  // 3. One call, when all operands are there.
  builder.setInsertionPoint(lastCall);
  func::CallOp::create(builder, loc, function, operands.getArrayRef());
  // The functions stay: a replay calls them one by one.
  for (const Update &update : updates)
    func::CallOp(update.call).erase();
}

struct MergeUpdatesPass
    : penstock::impl::PipelineMergeUpdatesBase<MergeUpdatesPass> {
  using PipelineMergeUpdatesBase::PipelineMergeUpdatesBase;

  void runOnOperation() override {
    UpdateMerger merger(getOperation(), kind);
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!function.isDeclaration() && function->hasAttr(pipeline::kDeviceAttr))
        for (Block &block : function.getBody())
          merger.run(block);
  }
};

} // namespace
