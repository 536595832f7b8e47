//===- SeparateReads.cpp - One argument per reader of a parameter ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A parameter that several nodes read has a gradient from each. Floating-point
// sums depend on their order, and a cut may come between any two of the nodes:
// so the gradients stay apart, cut or not, until the update adds them.
//===----------------------------------------------------------------------===//

#include "passes/Partition/Passes.h"

#include "penstock/Partition/ForwardProgram.h"
#include "penstock/Support/NodeName.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESEPARATEREADS
#include "passes/Partition/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// The ops of one ONNX node, which are on one side of every cut.
using Reader = SmallVector<Operation *, 2>;

class Separator {
public:
  Separator(ForwardProgram &program) : program(program) {}

  void run();

private:
  SmallVector<Reader> findReaders(BlockArgument parameter);
  void separate(BlockArgument parameter, const Reader &reader);
  Value remap(Value value, IRMapping &mapping);

  ForwardProgram &program;
  /// Values that depend on the parameter at hand and on no data.
  llvm::DenseSet<Value> dependents;
};

} // namespace

SmallVector<Reader> Separator::findReaders(BlockArgument parameter) {
  dependents = {parameter};
  SmallVector<Value> values = {parameter};
  llvm::SmallSetVector<Operation *, 4> ops;
  while (!values.empty()) {
    for (Operation *user : program.getUsersInFunction(values.pop_back_val())) {
      if (!program.isRecomputable(user)) {
        if (!user->hasTrait<OpTrait::IsTerminator>())
          ops.insert(user);
        continue;
      }
      for (Value result : user->getResults())
        if (dependents.insert(result).second)
          values.push_back(result);
    }
  }
  // In the order of the function, whatever has a name.
  SmallVector<Operation *> ordered = ops.takeVector();
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  llvm::MapVector<Attribute, Reader> readers;
  for (Operation *op : ordered) {
    StringRef name = getNodeName(op->getLoc());
    Attribute key = StringAttr::get(op->getContext(), name);
    // What has no name is a reader by itself.
    if (name.empty())
      key = IntegerAttr::get(IndexType::get(op->getContext()), readers.size());
    readers[key].push_back(op);
  }
  return llvm::to_vector(llvm::make_second_range(readers));
}

/// The value as the reader's own argument gives it.
Value Separator::remap(Value value, IRMapping &mapping) {
  if (!dependents.contains(value) || mapping.contains(value))
    return mapping.lookupOrDefault(value);
  Operation *producer = value.getDefiningOp();
  for (Value operand : getUsedValues(producer))
    remap(operand, mapping);
  OpBuilder builder(producer);
  program.addRecomputable(builder.clone(*producer, mapping));
  return mapping.lookup(value);
}

void Separator::separate(BlockArgument parameter, const Reader &reader) {
  Block &block = program.function.getBody().front();
  IRMapping mapping;
  mapping.map(parameter,
              block.addArgument(parameter.getType(), parameter.getLoc()));
  unsigned number = parameter.getArgNumber();
  program.call->insertOperands(program.call.getNumOperands(),
                               program.call.getOperand(number));
  program.function.setFunctionType(
      FunctionType::get(program.function.getContext(), block.getArgumentTypes(),
                        program.function.getResultTypes()));
  for (Operation *op : reader)
    for (Value value : getUsedValues(op))
      if (dependents.contains(value))
        value.replaceUsesWithIf(remap(value, mapping), [&](OpOperand &use) {
          return op->isAncestor(use.getOwner());
        });
}

void Separator::run() {
  auto module = program.task->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  // Arguments are added meanwhile; they have one reader each.
  unsigned count = program.function.getNumArguments();
  for (unsigned i = 0; i < count; ++i) {
    ReadOp read = program.getRead(i);
    auto variable =
        read ? symbols.lookup<VariableOp>(read.getVariable()) : VariableOp();
    if (!variable || variable.getFrozen() ||
        variable.getRole() != Role::Parameter)
      continue;
    BlockArgument parameter = program.function.getArgument(i);
    SmallVector<Reader> readers = findReaders(parameter);
    for (const Reader &reader :
         llvm::drop_begin(readers, readers.empty() ? 0 : 1))
      separate(parameter, reader);
  }
}

namespace {
struct SeparateReadsPass
    : public penstock::impl::PipelineSeparateReadsBase<SeparateReadsPass> {
  void runOnOperation() override {
    FailureOr<ForwardProgram> program = ForwardProgram::find(getOperation());
    if (failed(program))
      return signalPassFailure();
    Separator(*program).run();
  }
};
} // namespace
