//===- Import.cpp - From an ONNX file to a module -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph becomes a function: inputs and weights in, outputs out, and only
// what the outputs need.
//===----------------------------------------------------------------------===//

#include "penstock/Import/Import.h"
#include "Importer.h"
#include "ModelFile.h"
#include "dialects/Onnx/Onnx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

// Options name dimensions (NAME) or places (INPUT:AXIS). The batch dimension is
// the leading one of the inputs, where it is open; or a leading 1.

using ::onnx::TensorShapeProto;
using ::onnx::ValueInfoProto;

namespace {
struct BoundInputs {
  SmallVector<RankedTensorType> types;
  /// Set when the inputs had a leading 1, and have this size instead.
  std::optional<int64_t> reboundBatch;
};

/// A dimension of an input.
struct Place {
  StringRef input;
  int64_t axis;
  const TensorShapeProto::Dimension *dim;

  bool isOpen() const { return !dim->has_dim_value() || dim->dim_value() < 0; }
  /// "" for a dimension without a name.
  StringRef getName() const {
    return dim->has_dim_param() ? StringRef(dim->dim_param()) : StringRef();
  }
  std::string getKey() const { return (input + ":" + Twine(axis)).str(); }
};

} // namespace

/// One clause per open dimension, e.g.
/// "'seq' (input 'x', axis 1; --dim seq=N)".
static std::string describeUnbound(ArrayRef<Place> places) {
  MapVector<StringRef, SmallVector<Place>> named;
  SmallVector<std::string> clauses;
  auto at = [](const Place &place) {
    return ("input '" + place.input + "', axis " + Twine(place.axis)).str();
  };
  auto flag = [](const Place &place, const Twine &key) {
    std::string text = ("--dim " + key + "=N").str();
    return place.axis == 0 ? "--microbatch-size=N or " + text : text;
  };
  for (const Place &place : places)
    if (!place.getName().empty())
      named[place.getName()].push_back(place);
  for (const auto &[name, uses] : named) {
    SmallVector<std::string> where;
    for (const Place &use : uses)
      where.push_back(at(use));
    clauses.push_back(("'" + name + "' (" + join(where, ", ") + "; " +
                       flag(uses.front(), name) + ")")
                          .str());
  }
  for (const Place &place : places)
    if (place.getName().empty())
      clauses.push_back("nameless (" + at(place) + "; " +
                        flag(place, place.getKey()) + ")");
  return join(clauses, ", ");
}

static Error checkOptions(ArrayRef<Place> places,
                          const ImportOptions &options) {
  for (const auto &[key, size] : options.dims) {
    if (size < 1)
      return createStringError("--dim " + key + "=" + Twine(size) +
                               ": a dimension is at least 1");
    auto matches = [&, &key = key](const Place &place) {
      return place.isOpen() &&
             (place.getName() == key || place.getKey() == key);
    };
    if (any_of(places, matches))
      continue;
    llvm::SetVector<StringRef> names;
    for (const Place &place : places)
      if (place.isOpen() && !place.getName().empty())
        names.insert(place.getName());
    return createStringError(
        "--dim " + key + "=" + Twine(size) +
        ": no input has such an open dimension" +
        (names.empty() ? std::string()
                       : "; it has: " + join(names.getArrayRef(), ", ")));
  }
  if (options.microbatchSize && *options.microbatchSize < 1)
    return createStringError(
        "--microbatch-size=" + Twine(*options.microbatchSize) +
        ": a microbatch has at least 1 sample");
  return Error::success();
}

/// Returns static types for `inputs`. An error names every dimension that no
/// option binds, with its input and the option to use.
static Expected<BoundInputs> bindInputs(MLIRContext *context,
                                        ArrayRef<const ValueInfoProto *> inputs,
                                        const ImportOptions &options) {
  // 1. All dimensions of all inputs.
  SmallVector<Place> places;
  for (const ValueInfoProto *input : inputs) {
    if (!input->type().has_tensor_type())
      return createStringError("input '" + input->name() + "' is not a tensor");
    if (!input->type().tensor_type().has_shape())
      return createStringError("input '" + input->name() +
                               "' has no shape, not even a rank");
    const auto &dims = input->type().tensor_type().shape().dim();
    for (int axis = 0; axis < dims.size(); ++axis)
      places.push_back({input->name(), axis, &dims[axis]});
  }
  if (Error error = checkOptions(places, options))
    return std::move(error);

  // 2. The batch dimension: open leading dimensions, or else leading 1s.
  std::optional<int64_t> batch = options.microbatchSize;
  auto isLeadingOpen = [](const Place &place) {
    return place.axis == 0 && place.isOpen();
  };
  bool openBatch = any_of(places, isLeadingOpen);
  llvm::SetVector<StringRef> batchNames;
  for (const Place &place : places)
    if (isLeadingOpen(place) && !place.getName().empty())
      batchNames.insert(place.getName());

  // 3. Sizes.
  BoundInputs bound;
  std::map<std::string, int64_t> sizes;
  SmallVector<Place> unbound;
  for (const Place &place : places) {
    int64_t size = place.isOpen() ? -1 : place.dim->dim_value();
    if (place.isOpen()) {
      bool isBatch = place.axis == 0 || batchNames.contains(place.getName());
      auto option = options.dims.find(place.getKey());
      if (option == options.dims.end())
        option = options.dims.find(place.getName().str());
      if (option != options.dims.end()) {
        size = option->second;
        if (isBatch && place.axis == 0 && batch && *batch != size)
          return createStringError(
              "--dim " + option->first + "=" + Twine(size) +
              " and --microbatch-size=" + Twine(*batch) +
              " both bind the batch dimension of input '" + place.input + "'");
      } else if (isBatch && batch) {
        size = *batch;
      } else {
        unbound.push_back(place);
      }
    } else if (place.axis == 0 && batch && !openBatch && size != *batch) {
      if (size == 0)
        return createStringError("input '" + place.input +
                                 "' has the fixed leading dimension 0, and no "
                                 "samples; export the model with an open one");
      if (size != 1)
        return createStringError(
            "--microbatch-size=" + Twine(*batch) + ": input '" + place.input +
            "' has the fixed leading dimension " + Twine(size) +
            "; export the model with an open one, or use --microbatch-size=" +
            Twine(size));
      size = *batch;
      bound.reboundBatch = size;
    }
    sizes[place.getKey()] = size;
  }
  if (!unbound.empty())
    return createStringError("open dimensions must be bound: " +
                             describeUnbound(unbound));

  // 4. Types.
  for (const ValueInfoProto *input : inputs) {
    const auto &tensor = input->type().tensor_type();
    SmallVector<int64_t> dims;
    for (int axis = 0; axis < tensor.shape().dim_size(); ++axis)
      dims.push_back(sizes[Place{input->name(), axis, nullptr}.getKey()]);
    Expected<RankedTensorType> type =
        getTensorType(context, dims, tensor.elem_type());
    if (!type)
      return createStringError("input '" + input->name() +
                               "': " + toString(type.takeError()));
    bound.types.push_back(*type);
  }
  return bound;
}

using ::onnx::ValueInfoProto;

LogicalResult Importer::importInputs(GraphImporter &graph) {
  Block &block = function.getBody().front();
  for (const TensorRecord &tensor : file->getInitializers())
    initializerNames.insert(tensor.name);
  buffers.insert_range(file->getBuffers());
  parameters.insert_range(file->getParameters());
  for (const FoldedTensor &tensor : file->getFolded())
    if (tensor.parameters.empty())
      buffers.insert(tensor.name);
  roles.emplace(file->getModel());
  for (const ValueInfoProto &input : file->getModel().graph().input()) {
    // Old models list their initializers among the inputs.
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
    SmallVector<StringRef> names;
    for (const ValueInfoProto &output : declared)
      names.push_back(output.name());
    StringRef wanted = options.lossInput;
    if (wanted.empty() && names.size() > 1)
      return error("the model has " + Twine(names.size()) +
                   " outputs: " + join(names, ", ") +
                   "; say by --loss-input=NAME which of them enters the loss");
    if (wanted.empty())
      wanted = names.front();
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

/// A weight that no output needs which is kept.
void Importer::noteUnreached(const Weight &weight) {
  StringRef name = weight.tensor->name;
  // A running statistic counts, too: nothing computes what would move it.
  bool isStatistic = weight.role == pipeline::Role::Statistic;
  bool trains = !weight.frozen && (isStatistic || roles->others.contains(name));
  // What is tied to another one trains as that.
  if (trains && none_of(weights, [&](const Weight &other) {
        return is_contained(
            map_range(other.tied,
                      [](const Weight::Tied &tied) { return tied.name; }),
            name);
      }))
    unreached.push_back(name);
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
    if (argument.use_empty() && index >= inputs.size())
      noteUnreached(weights[index - inputs.size()]);
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
  if (options.onlyLossOutput) {
    if (failed(checkFoldedNorms()))
      return nullptr;
    warnOfMerged();
    warnOfHeldScalars();
  }
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
