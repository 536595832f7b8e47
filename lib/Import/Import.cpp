//===- Import.cpp - From an ONNX file to a module -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the program around the graph: a model is a program of one stage with
// one forward task. Decides which initialisers are variables, and which train.
//===----------------------------------------------------------------------===//

#include "penstock/Import/Import.h"

#include "Dimensions.h"
#include "GraphImporter.h"
#include "ModelFile.h"
#include "OperandRoles.h"

#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Support/Assert.h"
#include "penstock/Support/MappedFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

using namespace llvm;
using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;
using ::onnx::ValueInfoProto;

namespace {

/// A float initialiser that is an argument of the function.
struct Weight {
  const TensorRecord *tensor;
  RankedTensorType type;
  ByteRange range;
  bool frozen;
  pipeline::Role role;
  /// Others that are the same parameter (--tie).
  SmallVector<std::pair<StringRef, ByteRange>> tied = {};
};

class Importer {
public:
  Importer(MLIRContext *context, StringRef path, const ImportOptions &options)
      : path(path), options(options), builder(context),
        loc(builder.getUnknownLoc()) {}

  OwningOpRef<ModuleOp> run();

private:
  LogicalResult importInputs(GraphImporter &graph);
  LogicalResult importInitializers(GraphImporter &graph);
  LogicalResult importInitializer(GraphImporter &graph,
                                  const TensorRecord &tensor);
  FailureOr<bool> isFrozen(const TensorRecord &tensor, RankedTensorType type,
                           const ByteRange &range);
  LogicalResult tieInitializers(GraphImporter &graph);
  void warnIfUnmatched(StringRef flag, StringRef pattern);
  LogicalResult importOutputs(GraphImporter &graph);
  void dropDeadCode();
  LogicalResult bindArguments();
  LogicalResult buildProgram(ModuleOp module);
  StringAttr makeSymbol(StringRef wanted);
  InFlightDiagnostic error(const Twine &message) {
    return emitError(loc) << message;
  }

  StringRef path;
  const ImportOptions &options;
  OpBuilder builder;
  Location loc;
  std::unique_ptr<ModelFile> file;
  func::FuncOp function;
  /// By block argument; first the inputs, then the weights.
  SmallVector<const ValueInfoProto *> inputs;
  SmallVector<Weight> weights;
  SmallVector<StringRef> outputs, unusedInputs;
  /// Float initialisers that became constants.
  llvm::MapVector<Operation *, Attribute> constants;
  llvm::StringSet<> initializerNames;
  /// Of initialisers that are no weights.
  std::optional<OperandRoles> roles;
  /// Initialisers that the exporter marks as no parameters.
  llvm::StringSet<> buffers;
  llvm::StringSet<> symbols;
};

} // namespace

/// A pattern that is searched in a name; no pattern matches nothing.
static Expected<bool> matches(StringRef flag, StringRef pattern,
                              StringRef name) {
  if (pattern.empty())
    return false;
  Regex regex(pattern);
  std::string problem;
  if (!regex.isValid(problem))
    return createStringError(flag + "=" + pattern +
                             " is not a regular expression: " + problem);
  return regex.match(name);
}

LogicalResult Importer::importInputs(GraphImporter &graph) {
  Block &block = function.getBody().front();
  for (const TensorRecord &tensor : file->getInitializers())
    initializerNames.insert(tensor.name);
  buffers.insert_range(file->getBuffers());
  roles.emplace(file->getModel());
  for (const ValueInfoProto &input : file->getModel().graph().input()) {
    // Old models list their initialisers among the inputs.
    if (initializerNames.contains(input.name()))
      continue;
    if (input.name().empty())
      return error("an input of the graph has no name");
    // The type comes later: an input that nothing reads needs none.
    Value argument =
        block.addArgument(UnrankedTensorType::get(builder.getF32Type()),
                          NameLoc::get(builder.getStringAttr(input.name())));
    inputs.push_back(&input);
    if (failed(graph.define(input.name(), argument)))
      return failure();
  }
  return success();
}

FailureOr<bool> Importer::isFrozen(const TensorRecord &tensor,
                                   RankedTensorType type,
                                   const ByteRange &range) {
  Expected<bool> freeze = matches("--freeze", options.freezeRegex, tensor.name);
  if (!freeze)
    return error(toString(freeze.takeError()));
  Expected<bool> train = matches("--train", options.trainRegex, tensor.name);
  if (!train)
    return error(toString(train.takeError()));
  bool finite = true;
  for (StringRef rest = range.bytes; finite && !rest.empty();
       rest = rest.drop_front(std::min(mappedPart, rest.size()))) {
    finite = allFinite(cast<FloatType>(type.getElementType()),
                       rest.take_front(mappedPart));
    file->giveBackPages();
  }
  if (*train && *freeze)
    return error("initializer '" + tensor.name +
                 "' matches both --train and --freeze");
  if (*train && !finite)
    return error("--train=" + options.trainRegex + ": initializer '" +
                 tensor.name + "' has infinite or NaN values");
  // Statistics move, whatever trains.
  if (roles->statistics.contains(tensor.name))
    return *freeze;
  // --train names all that trains. Without it, everything does but what the
  // exporter calls a buffer, and scalars, which are an epsilon, a scale or an
  // exponent.
  bool selected = options.trainRegex.empty()
                      ? type.getRank() > 0 && !buffers.contains(tensor.name)
                      : *train;
  return *freeze || !finite || !selected;
}

LogicalResult Importer::importInitializer(GraphImporter &graph,
                                          const TensorRecord &tensor) {
  auto fail = [&](Error problem) {
    return error("initializer '" + tensor.name +
                 "': " + toString(std::move(problem)));
  };
  if (tensor.name.empty())
    return error("an initializer has no name");
  Expected<RankedTensorType> type =
      getTensorType(builder.getContext(), tensor.dims, tensor.dataType);
  if (!type)
    return fail(type.takeError());
  Location nameLoc = NameLoc::get(builder.getStringAttr(tensor.name));
  auto defineConstant = [&](DenseElementsAttr value) {
    Value constant =
        value.getElementType().isUnsignedInteger()
            ? NodeOp::create(builder, nameLoc, TypeRange(*type),
                             builder.getStringAttr("Constant"), ValueRange(),
                             builder.getI64IntegerAttr(1), StringAttr(),
                             builder.getDictionaryAttr(
                                 builder.getNamedAttr("value", value)))
                  .getResult(0)
            : arith::ConstantOp::create(builder, nameLoc, value).getResult();
    return graph.define(tensor.name, constant);
  };

  // 1. Values that must be decoded are not weights: the file has been copied
  // otherwise.
  if (!tensor.external && !tensor.hasBytes) {
    Expected<::onnx::TensorProto> proto = file->decode(tensor);
    if (!proto)
      return error(toString(proto.takeError()));
    Expected<DenseElementsAttr> value =
        getElements(builder.getContext(), *proto);
    if (!value)
      return fail(value.takeError());
    return defineConstant(*value);
  }

  // 2. Integers are indices and shapes.
  Expected<ByteRange> range = file->getBytes(tensor, getByteSize(*type));
  if (!range)
    return error(toString(range.takeError()));
  if (!isa<FloatType>(type->getElementType()))
    return defineConstant(getElements(*type, range->bytes));

  // 3. Floats are weights, except for small ones that are frozen by nature.
  FailureOr<bool> frozen = isFrozen(tensor, *type, *range);
  if (failed(frozen))
    return failure();
  Expected<bool> named = matches("--freeze", options.freezeRegex, tensor.name);
  constexpr int64_t kSmall = 16;
  if (roles->extents.contains(tensor.name) ||
      (*frozen && !(named && *named) && type->getNumElements() <= kSmall)) {
    if (failed(defineConstant(getElements(*type, range->bytes))))
      return failure();
    constants[graph.lookup(tensor.name).getDefiningOp()] =
        builder.getStringAttr(tensor.name);
    return success();
  }
  if (!type->getNumElements())
    return error("initializer '" + tensor.name + "' has no elements");
  weights.push_back({&tensor, *type, *range, *frozen,
                     roles->statistics.contains(tensor.name)
                         ? pipeline::Role::Statistic
                         : pipeline::Role::Parameter});
  Value argument = function.getBody().front().addArgument(*type, nameLoc);
  return graph.define(tensor.name, argument);
}

void Importer::warnIfUnmatched(StringRef flag, StringRef pattern) {
  if (pattern.empty() || any_of(initializerNames.keys(), [&](StringRef name) {
        return Regex(pattern).match(name);
      }))
    return;
  emitWarning(loc) << flag << "=" << pattern
                   << " matches the name of no initializer";
}

/// The second of a pair becomes the first. Nodes have not been imported, so
/// that they only ever see the first.
LogicalResult Importer::tieInitializers(GraphImporter &graph) {
  std::map<std::string, std::string> replaced;
  for (auto [first, second] : options.ties) {
    std::string flag = "--tie " + first + "=" + second + ": ";
    // What is tied to something else already stands for that.
    for (std::string *name : {&first, &second})
      for (auto it = replaced.find(*name); it != replaced.end();
           it = replaced.find(*name))
        *name = it->second;
    auto find = [&](StringRef name) {
      return llvm::find_if(weights, [&](const Weight &weight) {
        return weight.tensor->name == name;
      });
    };
    for (const std::string &name : {first, second}) {
      if (!initializerNames.contains(name))
        return error(flag + "the model has no initializer '" + name + "'");
      if (find(name) == weights.end())
        return error(flag + "initializer '" + name +
                     "' is no float tensor that could train");
    }
    Weight &kept = *find(first), &other = *find(second);
    if (&kept == &other)
      return error(flag + "these are one initializer");
    if (kept.type != other.type || kept.range.bytes != other.range.bytes)
      return error(flag + "the two are not equal");
    if (kept.frozen != other.frozen)
      return error(flag + "one of the two is frozen");
    graph.redefine(second, graph.lookup(first));
    replaced[second] = first;
    kept.tied.push_back({other.tensor->name, other.range});
    kept.tied.append(other.tied);
    other.tied.clear();
  }
  return success();
}

LogicalResult Importer::importInitializers(GraphImporter &graph) {
  if (file->hasSparseInitializers())
    return error("sparse initializers are not supported; store them densely");
  for (const TensorRecord &tensor : file->getInitializers())
    if (failed(importInitializer(graph, tensor)))
      return failure();
  if (failed(tieInitializers(graph)))
    return failure();
  warnIfUnmatched("--train", options.trainRegex);
  warnIfUnmatched("--freeze", options.freezeRegex);
  return success();
}

LogicalResult Importer::importOutputs(GraphImporter &graph) {
  const auto &declared = file->getModel().graph().output();
  if (declared.empty())
    return error("the graph has no output");
  SmallVector<Value> values;
  auto add = [&](StringRef name) -> LogicalResult {
    Value value = graph.lookup(name);
    if (!value)
      return error("output '" + name + "' is not computed by any node");
    outputs.push_back(name);
    values.push_back(value);
    return success();
  };
  if (options.onlyLossOutput) {
    StringRef wanted = options.lossInput.empty() ? StringRef(declared[0].name())
                                                 : StringRef(options.lossInput);
    SmallVector<StringRef> names;
    for (const ValueInfoProto &output : declared)
      names.push_back(output.name());
    if (!is_contained(names, wanted))
      return error(
          "--loss-input=" + wanted +
          ": the model has no such output; it has: " + join(names, ", "));
    if (failed(add(wanted)))
      return failure();
  } else {
    for (const ValueInfoProto &output : declared)
      if (failed(add(output.name())))
        return failure();
  }
  func::ReturnOp::create(builder, loc, values);
  return success();
}

void Importer::dropDeadCode() {
  Block &block = function.getBody().front();
  for (Operation &op : make_early_inc_range(reverse(block)))
    if (!isa<func::ReturnOp>(op) && op.use_empty()) {
      constants.erase(&op);
      op.erase();
    }
  // The arguments: inputs first, then weights.
  SmallVector<const ValueInfoProto *> liveInputs;
  SmallVector<Weight> liveWeights;
  BitVector dead(block.getNumArguments());
  for (BlockArgument argument : block.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (argument.use_empty()) {
      dead.set(index);
      if (index < inputs.size())
        unusedInputs.push_back(inputs[index]->name());
    } else if (index < inputs.size()) {
      liveInputs.push_back(inputs[index]);
    } else {
      liveWeights.push_back(weights[index - inputs.size()]);
    }
  }
  block.eraseArguments(dead);
  inputs = std::move(liveInputs);
  weights = std::move(liveWeights);
}

LogicalResult Importer::bindArguments() {
  Expected<BoundInputs> bound =
      bindInputs(builder.getContext(), inputs, options);
  if (!bound)
    return error(toString(bound.takeError()));
  Block &block = function.getBody().front();
  for (auto [argument, type] : zip(block.getArguments(), bound->types))
    argument.setType(type);
  if (bound->reboundBatch)
    function->setAttr(kReboundBatchAttr,
                      builder.getI64IntegerAttr(*bound->reboundBatch));
  Operation *terminator = block.getTerminator();
  function.setFunctionType(builder.getFunctionType(
      block.getArgumentTypes(), terminator->getOperandTypes()));
  for (auto [index, name] : enumerate(outputs))
    function.setResultAttr(index, kOutputNameAttr, builder.getStringAttr(name));
  return success();
}

StringAttr Importer::makeSymbol(StringRef wanted) {
  std::string name = wanted.str();
  for (unsigned copy = 1; !symbols.insert(name).second; ++copy)
    name = (wanted + "." + Twine(copy)).str();
  return builder.getStringAttr(name);
}

LogicalResult Importer::buildProgram(ModuleOp module) {
  // Variables come first: their symbols are the names of the initialisers.
  for (const Weight &weight : weights)
    symbols.insert(weight.tensor->name);
  StringRef graphName = file->getModel().graph().name();
  StringRef stem = graphName.empty() ? sys::path::stem(path) : graphName;
  std::string base = stem.empty() ? "model" : stem.str();
  StringAttr stage = makeSymbol(base);
  auto stageRef = FlatSymbolRefAttr::get(stage);
  function.setSymNameAttr(makeSymbol(base + ".forward"));
  StringAttr task = makeSymbol(base + ".F");

  builder.setInsertionPointToStart(module.getBody());
  pipeline::StageOp::create(builder, loc, stage, DenseI64ArrayAttr());
  SmallVector<FlatSymbolRefAttr> channels;
  Block &block = function.getBody().front();
  for (auto [index, input] : enumerate(inputs)) {
    StringAttr symbol = makeSymbol(input->name());
    channels.push_back(FlatSymbolRefAttr::get(symbol));
    pipeline::ChannelOp::create(
        builder, loc, symbol,
        builder.getTypeArrayAttr(block.getArgument(index).getType()),
        builder.getStringAttr(input->name()), StringAttr(), IntegerAttr(),
        IntegerAttr());
  }
  for (const Weight &weight : weights) {
    auto variable = pipeline::VariableOp::create(
        builder, loc, builder.getStringAttr(weight.tensor->name),
        TypeAttr::get(weight.type),
        pipeline::RoleAttr::get(builder.getContext(), weight.role), stageRef,
        pipeline::BytesAttr::get(builder.getContext(), weight.range.file,
                                 weight.range.offset,
                                 weight.range.bytes.size()),
        weight.frozen ? builder.getUnitAttr() : UnitAttr());
    NamedAttrList tied;
    for (const auto &[name, range] : weight.tied)
      tied.set(name,
               pipeline::BytesAttr::get(builder.getContext(), range.file,
                                        range.offset, range.bytes.size()));
    if (!tied.empty())
      variable->setAttr(pipeline::kTiedAttr,
                        tied.getDictionary(builder.getContext()));
  }

  auto taskOp = pipeline::TaskOp::create(
      builder, loc, task,
      pipeline::TaskKindAttr::get(builder.getContext(),
                                  pipeline::TaskKind::Forward),
      stageRef);
  builder.setInsertionPointToStart(taskOp.addBody());
  SmallVector<Value> operands;
  for (auto [index, channel] : enumerate(channels))
    operands.push_back(
        pipeline::TakeOp::create(builder, loc,
                                 TypeRange(block.getArgument(index).getType()),
                                 channel)
            .getResult(0));
  for (const Weight &weight : weights)
    operands.push_back(pipeline::ReadOp::create(
        builder, loc, weight.type,
        FlatSymbolRefAttr::get(builder.getContext(), weight.tensor->name),
        IntegerAttr()));
  // Results are put once their types are known.
  func::CallOp::create(builder, loc, function, operands);

  module->setAttr(pipeline::kModelAttr,
                  pipeline::BytesAttr::get(builder.getContext(),
                                           file->getPath(), 0,
                                           file->getSize()));
  if (!unusedInputs.empty())
    module->setAttr(kUnusedInputsAttr, builder.getStrArrayAttr(unusedInputs));
  if (!constants.empty())
    module->setAttr(kConstantInitializersAttr,
                    builder.getArrayAttr(SmallVector<Attribute>(
                        llvm::make_second_range(constants))));
  return success();
}

OwningOpRef<ModuleOp> Importer::run() {
  // 1. The file.
  Expected<std::unique_ptr<ModelFile>> opened =
      ModelFile::open(path, options.binaryCopy);
  if (!opened) {
    error(toString(opened.takeError()));
    return nullptr;
  }
  file = std::move(*opened);

  // 2. The function: arguments, nodes, outputs.
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(builder, loc, "forward",
                                  builder.getFunctionType({}, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(&function.getBody().emplaceBlock());
  GraphImporter graph(builder, file->getModel());
  if (failed(graph.prepare()) || failed(importInputs(graph)) ||
      failed(importInitializers(graph)) || failed(graph.importNodes()) ||
      failed(importOutputs(graph)))
    return nullptr;

  // 3. Only what the outputs need; static types for it.
  dropDeadCode();
  if (failed(bindArguments()))
    return nullptr;

  // 4. The program around it.
  if (failed(buildProgram(*module)) || failed(mlir::verify(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> penstock::importModel(MLIRContext *context,
                                            StringRef path,
                                            const ImportOptions &options) {
  context->loadDialect<OnnxDialect, pipeline::PipelineDialect,
                       func::FuncDialect, arith::ArithDialect>();
  return Importer(context, path, options).run();
}
