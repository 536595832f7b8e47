//===- BufferizeFunctions.cpp - Tensor functions become kernels -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States as facts what the calling convention promises (arguments do not
// overlap, results have buffers, `into` arguments may be overwritten), lets the
// upstream analysis find an order without copies, and packs what is left.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Convolution.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Kernels/Widening.h"
#include "passes/Program/Bufferize/Destinations.h"
#include "passes/Program/Devices/DeviceBuilder.h"
#include "passes/Program/Memory/PackTemporaries.h"
#include "passes/Program/Passes.h"
#include "penstock/Target/MatrixProduct.h"

#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/TensorTilingInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEBUFFERIZEFUNCTIONS
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace mlir::bufferization;

// The upstream analysis learns what convolutions read and write: they stay ops,
// as the library computes them.

namespace {

/// `accumulates`: reads its destination, where others overwrite it.
template <typename Op, bool accumulates>
struct ConvModel
    : DstBufferizableOpInterfaceExternalModel<ConvModel<Op, accumulates>, Op> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return accumulates || !cast<Op>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto conv = cast<Op>(op);
    SmallVector<Value> buffers;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    Op::create(rewriter, op->getLoc(), TypeRange(), buffers[0], buffers[1],
               buffers[2], conv.getStridesAttr(), conv.getDilationsAttr(),
               conv.getPadsAttr(), conv.getGroupsAttr());
    replaceOpWithBufferizedValues(rewriter, op, buffers[2]);
    return success();
  }
};

} // namespace

static void registerNnBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    nn::ConvOp::attachInterface<ConvModel<nn::ConvOp, false>>(*context);
    nn::ConvInputGradOp::attachInterface<ConvModel<nn::ConvInputGradOp, false>>(
        *context);
    nn::ConvWeightGradOp::attachInterface<
        ConvModel<nn::ConvWeightGradOp, true>>(*context);
  });
}

// What is copied is what the op reads or writes: products and gradients of
// weights add to their destinations, other convolutions overwrite theirs.

static Value getDestination(const nn::Convolution &conv) {
  switch (conv.kind) {
  case nn::Convolution::Forward:
    return conv.output;
  case nn::Convolution::InputGrad:
    return conv.input;
  case nn::Convolution::WeightGrad:
    return conv.weights;
  }
  return nullptr;
}

static bool isPart(Value operand) {
  auto type = dyn_cast<MemRefType>(operand.getType());
  return type && !type.getLayout().isIdentity();
}

static void makeDense(Operation *op, Value destination, bool adds) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value part = operand.get();
    if (!isPart(part))
      continue;
    auto type = cast<MemRefType>(part.getType());
    builder.setInsertionPoint(op);
    Value dense = memref::AllocOp::create(
        builder, op->getLoc(),
        MemRefType::get(type.getShape(), type.getElementType()));
    if (part != destination || adds)
      linalg::CopyOp::create(builder, op->getLoc(), part, dense);
    operand.set(dense);
    if (part != destination)
      continue;
    builder.setInsertionPointAfter(op);
    linalg::CopyOp::create(builder, op->getLoc(), dense, part);
  }
}

/// Returns true if a library multiplies matrices in these buffers, or in dense
/// ones of their shapes.
static bool isProduct(linalg::ContractOp contract, bool dense) {
  auto op = cast<linalg::LinalgOp>(contract.getOperation());
  SmallVector<SmallVector<int64_t>> strides;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    int64_t offset;
    if (!type || (!type.getElementType().isF32() && !isNarrowProduct(contract)))
      return false;
    if (dense)
      type = MemRefType::get(type.getShape(), type.getElementType());
    if (failed(type.getStridesAndOffset(strides.emplace_back(), offset)))
      return false;
  }
  return succeeded(readMatrixProduct(op.getStaticLoopRanges(),
                                     op.getIndexingMapsArray(), strides));
}

/// Gives every convolution of a bufferized function whose operand is part of a
/// buffer a dense one, copied from it before and to it afterwards. So, too, a
/// product that is none for the library as its operands lie (every second
/// column of a matrix): loops would round otherwise than the library does where
/// the cut between two stages leaves a dense copy.
static void makeOperandsDense(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (std::optional<nn::Convolution> conv = nn::Convolution::match(op))
      return makeDense(op, getDestination(*conv),
                       conv->kind == nn::Convolution::WeightGrad);
    auto contract = dyn_cast<linalg::ContractOp>(op);
    if (contract && llvm::any_of(contract->getOperands(), isPart) &&
        !isProduct(contract, /*dense=*/false) &&
        isProduct(contract, /*dense=*/true))
      makeDense(contract, contract.getDpsInits().front(), /*adds=*/true);
  });
}

namespace {

MemRefType bufferType(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// Returns true if the pass has work on the function: it is defined here and
/// has a tensor in its signature. Learning-rate schedules, for one, have none.
bool isTensorFunction(func::FuncOp function) {
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  return !function.isDeclaration() &&
         (llvm::any_of(function.getArgumentTypes(), isTensor) ||
          llvm::any_of(function.getResultTypes(), isTensor));
}

/// Makes `value` end up in `buffer`. When it is a reshape of another value,
/// that value is asked to end up in the buffer, seen in its own shape: else a
/// copy would follow.
void materialize(OpBuilder &builder, Location loc, Value value, Value buffer,
                 bool exclusive) {
  while (true) {
    auto reverse = [&](auto reshape, auto create) {
      MemRefType type = bufferType(reshape.getSrc().getType());
      buffer = create(type, reshape.getReassociationIndices());
      value = reshape.getSrc();
    };
    if (auto op = value.getDefiningOp<tensor::CollapseShapeOp>())
      reverse(op, [&](MemRefType type, auto groups) -> Value {
        return memref::ExpandShapeOp::create(builder, loc, type, buffer,
                                             groups);
      });
    else if (auto op = value.getDefiningOp<tensor::ExpandShapeOp>())
      reverse(op, [&](MemRefType type, auto groups) -> Value {
        return memref::CollapseShapeOp::create(builder, loc, type, buffer,
                                               groups);
      });
    else
      break;
  }
  auto op = bufferization::MaterializeInDestinationOp::create(
      builder, loc, Type(), value, buffer);
  op.setRestrict(exclusive);
  op.setWritable(true);
}

/// The companion of `function` on buffers, its body still on tensors.
func::FuncOp createKernel(OpBuilder &builder, func::FuncOp function) {
  Location loc = function.getLoc();
  FunctionType type = function.getFunctionType();
  unsigned argumentCount = type.getNumInputs();

  // 1. Signature. `into` results are gone, the others have a buffer each.
  SmallVector<int64_t> into(type.getNumResults(), -1);
  SmallVector<bool> isChanged(argumentCount);
  SmallVector<Type> inputs, results;
  SmallVector<DictionaryAttr> attributes;
  for (unsigned i = 0; i < argumentCount; ++i) {
    Type input = type.getInput(i);
    inputs.push_back(isa<RankedTensorType>(input) ? bufferType(input) : input);
    attributes.push_back(function.getArgAttrDict(i));
    auto result =
        function.getArgAttrOfType<IntegerAttr>(i, pipeline::kIntoAttr);
    if (result)
      into[result.getInt()] = i;
    isChanged[i] = result != nullptr;
  }
  for (auto [index, result] : llvm::enumerate(type.getResults())) {
    if (!isa<RankedTensorType>(result))
      results.push_back(result);
    else if (into[index] < 0)
      inputs.push_back(bufferType(result));
  }
  auto kernel = func::FuncOp::create(builder, loc,
                                     (function.getName() + kKernelSuffix).str(),
                                     builder.getFunctionType(inputs, results));
  kernel.setPrivate();
  if (Attribute target = function->getAttr(pipeline::kTargetAttr))
    kernel->setAttr(pipeline::kTargetAttr, target);
  attributes.resize(inputs.size());
  kernel.setAllArgAttrs(attributes);

  // 2. The body, on tensors made of the arguments.
  OpBuilder body = OpBuilder::atBlockBegin(kernel.addEntryBlock());
  IRMapping mapping;
  for (unsigned i = 0; i < argumentCount; ++i) {
    Value argument = kernel.getArgument(i);
    if (isa<RankedTensorType>(type.getInput(i)))
      argument = bufferization::ToTensorOp::create(body, loc, type.getInput(i),
                                                   argument, /*restrict=*/true,
                                                   /*writable=*/isChanged[i]);
    mapping.map(function.getArgument(i), argument);
  }
  Block &source = function.getBody().front();
  for (Operation &op : source.without_terminator())
    body.clone(op, mapping);

  // 3. Results go to their buffers. One for an argument's buffer passes through
  // the tensor of that argument, which offers it as a destination.
  SmallVector<Value> scalars;
  unsigned next = argumentCount;
  for (auto [index, operand] :
       llvm::enumerate(source.getTerminator()->getOperands())) {
    Value value = mapping.lookup(operand);
    if (!isa<RankedTensorType>(value.getType())) {
      scalars.push_back(value);
    } else if (into[index] < 0) {
      materialize(body, loc, value, kernel.getArgument(next++),
                  /*exclusive=*/true);
    } else {
      Value target = mapping.lookup(function.getArgument(into[index]));
      value = bufferization::MaterializeInDestinationOp::create(
                  body, loc, value.getType(), value, target)
                  .getResult();
      materialize(body, loc, value, kernel.getArgument(into[index]),
                  /*exclusive=*/false);
    }
  }
  func::ReturnOp::create(body, loc, scalars);
  return kernel;
}

/// Expands the copies that remain into loops of ours.
void expandCopies(func::FuncOp kernel) {
  SmallVector<memref::CopyOp> copies;
  kernel.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    copy.emitRemark("a copy of ")
        << copy.getSource().getType() << " could not be avoided";
    OpBuilder builder(copy);
    linalg::CopyOp::create(builder, copy.getLoc(), copy.getSource(),
                           copy.getTarget());
    copy.erase();
  }
}

struct BufferizeFunctionsPass
    : penstock::impl::PipelineBufferizeFunctionsBase<BufferizeFunctionsPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    PipelineBufferizeFunctionsBase::getDependentDialects(registry);
    arith::registerBufferizableOpInterfaceExternalModels(registry);
    linalg::registerBufferizableOpInterfaceExternalModels(registry);
    registerNnBufferization(registry);
    linalg::registerSubsetOpInterfaceExternalModels(registry);
    scf::registerBufferizableOpInterfaceExternalModels(registry);
    tensor::registerBufferizableOpInterfaceExternalModels(registry);
    tensor::registerSubsetOpInterfaceExternalModels(registry);
  }

  void runOnOperation() override;

private:
  /// Runs the upstream passes on the module of kernels.
  LogicalResult bufferize(ModuleOp kernels);
};

LogicalResult BufferizeFunctionsPass::bufferize(ModuleOp kernels) {
  OpPassManager manager(ModuleOp::getOperationName());
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  manager.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  manager.addPass(bufferization::createOneShotBufferizePass());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  // A copy of a buffer onto itself shows only after the second round.
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  functions.addPass(createCanonicalizerPass());
  return runPipeline(manager, kernels);
}

void BufferizeFunctionsPass::runOnOperation() {
  ModuleOp module = getOperation();
  SmallVector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (isTensorFunction(function))
      functions.push_back(function);
  if (functions.empty())
    return;

  // 1. The kernels, in a module of their own: the analysis must not see tasks.
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto kernels = ModuleOp::create(builder, module.getLoc());
  builder.setInsertionPointToEnd(kernels.getBody());
  for (func::FuncOp function : functions) {
    func::FuncOp kernel = createKernel(builder, function);
    chooseDestinations(kernel);
  }

  // 2. Buffers.
  if (failed(bufferize(kernels)))
    return signalPassFailure();
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    expandCopies(kernel);
    makeOperandsDense(kernel);
    if (failed(packTemporaries(kernel)))
      return signalPassFailure();
  }

  // 3. Home again; constants may need new names, and so may kernels.
  SymbolTable outer(module), inner(kernels);
  for (auto global :
       llvm::make_early_inc_range(kernels.getOps<memref::GlobalOp>())) {
    if (outer.lookup(global.getSymName()) &&
        failed(inner.renameToUnique(global, {&outer})))
      return signalPassFailure();
    inner.remove(global);
    global->remove();
    outer.insert(global);
  }
  for (auto [function, kernel] : llvm::zip_equal(
           functions, llvm::to_vector(kernels.getOps<func::FuncOp>()))) {
    if (outer.lookup(kernel.getName())) {
      function.emitOpError("there is a function @")
          << kernel.getName()
          << " already, which is the name of its bufferized form";
      return signalPassFailure();
    }
    kernel->remove();
    outer.insert(kernel, std::next(function->getIterator()));
  }
  kernels.erase();
}

} // namespace
