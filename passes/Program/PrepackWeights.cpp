//===- PrepackWeights.cpp - Weights are reordered once per update ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights in the library's own order are a variable beside the weights: who
// writes these, writes both, and convolutions read them at the same lag.
//===----------------------------------------------------------------------===//

#include "passes/Program/DeviceBuilder.h"
#include "passes/Program/Passes.h"
#include "penstock/Codegen/ConvolutionLibrary.h"

#include "llvm/ADT/MapVector.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPREPACKWEIGHTS
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// Fewer weights are reordered in microseconds, which a call of its own takes,
/// too; and where more windows meet each weight, reordering is less than 3 % of
/// a call (docs/performance.md).
constexpr int64_t kFewWeights = 1 << 14, kManyWindows = 256;

/// A call of a function, with the variable that is the weights there.
struct Use {
  ModuleOp module;
  func::CallOp call;
  TaskOp task;
  ReadOp read;
  VariableOp weights;
};

/// A convolution whose weights are an argument of its function.
struct Candidate {
  func::FuncOp function, kernel;
  Operation *conv;
  unsigned argument;
  nn::PrepackingAttr prepacking;
  int64_t floats;
  SmallVector<Use> uses;
};

struct PrepackWeightsPass
    : penstock::impl::PipelinePrepackWeightsBase<PrepackWeightsPass> {
  using PipelinePrepackWeightsBase::PipelinePrepackWeightsBase;
  void runOnOperation() override;

  LogicalResult collect(func::FuncOp function);
  bool collectUses(Candidate &candidate);
  bool pays(const Candidate &candidate) const;
  bool isReadOften(Use use) const;
  static bool isWritten(Use use);
  void prepack(Candidate &candidate);
  VariableOp getPrepacked(const Use &use, const Candidate &candidate);
  StringRef getFunction(const Candidate &candidate);
  FlatSymbolRefAttr declare(ModuleOp module, const Candidate &candidate);

  /// The program, and those in it (the replay).
  SmallVector<ModuleOp> modules;
  SmallVector<Candidate> candidates;
  llvm::MapVector<std::pair<Operation *, Attribute>, VariableOp> prepacked;
  llvm::MapVector<Attribute, std::string> functions;
};

} // namespace

void PrepackWeightsPass::runOnOperation() {
  if (policy == "none")
    return;
  if (policy != "auto" && policy != "all") {
    getOperation().emitError()
        << "pipeline-prepack-weights: the policy is auto, none or all, got "
        << policy;
    return signalPassFailure();
  }
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
      return prepacked.contains({use.weights, candidate.prepacking});
    });
    if (isThere && !nn::Convolution::match(candidate.conv)->prepacked)
      prepack(candidate);
  }
}

LogicalResult PrepackWeightsPass::collect(func::FuncOp function) {
  auto kernel = getOperation().lookupSymbol<func::FuncOp>(
      (function.getSymName() + kKernelSuffix).str());
  if (!kernel || kernel.isDeclaration())
    return success();
  WalkResult result = kernel.walk([&](Operation *op) {
    std::optional<nn::Convolution> conv = nn::Convolution::match(op);
    if (!conv || conv->kind == nn::Convolution::WeightGrad || conv->prepacked)
      return WalkResult::advance();
    auto weights = dyn_cast<BlockArgument>(conv->weights);
    if (!weights || weights.getOwner() != &kernel.front() ||
        weights.getArgNumber() >= function.getNumArguments())
      return WalkResult::advance();
    FailureOr<LibraryConvolution> planned =
        requireLibraryConvolution(op, threads);
    if (failed(planned))
      return WalkResult::interrupt();
    conv->layout =
        static_cast<nn::ConvolutionLayout>(planned->descriptor.layout);
    if (!planned->prepackedBytes)
      return WalkResult::advance();
    Candidate candidate{function,
                        kernel,
                        op,
                        weights.getArgNumber(),
                        conv->getPrepacking(),
                        static_cast<int64_t>(planned->prepackedBytes / 4),
                        {}};
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
        auto read = call.getOperand(candidate.argument).getDefiningOp<ReadOp>();
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

/// Several times between two updates, or without any. The replay has one device
/// for all replicas, and does what the program does.
bool PrepackWeightsPass::isReadOften(Use use) const {
  if (!isWritten(use))
    return true;
  if (use.module != modules.front() || use.task.getKind() == TaskKind::Evaluate)
    return false;
  ModuleOp module = use.module;
  auto stage = module.lookupSymbol<StageOp>(use.task.getStageAttr());
  int64_t replicas = std::max<int64_t>(
      stage ? stage.getDevices().value_or(ArrayRef<int64_t>()).size() : 0, 1);
  return llvm::any_of(module.getOps<ScheduleOp>(), [&](ScheduleOp schedule) {
    return static_cast<int64_t>(schedule.getMicrobatches()) >= 2 * replicas;
  });
}

bool PrepackWeightsPass::pays(const Candidate &candidate) const {
  nn::PrepackingAttr conv = candidate.prepacking;
  int64_t weights = ShapedType::getNumElements(conv.getWeights());
  ArrayRef<int64_t> output = conv.getOutput();
  int64_t windows =
      output.front() * ShapedType::getNumElements(output.drop_front(2));
  if (policy == "auto" && (weights < kFewWeights || windows > kManyWindows))
    return false;
  return llvm::any_of(candidate.uses,
                      [&](const Use &use) { return isReadOften(use); });
}

/// The convolution reads another argument, which every call gets from a
/// variable.
void PrepackWeightsPass::prepack(Candidate &candidate) {
  Location loc = candidate.conv->getLoc();
  Type f32 = Float32Type::get(&getContext());
  auto tensor = RankedTensorType::get({candidate.floats}, f32);
  unsigned index = candidate.function.getNumArguments();
  // 1. The function, and its declarations in other modules.
  for (ModuleOp module : modules) {
    auto function =
        module.lookupSymbol<func::FuncOp>(candidate.function.getSymName());
    if (function)
      (void)function.insertArgument(index, tensor, {}, loc);
  }
  (void)candidate.kernel.insertArgument(index, getMemRefType(tensor), {}, loc);
  nn::Convolution::setLayout(candidate.conv, candidate.prepacking.getLayout());
  nn::Convolution::setPrepacked(candidate.conv,
                                candidate.kernel.getArgument(index));
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
  VariableOp &known = prepacked[{use.weights, candidate.prepacking}];
  if (known)
    return known;
  VariableOp weights = use.weights;
  ModuleOp module = use.module;
  SymbolTable symbols(module);
  OpBuilder builder(&getContext());
  auto tensor = RankedTensorType::get({candidate.floats}, builder.getF32Type());
  auto variable = VariableOp::create(
      builder, weights.getLoc(),
      (weights.getSymName() + (candidate.prepacking.getInputGrad()
                                   ? ".prepacked_backward"
                                   : ".prepacked"))
          .str(),
      tensor, Role::Prepacked, weights.getStageAttr(), BytesAttr());
  auto name = FlatSymbolRefAttr::get(weights);
  variable->setAttr(kParameterAttr, name);
  variable->setAttr(kPrepackingAttr, candidate.prepacking);
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

/// What prepacks, as a function on tensors that is declared and its kernel.
StringRef PrepackWeightsPass::getFunction(const Candidate &candidate) {
  std::string &name = functions[candidate.prepacking];
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

  Location loc = candidate.conv->getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(root.getBody());
  Type f32 = builder.getF32Type();
  auto from = MemRefType::get(candidate.prepacking.getWeights(), f32);
  auto to = MemRefType::get({candidate.floats}, f32);
  auto kernel = func::FuncOp::create(builder, loc, (name + kKernelSuffix).str(),
                                     builder.getFunctionType({from, to}, {}));
  kernel.setPrivate();
  builder.setInsertionPointToEnd(kernel.addEntryBlock());
  nn::PrepackWeightsOp::create(builder, loc, kernel.getArgument(0),
                               kernel.getArgument(1), candidate.prepacking);
  func::ReturnOp::create(builder, loc);
  return name;
}

FlatSymbolRefAttr PrepackWeightsPass::declare(ModuleOp module,
                                              const Candidate &candidate) {
  StringRef name = getFunction(candidate);
  if (!module.lookupSymbol(name)) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    Type f32 = builder.getF32Type();
    auto function = func::FuncOp::create(
        builder, candidate.conv->getLoc(), name,
        builder.getFunctionType(
            RankedTensorType::get(candidate.prepacking.getWeights(), f32),
            RankedTensorType::get({candidate.floats}, f32)));
    function.setPrivate();
  }
  return FlatSymbolRefAttr::get(module.getContext(), name);
}
