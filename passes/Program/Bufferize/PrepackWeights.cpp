//===- PrepackWeights.cpp - Weights are reordered once per update ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed weights are a variable beside the weights: who writes these, writes
// both, and library calls read them at the same lag. In which order, and
// whether that pays, is what the target says.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Signatures.h"
#include "passes/Program/Devices/DeviceBuilder.h"
#include "passes/Program/Passes.h"
#include "penstock/Target/Target.h"

#include "llvm/ADT/MapVector.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPREPACKWEIGHTS
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// A call of a function, with the variable that is the weights there.
struct Use {
  ModuleOp module;
  func::CallOp call;
  TaskOp task;
  ReadOp read;
  VariableOp weights;
};

/// A library call whose weights are an argument of its function.
struct Candidate {
  func::FuncOp function, kernel;
  penstock::kernel::LibraryCallOpInterface call;
  BlockArgument weights;
  WeightPacking packing;
  SmallVector<Use> uses;

  penstock::kernel::PackingAttrInterface order() const { return packing.order; }
  unsigned argument() const { return weights.getArgNumber(); }
  RankedTensorType type() const {
    return RankedTensorType::get({packing.elements},
                                 getElementTypeOrSelf(weights.getType()));
  }
  Type weightsType() const {
    return func::FuncOp(function).getArgumentTypes()[argument()];
  }
};

struct PrepackWeightsPass
    : penstock::impl::PipelinePrepackWeightsBase<PrepackWeightsPass> {
  using PipelinePrepackWeightsBase::PipelinePrepackWeightsBase;
  void runOnOperation() override;

  LogicalResult collect(func::FuncOp function);
  bool collectUses(Candidate &candidate);
  bool pays(const Candidate &candidate) const;
  bool isReadOften(Use use, int64_t calls) const;
  static bool isWritten(Use use);
  void prepack(Candidate &candidate);
  VariableOp getPrepacked(const Use &use, const Candidate &candidate);
  StringRef getFunction(const Candidate &candidate);
  FlatSymbolRefAttr declare(ModuleOp module, const Candidate &candidate);

  /// The program, and those in it (the replay).
  SmallVector<ModuleOp> modules;
  SmallVector<Candidate> candidates;
  llvm::MapVector<std::pair<Operation *, Attribute>, VariableOp> prepacked;
  /// Names of functions by order, type of the weights, and target.
  llvm::MapVector<std::tuple<Attribute, Type, Attribute>, std::string>
      functions;
};

} // namespace

/// The argument that a buffer is, in another shape; null if it is none.
static BlockArgument findArgument(Value buffer) {
  for (Operation *op = buffer.getDefiningOp();
       isa_and_nonnull<memref::CollapseShapeOp, memref::ExpandShapeOp>(op);
       op = buffer.getDefiningOp())
    buffer = op->getOperand(0);
  return dyn_cast<BlockArgument>(buffer);
}

void PrepackWeightsPass::runOnOperation() {
  if (policy == PrepackPolicy::None)
    return;
  modules.assign({getOperation()});
  llvm::append_range(modules, getOperation().getOps<ModuleOp>());
  candidates.clear();
  prepacked.clear();
  functions.clear();
  for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
    if (failed(collect(function)))
      return signalPassFailure();
  // What evaluates reads what is there for training.
  for (Candidate &candidate : candidates)
    if (pays(candidate))
      prepack(candidate);
  for (Candidate &candidate : candidates) {
    bool isThere = llvm::all_of(candidate.uses, [&](const Use &use) {
      return prepacked.contains({use.weights, candidate.order()});
    });
    if (isThere && !candidate.call.getPacked())
      prepack(candidate);
  }
}

LogicalResult PrepackWeightsPass::collect(func::FuncOp function) {
  auto kernel = getOperation().lookupSymbol<func::FuncOp>(
      (function.getSymName() + kKernelSuffix).str());
  if (!kernel || kernel.isDeclaration())
    return success();
  WalkResult result =
      kernel.walk([&](penstock::kernel::LibraryCallOpInterface call) {
        Value operand = call.getPackableWeights();
        BlockArgument weights =
            operand ? findArgument(operand) : BlockArgument();
        if (!weights || weights.getOwner() != &kernel.front() ||
            weights.getArgNumber() >= function.getNumArguments())
          return WalkResult::advance();
        FailureOr<std::optional<WeightPacking>> packing = planPacking(call);
        if (failed(packing))
          return WalkResult::interrupt();
        if (!*packing)
          return WalkResult::advance();
        auto packed = MemRefType::get({(*packing)->elements},
                                      getElementTypeOrSelf(weights.getType()));
        if (!(*packing)->order.fits(cast<MemRefType>(weights.getType()),
                                    packed))
          return WalkResult::advance();
        Candidate candidate{function, kernel, call, weights, **packing, {}};
        if (collectUses(candidate))
          candidates.push_back(std::move(candidate));
        return WalkResult::advance();
      });
  return failure(result.wasInterrupted());
}

/// False where a call has other weights than what a variable holds.
bool PrepackWeightsPass::collectUses(Candidate &candidate) {
  for (ModuleOp module : modules)
    for (auto task : module.getOps<TaskOp>()) {
      if (task.isBodyless())
        continue;
      for (auto call : task.getBody().getOps<func::CallOp>()) {
        if (call.getCallee() != candidate.function.getSymName())
          continue;
        auto read =
            call.getOperand(candidate.argument()).getDefiningOp<ReadOp>();
        auto weights =
            read ? module.lookupSymbol<VariableOp>(read.getVariableAttr())
                 : VariableOp();
        if (!weights)
          return false;
        candidate.uses.push_back({module, call, task, read, weights});
      }
    }
  return !candidate.uses.empty();
}

bool PrepackWeightsPass::isWritten(Use use) {
  ModuleOp module = use.module;
  return llvm::any_of(module.getOps<TaskOp>(), [&](TaskOp task) {
    return !task.isBodyless() &&
           llvm::any_of(task.getBody().getOps<WriteOp>(), [&](WriteOp write) {
             return write.getVariableAttr() == use.read.getVariableAttr();
           });
  });
}

/// So many times between two updates, or without any. The replay has one device
/// for all replicas, and does what the program does.
bool PrepackWeightsPass::isReadOften(Use use, int64_t calls) const {
  if (!isWritten(use))
    return true;
  if (use.module != modules.front() || use.task.getKind() == TaskKind::Evaluate)
    return false;
  ModuleOp module = use.module;
  auto stage = module.lookupSymbol<StageOp>(use.task.getStageAttr());
  int64_t replicas = std::max<int64_t>(
      stage ? stage.getDevices().value_or(ArrayRef<int64_t>()).size() : 0, 1);
  return llvm::any_of(module.getOps<ScheduleOp>(), [&](ScheduleOp schedule) {
    return static_cast<int64_t>(schedule.getMicrobatches()) >= calls * replicas;
  });
}

bool PrepackWeightsPass::pays(const Candidate &candidate) const {
  const WeightPacking &packing = candidate.packing;
  if (policy == PrepackPolicy::Auto && !packing.pays)
    return false;
  int64_t calls = policy == PrepackPolicy::Auto ? packing.calls : 2;
  return llvm::any_of(candidate.uses,
                      [&](const Use &use) { return isReadOften(use, calls); });
}

/// The call reads another argument, which every call gets from a
/// variable.
void PrepackWeightsPass::prepack(Candidate &candidate) {
  Location loc = candidate.call.getLoc();
  RankedTensorType tensor = candidate.type();
  unsigned index = candidate.function.getNumArguments();
  // 1. The function, and its declarations in other modules.
  for (ModuleOp module : modules) {
    auto function =
        module.lookupSymbol<func::FuncOp>(candidate.function.getSymName());
    if (!function)
      continue;
    (void)function.insertArgument(index, tensor, {}, loc);
    insertTerm(function, index);
  }
  (void)candidate.kernel.insertArgument(index, getMemRefType(tensor), {}, loc);
  candidate.call.getPackedMutable().assign(candidate.kernel.getArgument(index));
  candidate.call.setConfigAttr(candidate.packing.config);
  // 2. Its calls.
  for (const Use &use : candidate.uses) {
    VariableOp variable = getPrepacked(use, candidate);
    ReadOp read = use.read;
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(read);
    auto value =
        ReadOp::create(builder, read.getLoc(), tensor,
                       FlatSymbolRefAttr::get(variable), read.getLagAttr());
    func::CallOp call = use.call;
    call->insertOperands(index, {value.getValue()});
  }
}

/// The variable, with as many versions as the weights have, and its writers.
VariableOp PrepackWeightsPass::getPrepacked(const Use &use,
                                            const Candidate &candidate) {
  VariableOp &known = prepacked[{use.weights, candidate.order()}];
  if (known)
    return known;
  VariableOp weights = use.weights;
  ModuleOp module = use.module;
  SymbolTable symbols(module);
  OpBuilder builder(&getContext());
  RankedTensorType tensor = candidate.type();
  auto variable = VariableOp::create(
      builder, weights.getLoc(),
      (weights.getSymName() + candidate.order().getVariableSuffix()).str(),
      tensor, Role::Prepacked, weights.getStageAttr(), BytesAttr());
  auto name = FlatSymbolRefAttr::get(weights);
  variable->setAttr(kParameterAttr, name);
  variable->setAttr(kernel::kPackingAttr, candidate.order());
  symbols.insert(variable, std::next(weights->getIterator()));
  auto ownName = FlatSymbolRefAttr::get(variable);
  for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
    auto storage = dyn_cast<VersionStorageOpInterface>(op);
    if (!storage || storage.getVariableAttr() != name)
      continue;
    builder.setInsertionPointAfter(&op);
    builder.clone(op)->setAttr("variable", ownName);
  }
  for (auto task : module.getOps<TaskOp>()) {
    if (task.isBodyless())
      continue;
    for (auto write : llvm::to_vector(task.getBody().getOps<WriteOp>())) {
      if (write.getVariableAttr() != name)
        continue;
      builder.setInsertionPoint(write);
      auto call = func::CallOp::create(builder, write.getLoc(),
                                       declare(module, candidate),
                                       TypeRange(tensor), write.getValue());
      WriteOp::create(builder, write.getLoc(), call.getResult(0), ownName);
    }
  }
  return known = variable;
}

/// Returns the function that prepacks: one on tensors that is declared, and its
/// kernel.
StringRef PrepackWeightsPass::getFunction(const Candidate &candidate) {
  Attribute target = candidate.kernel->getAttr(kTargetAttr);
  std::string &name =
      functions[{candidate.order(), candidate.weightsType(), target}];
  if (!name.empty())
    return name;
  ModuleOp root = getOperation();
  auto isTaken = [&](const Twine &text) {
    return llvm::any_of(modules, [&](ModuleOp module) {
      return module.lookupSymbol(text.str());
    });
  };
  unsigned number = functions.size();
  do
    name = ("prepack." + Twine(number++)).str();
  while (isTaken(name) || isTaken(name + kKernelSuffix));

  Location loc = candidate.call->getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(root.getBody());
  auto from = getMemRefType(cast<RankedTensorType>(candidate.weightsType()));
  auto to = getMemRefType(candidate.type());
  auto kernel = func::FuncOp::create(builder, loc, (name + kKernelSuffix).str(),
                                     builder.getFunctionType({from, to}, {}));
  kernel.setPrivate();
  kernel->setAttr(kTargetAttr, target);
  builder.setInsertionPointToEnd(kernel.addEntryBlock());
  penstock::kernel::PackOp::create(builder, loc, kernel.getArgument(0),
                                   kernel.getArgument(1), candidate.order());
  func::ReturnOp::create(builder, loc);
  return name;
}

FlatSymbolRefAttr PrepackWeightsPass::declare(ModuleOp module,
                                              const Candidate &candidate) {
  StringRef name = getFunction(candidate);
  if (!module.lookupSymbol(name)) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto function = func::FuncOp::create(
        builder, candidate.call->getLoc(), name,
        builder.getFunctionType(candidate.weightsType(), candidate.type()));
    function.setPrivate();
  }
  return FlatSymbolRefAttr::get(module.getContext(), name);
}
