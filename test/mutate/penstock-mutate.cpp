//===- penstock-mutate.cpp - Changes programs at random -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes one change to a parsed module, of a kind that the dialects allow, and
// asks the verifiers: `penstock-mutate PROGRAM --seed=N --count=N --out=DIR`.
// For each mutant a line with its number, kind, class, verdict, rule and
// message, divided by tabs; those that are accepted are written to DIR. Whether
// they train as the original does is for run_mutants.py to find out.
//
// No mutant is made twice, nor one whose hash is in the file --known.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Driver/Registration.h"
#include "penstock/Levels/Level.h"
#include "penstock/Support/Assert.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/xxhash.h"

#include <random>
#include <set>

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// The kinds of changes. Those of mathematics make another program, which has
/// to agree with its own replay.
enum Kind {
  EraseOp,
  DuplicateOp,
  SwapOps,
  MoveOp,
  MoveToDevice,
  Retarget,
  ChangeNumber,
  ChangeEnum,
  ChangeText,
  ChangeType,
  ChangeList,
  EraseAttribute,
  AddAttribute,
  ExchangeOperands,
  ReplaceOperand,
  MathConstant,
  MathOperands,
  MathParameter,
  NumKinds
};

constexpr const char *kNames[] = {
    "erase op",       "duplicate op",      "swap ops",        "move op",
    "move to device", "retarget symbol",   "change number",   "change enum",
    "change text",    "change type",       "change list",     "erase attribute",
    "add attribute",  "exchange operands", "replace operand", "math: constant",
    "math: operands", "math: parameter",
};

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random(seed) {}

  /// Makes one change of a kind; false if it found nothing to change.
  bool mutate(ModuleOp program, Kind kind);
  std::string description;

private:
  size_t below(size_t bound) {
    PENSTOCK_ASSERT(bound > 0, "something to choose from");
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random);
  }
  template <typename T> T pick(ArrayRef<T> list) {
    return list[below(list.size())];
  }

  /// Ops of the program: not those of kernels.
  SmallVector<Operation *> collect(llvm::function_ref<bool(Operation *)> want);
  static bool isKernelCode(Operation *op);
  bool describe(Operation *op, const llvm::Twine &what);
  bool setAttribute(Operation *op, StringAttr name, Attribute value);

  /// A changed attribute, or null. Only changes of `kind` are made.
  Attribute change(Attribute attribute, Kind kind, Operation *op);
  Attribute changeNumber(Attribute attribute);
  Attribute changeEnum(Attribute attribute);
  Attribute changeList(Attribute attribute);
  Attribute changeSymbol(FlatSymbolRefAttr symbol, Operation *op);
  bool changeAttribute(Kind kind);
  bool moveToDevice();
  bool addAttribute();
  bool changeOperand(Kind kind);
  bool changeMath(Kind kind);

  ModuleOp module;
  MLIRContext *context = nullptr;
  std::mt19937_64 random;
};

} // namespace

/// In a function that is no program of a device.
bool Mutator::isKernelCode(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  return function && !function->hasAttr(kDeviceAttr);
}

SmallVector<Operation *>
Mutator::collect(llvm::function_ref<bool(Operation *)> want) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (op != module && !isKernelCode(op) &&
        !op->hasTrait<OpTrait::IsTerminator>() && want(op))
      ops.push_back(op);
  });
  return ops;
}

bool Mutator::describe(Operation *op, const llvm::Twine &what) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << what << ": ";
  OpPrintingFlags flags;
  flags.skipRegions().elideLargeElementsAttrs();
  op->print(stream, flags);
  for (char &c : text)
    if (c == '\t' || c == '\n')
      c = ' ';
  description = text.substr(0, 300);
  return true;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute Mutator::changeNumber(Attribute attribute) {
  auto step = [&](int64_t value) {
    const int64_t values[] = {value + 1, value - 1, 0, value * 2 + 1};
    return values[below(4)];
  };
  if (auto number = dyn_cast<IntegerAttr>(attribute)) {
    if (number.getType().isInteger(1))
      return BoolAttr::get(context, !number.getValue().getBoolValue());
    return IntegerAttr::get(number.getType(), step(number.getInt()));
  }
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return FloatAttr::get(number.getType(),
                          number.getValueAsDouble() * (below(2) ? 2 : -1) +
                              0.125);
  if (auto field = dyn_cast<FieldAttr>(attribute))
    return FieldAttr::get(context, field.getSymbol(), step(field.getIndex()));
  if (auto operand = dyn_cast<OperandAttr>(attribute)) {
    std::optional<int64_t> lag = operand.getLag();
    if (lag && below(2))
      return OperandAttr::get(context, operand.getAccess(), operand.getSymbol(),
                              operand.getField(), step(*lag));
    return OperandAttr::get(context, operand.getAccess(), operand.getSymbol(),
                            step(operand.getField()), lag);
  }
  if (auto put = dyn_cast<PutAttr>(attribute))
    return PutAttr::get(context, put.getChannel(), put.getSymbol(),
                        step(put.getField()));
  if (auto bytes = dyn_cast<BytesAttr>(attribute)) {
    int64_t offset = bytes.getOffset(), length = bytes.getLength();
    (below(2) ? offset : length) += below(2) ? 1000000 : -1000000;
    if (offset < 0 || length < 0)
      return {};
    return BytesAttr::get(context, bytes.getFile(), offset, length);
  }
  if (auto range = dyn_cast<RangeAttr>(attribute)) {
    int64_t high = step(range.getHigh());
    if (high <= range.getLow())
      return {};
    return RangeAttr::get(context, range.getLow(), high, range.getIgnored());
  }
  return {};
}

template <typename Attr, typename Enum>
static Attribute other(Attribute attribute, uint64_t count, uint64_t by) {
  auto known = dyn_cast<Attr>(attribute);
  if (!known)
    return {};
  auto value = static_cast<uint64_t>(known.getValue());
  return Attr::get(known.getContext(),
                   static_cast<Enum>((value + 1 + by % (count - 1)) % count));
}

Attribute Mutator::changeEnum(Attribute attribute) {
  uint64_t by = below(1 << 20);
  if (Attribute result =
          other<RoleAttr, Role>(attribute, getMaxEnumValForRole() + 1, by))
    return result;
  if (Attribute result = other<TaskKindAttr, TaskKind>(
          attribute, getMaxEnumValForTaskKind() + 1, by))
    return result;
  if (Attribute result = other<ScheduleRoleAttr, ScheduleRole>(
          attribute, getMaxEnumValForScheduleRole() + 1, by))
    return result;
  if (Attribute result = other<RepeatKindAttr, RepeatKind>(
          attribute, getMaxEnumValForRepeatKind() + 1, by))
    return result;
  if (Attribute result = other<arith::CmpIPredicateAttr, arith::CmpIPredicate>(
          attribute, 10, by))
    return result;
  if (auto operand = dyn_cast<OperandAttr>(attribute))
    return OperandAttr::get(
        context,
        static_cast<AccessKind>(
            (static_cast<uint64_t>(operand.getAccess()) + 1 + by % 2) % 3),
        operand.getSymbol(), operand.getField(), operand.getLag());
  return {};
}

template <typename T>
static bool changeElements(SmallVectorImpl<T> &list, size_t how, size_t at,
                           size_t with) {
  if (list.empty())
    return false;
  if (how == 0) {
    if (list[at] == list[with])
      return false;
    std::swap(list[at], list[with]);
  } else if (how == 1) {
    list.erase(list.begin() + at);
  } else {
    list.insert(list.begin() + at, list[with]);
  }
  return true;
}

Attribute Mutator::changeList(Attribute attribute) {
  if (auto array = dyn_cast<ArrayAttr>(attribute); array && !array.empty()) {
    SmallVector<Attribute> list(array.getValue());
    if (changeElements(list, below(3), below(list.size()), below(list.size())))
      return ArrayAttr::get(context, list);
    return {};
  }
  if (auto array = dyn_cast<DenseI64ArrayAttr>(attribute);
      array && !array.empty()) {
    SmallVector<int64_t> list(array.asArrayRef());
    if (below(3) == 0)
      list[below(list.size())] += below(2) ? 1 : 64;
    else if (!changeElements(list, below(3), below(list.size()),
                             below(list.size())))
      return {};
    return DenseI64ArrayAttr::get(context, list);
  }
  return {};
}

Attribute Mutator::changeSymbol(FlatSymbolRefAttr symbol, Operation *op) {
  auto scope = op->getParentOfType<ModuleOp>();
  if (!scope)
    return {};
  Operation *target = SymbolTable::lookupSymbolIn(scope, symbol);
  if (!target)
    return {};
  SmallVector<Operation *> others;
  for (Operation &candidate : scope.getBody()->getOperations())
    if (&candidate != target && candidate.getName() == target->getName() &&
        SymbolTable::getSymbolVisibility(&candidate) ==
            SymbolTable::getSymbolVisibility(target))
      others.push_back(&candidate);
  if (others.empty())
    return {};
  // Half of them fit in type.
  if (auto variable = dyn_cast<VariableOp>(target); variable && below(2)) {
    SmallVector<Operation *> fitting;
    for (Operation *other : others)
      if (cast<VariableOp>(other).getType() == variable.getType())
        fitting.push_back(other);
    if (!fitting.empty())
      others = fitting;
  }
  return FlatSymbolRefAttr::get(
      SymbolTable::getSymbolName(pick<Operation *>(others)));
}

Attribute Mutator::change(Attribute attribute, Kind kind, Operation *op) {
  Attribute changed;
  switch (kind) {
  case ChangeNumber:
    changed = changeNumber(attribute);
    break;
  case ChangeEnum:
    changed = changeEnum(attribute);
    break;
  case ChangeList:
    changed = changeList(attribute);
    break;
  case Retarget:
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute))
      changed = changeSymbol(symbol, op);
    break;
  case ChangeText:
    if (auto text = dyn_cast<StringAttr>(attribute))
      changed = StringAttr::get(context, text.getValue() + "x");
    break;
  case ChangeType:
    if (auto type = dyn_cast<TypeAttr>(attribute))
      if (auto tensor = dyn_cast<RankedTensorType>(type.getValue());
          tensor && tensor.getRank()) {
        SmallVector<int64_t> shape(tensor.getShape());
        shape[below(shape.size())] += 1;
        changed = TypeAttr::get(
            RankedTensorType::get(shape, tensor.getElementType()));
      }
    break;
  default:
    break;
  }
  // At the top or somewhere inside.
  SmallVector<Attribute> inside;
  attribute.walkImmediateSubElements(
      [&](Attribute element) { inside.push_back(element); }, [](Type) {});
  if (inside.empty() || (changed && changed != attribute && below(2)))
    return changed;
  size_t at = below(inside.size());
  Attribute replaced = change(inside[at], kind, op);
  if (!replaced || replaced == inside[at])
    return changed;
  SmallVector<Attribute> elements(inside);
  elements[at] = replaced;
  SmallVector<Type> types;
  attribute.walkImmediateSubElements([](Attribute) {},
                                     [&](Type type) { types.push_back(type); });
  return attribute.replaceImmediateSubElements(elements, types);
}

bool Mutator::setAttribute(Operation *op, StringAttr name, Attribute value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "sets " << name.getValue() << " = " << value;
  describe(op, text);
  op->setAttr(name, value);
  return true;
}

/// Returns true if an attribute is of the optimizer or method.
static bool isParameterOfTraining(Operation *op, StringRef name) {
  return isa<TrainingOp>(op) && name != "microbatches" && name != "infers";
}

/// Returns true of what the user has to give: the name of an input, the range
/// of its numbers. Only a replay states them a second time.
static bool isInterface(NamedAttribute attribute) {
  return isa<SourceAttr>(attribute.getValue()) ||
         attribute.getName() == kRangeAttr;
}

bool Mutator::changeAttribute(Kind kind) {
  bool isAlone = module.getOps<ModuleOp>().empty();
  SmallVector<std::pair<Operation *, NamedAttribute>> all;
  for (Operation *op : collect([](Operation *) { return true; }))
    for (NamedAttribute attribute : op->getAttrs())
      if (!isParameterOfTraining(op, attribute.getName()) &&
          !(isAlone && isInterface(attribute)))
        all.push_back({op, attribute});
  for (NamedAttribute attribute : module->getAttrs())
    all.push_back({module, attribute});
  for (int tries = 0; tries < 200 && !all.empty(); ++tries) {
    auto [op, attribute] = pick(ArrayRef(all));
    if (kind == EraseAttribute) {
      // Those that an op has to have are no change that a text can hold.
      Attribute required = op->getAttr(attribute.getName());
      if (!required)
        continue;
      OperationState state(op->getLoc(), op->getName());
      if (!op->isRegistered())
        continue;
      bool inherent = op->getPropertiesStorage() &&
                      op->getInherentAttr(attribute.getName()).has_value();
      if (inherent && !isa<UnitAttr>(required) &&
          isa<OrderOp, ScheduleOp, RunOp, SendOp, RecvOp, AllReduceOp, ReadOp,
              StageOp, SlotOp, ScratchOp, ChannelOp, VariableOp, TaskOp,
              RepeatOp, HyperparameterOp, TrainingOp>(op)) {
        static const StringRef kOptional[] = {"ahead",
                                              "every",
                                              "lag",
                                              "devices",
                                              "field",
                                              "ring",
                                              "at",
                                              "stride",
                                              "places",
                                              "slots",
                                              "staging",
                                              "source",
                                              "sink",
                                              "init",
                                              "stage",
                                              "calls",
                                              "puts",
                                              "method",
                                              "count",
                                              "rate",
                                              "default_value",
                                              "predicted_bubble",
                                              "wave",
                                              "distance",
                                              "worker",
                                              "generator"};
        if (!llvm::is_contained(kOptional, attribute.getName().getValue()) ||
            (isa<TaskOp>(op) && attribute.getName() == "stage"))
          continue;
      } else if (inherent && !isa<UnitAttr>(required)) {
        continue;
      }
      describe(op, "erases " + attribute.getName().getValue());
      op->removeAttr(attribute.getName());
      // A text without it has the default.
      if (inherent)
        op->getName().populateDefaultProperties(op->getPropertiesStorage());
      return true;
    }
    Attribute value = change(attribute.getValue(), kind, op);
    if (value && value != attribute.getValue())
      return setAttribute(op, attribute.getName(), value);
  }
  return false;
}

bool Mutator::addAttribute() {
  Builder builder(context);
  for (int tries = 0; tries < 50; ++tries) {
    SmallVector<Operation *> ops = collect([](Operation *op) {
      return isa<VariableOp, GroupOp, TaskOp, ReadOp, RunOp, SendOp, RecvOp,
                 AllReduceOp, ChannelOp, SlotOp, StageOp, CompensateOp,
                 ScheduleOp>(op);
    });
    if (ops.empty())
      return false;
    Operation *op = pick<Operation *>(ops);
    Attribute number = builder.getI64IntegerAttr(int64_t(below(4)));
    SmallVector<NamedAttribute> choices;
    auto add = [&](StringRef name, Attribute value) {
      if (!op->getAttr(name))
        choices.push_back(builder.getNamedAttr(name, value));
    };
    if (auto variable = dyn_cast<VariableOp>(op)) {
      add("frozen", builder.getUnitAttr());
      SmallVector<Attribute> others;
      for (auto other : op->getParentOfType<ModuleOp>().getOps<VariableOp>())
        others.push_back(FlatSymbolRefAttr::get(other));
      add(kParameterAttr, pick<Attribute>(others));
      add(kPartsAttr, builder.getI64IntegerAttr(2));
    }
    if (isa<GroupOp>(op))
      add(kOnceAttr, builder.getUnitAttr());
    if (isa<TaskOp>(op))
      add(kRecomputesAttr, builder.getUnitAttr());
    if (isa<ReadOp>(op))
      add("lag", number);
    if (isa<RunOp, SendOp, RecvOp, AllReduceOp>(op))
      add("ahead", number);
    if (isa<RunOp, AllReduceOp>(op))
      add("every", builder.getI64IntegerAttr(int64_t(1 + below(4))));
    if (isa<ChannelOp>(op)) {
      add("own_queue", builder.getUnitAttr());
      add("slots", builder.getI64IntegerAttr(int64_t(1 + below(4))));
      add("staging", builder.getI64IntegerAttr(int64_t(1 + below(4))));
    }
    if (isa<SlotOp>(op)) {
      add("field", number);
      add("ring", builder.getI64IntegerAttr(int64_t(1 + below(4))));
    }
    if (isa<StageOp>(op))
      add(kLagsAttr, builder.getDenseI64ArrayAttr({int64_t(below(3)), 0}));
    if (isa<StageOp>(op))
      add("worker", builder.getI64IntegerAttr(1));
    if (isa<ScheduleOp>(op)) {
      add("wave", builder.getI64IntegerAttr(int64_t(1 + below(3))));
      add("distance", builder.getI64IntegerAttr(int64_t(below(3))));
    }
    if (isa<CompensateOp>(op))
      add(kCompensatesFromAttr, builder.getI64IntegerAttr(2));
    if (choices.empty())
      continue;
    NamedAttribute choice = pick(ArrayRef(choices));
    return setAttribute(op, choice.getName(), choice.getValue());
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Returns true if the operands of all ops in the block stand above their uses.
static bool dominates(Block *block) {
  for (Operation &op : *block) {
    WalkResult result = op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *source = operand.getDefiningOp();
        if (source && source->getBlock() == block &&
            !source->isBeforeInBlock(&op) && source != &op)
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return false;
  }
  return true;
}

/// To the order, or the function, of another device.
bool Mutator::moveToDevice() {
  SmallVector<Operation *> ops = collect([](Operation *op) {
    return isa<RunOp, SendOp, RecvOp, AllReduceOp>(op) ||
           (isa<StartRecvOp, StartSendOp, AwaitOp, MarkOp, func::CallOp,
                StartAllReduceOp>(op) &&
            op->getParentOfType<func::FuncOp>());
  });
  for (int tries = 0; tries < 100 && !ops.empty(); ++tries) {
    Operation *op = pick<Operation *>(ops);
    Operation *own = op->getParentOfType<OrderOp>();
    if (!own)
      own = op->getParentOfType<func::FuncOp>();
    // Somebody else's op of the same kind tells where.
    SmallVector<Operation *> places;
    for (Operation *other : ops) {
      Operation *there = other->getParentOfType<OrderOp>();
      if (!there)
        there = other->getParentOfType<func::FuncOp>();
      if (there != own && there->getParentOp() == own->getParentOp())
        places.push_back(other);
    }
    if (places.empty())
      continue;
    Operation *place = pick<Operation *>(places);
    describe(op, "moves to another device");
    if (op->getNumOperands() == 0) {
      op->moveBefore(place);
      return true;
    }
    // Operands are found there, by type and, of slots, by place.
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      SmallVector<Value> fitting;
      for (Operation &other : *place->getBlock()) {
        if (&other == place)
          break;
        for (Value result : other.getResults())
          if (result.getType() == operand.getType())
            fitting.push_back(result);
      }
      if (fitting.empty())
        break;
      operands.push_back(pick<Value>(fitting));
    }
    if (operands.size() != op->getNumOperands() || !op->use_empty())
      continue;
    op->moveBefore(place);
    op->setOperands(operands);
    return true;
  }
  return false;
}

bool Mutator::changeOperand(Kind kind) {
  SmallVector<Operation *> ops = collect([](Operation *op) {
    return op->getNumOperands() > 0 && op->getParentOp();
  });
  for (int tries = 0; tries < 200 && !ops.empty(); ++tries) {
    Operation *op = pick<Operation *>(ops);
    unsigned i = below(op->getNumOperands());
    Value value = op->getOperand(i);
    if (kind == ExchangeOperands) {
      // With one of its own, or with that of another op of the block.
      SmallVector<OpOperand *> others;
      for (Operation &other : *op->getBlock())
        if (other.getName() == op->getName())
          for (OpOperand &operand : other.getOpOperands())
            if (operand.get() != value &&
                operand.get().getType() == value.getType())
              others.push_back(&operand);
      if (others.empty())
        continue;
      OpOperand *second = pick<OpOperand *>(others);
      if (op->hasTrait<OpTrait::IsCommutative>() && second->getOwner() == op)
        continue;
      describe(op, "exchanges operand " + llvm::Twine(i) + " with operand " +
                       llvm::Twine(second->getOperandNumber()) + " of " +
                       (second->getOwner() == op ? "itself" : "another"));
      Value former = second->get();
      second->set(value);
      op->setOperand(i, former);
      if (dominates(op->getBlock()))
        return true;
      op->setOperand(i, value);
      second->set(former);
      continue;
    }
    SmallVector<Value> others;
    for (Operation &other : *op->getBlock()) {
      if (&other == op)
        break;
      for (Value result : other.getResults())
        if (result != value && result.getType() == value.getType())
          others.push_back(result);
    }
    for (BlockArgument argument : op->getBlock()->getArguments())
      if (argument != value && argument.getType() == value.getType())
        others.push_back(argument);
    if (others.empty())
      continue;
    describe(op, "replaces operand " + llvm::Twine(i));
    op->setOperand(i, pick<Value>(others));
    return true;
  }
  return false;
}

/// The mathematics: bodies, constants, numbers of optimizer and method.
bool Mutator::changeMath(Kind kind) {
  if (kind == MathParameter) {
    for (auto training : module.getOps<TrainingOp>())
      for (int tries = 0; tries < 20; ++tries) {
        SmallVector<NamedAttribute> attributes;
        for (NamedAttribute attribute : training->getAttrs())
          if (isParameterOfTraining(training, attribute.getName()))
            attributes.push_back(attribute);
        if (attributes.empty())
          return false;
        NamedAttribute attribute = pick(ArrayRef(attributes));
        Attribute value = change(attribute.getValue(), ChangeNumber, training);
        if (value && value != attribute.getValue())
          return setAttribute(training, attribute.getName(), value);
      }
    return false;
  }
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (!isKernelCode(op))
      return;
    auto constant = dyn_cast<arith::ConstantOp>(op);
    if (kind == MathConstant
            ? constant && isa<FloatAttr>(constant.getValue())
            : isa<arith::SubFOp, arith::DivFOp, arith::AddFOp>(op) &&
                  op->getOperand(0) != op->getOperand(1))
      ops.push_back(op);
  });
  if (ops.empty())
    return false;
  Operation *op = pick<Operation *>(ops);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = cast<FloatAttr>(constant.getValue());
    return setAttribute(op, constant.getValueAttrName(),
                        FloatAttr::get(number.getType(),
                                       number.getValueAsDouble() * 0.5 + 0.25));
  }
  describe(op, "exchanges the operands");
  Value first = op->getOperand(0);
  op->setOperand(0, op->getOperand(1));
  op->setOperand(1, first);
  return true;
}

bool Mutator::mutate(ModuleOp program, Kind kind) {
  module = program;
  context = program.getContext();
  auto any = [](Operation *) { return true; };
  switch (kind) {
  case EraseOp: {
    SmallVector<Operation *> ops =
        collect([](Operation *op) { return op->use_empty(); });
    if (ops.empty())
      return false;
    Operation *op = pick<Operation *>(ops);
    describe(op, "erases");
    op->erase();
    return true;
  }
  case DuplicateOp: {
    SmallVector<Operation *> ops = collect(any);
    Operation *op = pick<Operation *>(ops);
    describe(op, "duplicates");
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    Operation *copy = builder.clone(*op);
    if (auto name = SymbolTable::getSymbolName(op); name && below(2))
      SymbolTable::setSymbolName(copy, (name.getValue() + ".again").str());
    return true;
  }
  case SwapOps:
  case MoveOp:
    for (int tries = 0; tries < 100; ++tries) {
      SmallVector<Operation *> ops = collect(any);
      Operation *op = pick<Operation *>(ops);
      Block *block = op->getBlock();
      if (block->getOperations().size() < 2)
        continue;
      SmallVector<Operation *> others;
      if (kind == SwapOps) {
        if (Operation *next = op->getNextNode())
          others.push_back(next);
      } else {
        for (Operation &other : *block)
          others.push_back(&other);
      }
      if (others.empty())
        continue;
      Operation *place = pick<Operation *>(others);
      if (place == op || place->hasTrait<OpTrait::IsTerminator>())
        continue;
      Operation *former = op->getNextNode();
      op->moveAfter(place);
      if (dominates(block))
        return describe(op, kind == SwapOps ? "swaps with the next" : "moves");
      if (former)
        op->moveBefore(former);
      else
        op->moveBefore(block, block->end());
    }
    return false;
  case MoveToDevice:
    return moveToDevice();
  case Retarget:
  case ChangeNumber:
  case ChangeEnum:
  case ChangeText:
  case ChangeType:
  case ChangeList:
  case EraseAttribute:
    return changeAttribute(kind);
  case AddAttribute:
    return addAttribute();
  case ExchangeOperands:
  case ReplaceOperand:
    return changeOperand(kind);
  case MathConstant:
  case MathOperands:
  case MathParameter:
    return changeMath(kind);
  case NumKinds:
    break;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Verdicts
//===----------------------------------------------------------------------===//

/// Returns the label of the rule that a message starts with, or "op" where an
/// op or a parser finds fault otherwise.
static std::string findRule(StringRef message) {
  constexpr llvm::StringLiteral kSubject("' op ");
  if (size_t at = message.find(kSubject); at != StringRef::npos)
    message = message.drop_front(at + kSubject.size());
  StringRef label = message.take_until([](char c) { return c == ':'; });
  bool isLabel = label.size() > 1 && label.size() < message.size() &&
                 llvm::isUpper(label.front()) &&
                 llvm::all_of(label.drop_front(), llvm::isDigit);
  return isLabel ? label.str() : "op";
}

namespace {
struct Verdict {
  bool isAccepted = false;
  std::string rule, message;
};
} // namespace

/// Asks the verifiers about a mutant; `text` is the one that can be written.
static Verdict judge(ModuleOp changed, std::string &text) {
  Verdict verdict;
  MLIRContext *context = changed.getContext();
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        verdict.message.empty())
      verdict.message = diagnostic.str();
    return success();
  });
  bool fails = failed(mlir::verify(changed));
  OwningOpRef<ModuleOp> parsed;
  if (!fails) {
    // A program is a text: what that does not hold is not there.
    llvm::raw_string_ostream stream(text);
    OpPrintingFlags flags;
    flags.enableDebugInfo().assumeVerified();
    changed->print(stream, flags);
    parsed = parseSourceString<ModuleOp>(text, context);
    fails = !parsed;
  }
  if (!fails) {
    ModuleOp mutant = *parsed;
    Level level = detectLevel(mutant);
    StringRef pipeline = level >= Level::Program
                             ? "pipeline-verify,pipeline-verify-program"
                             : "pipeline-verify,pipeline-verify-schedule,"
                               "lower-schedule-to-program,pipeline-verify";
    auto manager = PassManager::on<ModuleOp>(context);
    fails = level < Level::Schedule ||
            failed(parsePassPipeline(pipeline, manager)) ||
            failed(manager.run(mutant));
    if (level < Level::Schedule && verdict.message.empty())
      verdict.message = "is no program with a schedule any more";
  }
  verdict.isAccepted = !fails;
  if (fails) {
    StringRef message = verdict.message;
    verdict.rule = findRule(message);
    for (char &c : verdict.message)
      if (c == '\t' || c == '\n')
        c = ' ';
  }
  return verdict;
}

/// Returns a number that equal programs have.
static uint64_t computeHash(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // The form that needs no op to be valid.
  module->print(stream, OpPrintingFlags().printGenericOpForm());
  return llvm::xxh3_64bits(text);
}

static std::set<uint64_t> readHashes(StringRef path) {
  std::set<uint64_t> hashes;
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> file =
      llvm::MemoryBuffer::getFile(path);
  if (!file)
    return hashes;
  for (llvm::line_iterator line(**file); !line.is_at_eof(); ++line) {
    uint64_t hash = 0;
    if (!line->getAsInteger(16, hash))
      hashes.insert(hash);
  }
  return hashes;
}

int main(int argc, char **argv) {
  llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::Required,
                                   llvm::cl::desc("PROGRAM"));
  llvm::cl::opt<uint64_t> seed("seed", llvm::cl::init(1));
  llvm::cl::opt<unsigned> count("count", llvm::cl::init(50));
  llvm::cl::opt<std::string> out("out", llvm::cl::Required);
  llvm::cl::opt<bool> withoutReplay("without-replay");
  llvm::cl::opt<std::string> knownPath(
      "known", llvm::cl::desc("Hashes of mutants made so far; grows by these"));
  llvm::cl::ParseCommandLineOptions(argc, argv, "Changes programs at random\n");

  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllPasses();
  registerDialects(registry);
  registerPasses();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> program =
      parseSourceFile<ModuleOp>(input.getValue(), &context);
  if (!program)
    return 1;
  // Without it, nothing but the program says what the program is. Whether a
  // change of the mathematics agrees with a replay cannot be asked then.
  if (withoutReplay)
    for (ModuleOp nested :
         llvm::make_early_inc_range(program->getOps<ModuleOp>()))
      nested.erase();
  std::set<uint64_t> known = readHashes(knownPath);
  known.insert(computeHash(*program));
  std::unique_ptr<llvm::raw_fd_ostream> knownFile;
  if (!knownPath.empty()) {
    std::error_code error;
    knownFile = std::make_unique<llvm::raw_fd_ostream>(
        knownPath, error, llvm::sys::fs::OF_Append);
    if (error) {
      llvm::errs() << knownPath << ": " << error.message() << '\n';
      return 1;
    }
  }
  unsigned kinds = withoutReplay ? unsigned(MathConstant) : unsigned(NumKinds);
  for (unsigned number : llvm::seq(count.getValue())) {
    // Programs get few mutants each: another seed begins with another kind.
    auto kind = static_cast<Kind>((number + 7 * seed) % kinds);
    OwningOpRef<ModuleOp> mutant;
    Mutator mutator(seed * 1000003 + number);
    bool isNew = false;
    // Of some kinds there are few.
    constexpr int kMostTries = 10;
    for (int tries = 0; tries < kMostTries && !isNew; ++tries) {
      mutant = program->clone();
      if (!mutator.mutate(*mutant, kind))
        break;
      uint64_t hash = computeHash(*mutant);
      isNew = known.insert(hash).second;
      if (isNew && knownFile)
        *knownFile << llvm::format_hex_no_prefix(hash, 16) << '\n';
    }
    if (!isNew)
      continue;
    std::string text;
    Verdict verdict = judge(*mutant, text);
    llvm::outs() << number << '\t' << kNames[kind] << '\t'
                 << (kind >= MathConstant ? "math" : "text") << '\t'
                 << (verdict.isAccepted ? "accepted" : "rejected") << '\t'
                 << verdict.rule << '\t' << mutator.description << '\t'
                 << verdict.message << '\n';
    llvm::outs().flush();
    if (!verdict.isAccepted)
      continue;
    llvm::SmallString<128> path(out.getValue());
    llvm::sys::path::append(path, std::to_string(number) + ".mlir");
    std::error_code error;
    llvm::raw_fd_ostream file(path, error);
    if (error)
      return 1;
    file << text;
  }
  return 0;
}
