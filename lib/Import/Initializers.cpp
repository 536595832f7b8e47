//===- Initializers.cpp - Weights and constants of a model ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides which initializers are variables, which of them train, and which are
// one parameter.
//===----------------------------------------------------------------------===//

#include "Importer.h"

#include "dialects/Onnx/Onnx.h"
#include "penstock/Import/OperatorRegistry.h"
#include "penstock/Support/ByteSize.h"
#include "penstock/Support/MappedFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/Regex.h"

using namespace llvm;
using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

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
  if (roles->statistics.contains(tensor.name)) {
    if (options.onlyLossOutput && !*freeze &&
        roles->others.contains(tensor.name))
      return error("initializer '" + tensor.name +
                   "' is a running statistic and something else as well, so "
                   "that it cannot train; export the model without merging "
                   "equal initializers, or hold it with --freeze");
    return *freeze;
  }
  // --train names all that trains. Without it, everything does but what the
  // exporter calls a buffer, and scalars, which are an epsilon, a scale or an
  // exponent unless it calls them parameters.
  bool isParameter = type.getRank() ? !buffers.contains(tensor.name)
                                    : parameters.contains(tensor.name);
  bool selected = options.trainRegex.empty() ? isParameter : *train;
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

  // 3. Floats are weights, except for small ones that are constants.
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

/// How often the values of `argument` are read. Nodes that take a part of them
/// or replace one count as a single reader, as parts of one parameter do.
static unsigned countReaders(BlockArgument argument) {
  SmallPtrSet<Operation *, 4> readers;
  bool hasParts = false;
  for (OpOperand &use : argument.getUses()) {
    auto node = dyn_cast<NodeOp>(use.getOwner());
    const Operator *entry = node ? lookupOperator(node) : nullptr;
    if (entry && entry->shapes.contains(use.getOperandNumber()))
      continue;
    if (entry && entry->parts.contains(use.getOperandNumber()))
      hasParts = true;
    else
      readers.insert(use.getOwner());
  }
  return readers.size() + hasParts;
}

/// Returns true if only nodes of one operator read `argument`. A tied embedding
/// is looked up, and multiplied by.
static bool isReadAlike(BlockArgument argument) {
  StringRef first;
  return all_of(argument.getUsers(), [&](Operation *reader) {
    auto node = dyn_cast<NodeOp>(reader);
    if (first.empty() && node)
      first = node.getOpType();
    return node && node.getOpType() == first;
  });
}

/// Exporters that optimize make parameters one that happen to be equal at
/// first, like the ones and zeros of all norms. Values that differ from each
/// other are never equal by chance: where such a parameter is read n times in
/// the same way, a block is used n times, and all that it has is.
void Importer::warnOfMerged() {
  SmallVector<std::pair<const Weight *, unsigned>> uniform;
  SmallSet<unsigned, 4> blockUses;
  for (auto [argument, weight] :
       zip(function.getArguments().drop_front(inputs.size()), weights)) {
    if (weight.role != pipeline::Role::Parameter)
      continue;
    StringRef bytes = weight.range.bytes;
    size_t element = weight.type.getElementTypeBitWidth() / 8;
    unsigned readers = countReaders(argument);
    if (bytes.drop_front(element) != bytes.drop_back(element)) {
      if (isReadAlike(argument))
        blockUses.insert(readers);
    } else if (!weight.frozen && readers > 1) {
      uniform.push_back({&weight, readers});
    }
  }
  for (auto [weight, readers] : uniform)
    if (!blockUses.contains(readers))
      emitWarning(loc) << "initializer '" << weight->tensor->name
                       << "' has one value everywhere, and " << readers
                       << " nodes read it: it trains as one parameter. If it "
                          "was several, export the model without merging equal "
                          "initializers (PyTorch: optimize=False)";
}

/// PyTorch's older exporter writes what a module has, parameters and buffers,
/// and does not say which is which. A scalar of it, like a temperature, may be
/// one that PyTorch would train.
void Importer::warnOfHeldScalars() {
  if (!options.trainRegex.empty() || !parameters.empty() || !buffers.empty() ||
      file->getModel().producer_name() != "pytorch")
    return;
  SmallVector<StringRef> held;
  for (auto [op, attribute] : constants) {
    StringRef name = cast<StringAttr>(attribute).getValue();
    // What it folded has names of its own.
    if (cast<RankedTensorType>(op->getResultTypes().front()).getRank() == 0 &&
        !name.starts_with("onnx::") &&
        !cantFail(matches("--freeze", options.freezeRegex, name)))
      held.push_back(name);
  }
  if (!held.empty())
    emitWarning(loc) << held.size()
                     << " scalar initializers do not train, the first '"
                     << held.front()
                     << "': the file does not say whether they are "
                        "parameters; if they are, name all that trains with "
                        "--train, else hold them with --freeze";
}

/// Fails for norms that were computed into a convolution: they no longer
/// normalize, and a model that trains in their place is another one.
LogicalResult Importer::checkFoldedNorms() {
  ArrayRef<std::string> nodes = file->getFoldedNorms();
  if (options.allowFolded || nodes.empty())
    return success();
  return error("the exporter has folded the batch norms behind " +
               Twine(nodes.size()) + " node" + (nodes.size() == 1 ? "" : "s") +
               " into weights, first that behind '" + nodes.front() +
               "', so that they would not train as such; export the model in "
               "training mode without that (PyTorch: model.train(), "
               "optimize=False), or accept it with --allow-folded");
}

Weight *Importer::findWeight(StringRef name) {
  auto found = llvm::find_if(weights, [&](const Weight &weight) {
    return weight.tensor->name == name;
  });
  return found == weights.end() ? nullptr : found;
}

/// `folded` becomes `source` with its axes in this order, in its own shape.
void Importer::redefineAsOrdered(GraphImporter &graph, Weight &source,
                                 const Weight &folded,
                                 ArrayRef<int64_t> order) {
  StringRef name = folded.tensor->name;
  Location nameLoc = NameLoc::get(builder.getStringAttr(name));
  auto makeNode = [&](StringRef op, int64_t version, RankedTensorType type,
                      ValueRange operands, ArrayRef<NamedAttribute> params) {
    return NodeOp::create(builder, nameLoc, TypeRange(type),
                          builder.getStringAttr(op), operands,
                          builder.getI64IntegerAttr(version), StringAttr(),
                          builder.getDictionaryAttr(params))
        .getResult(0);
  };
  Value value = graph.lookup(source.tensor->name);
  Weight::Tied &tied =
      source.tied.emplace_back(Weight::Tied{name, folded.range});
  RankedTensorType type = source.type;
  if (!is_sorted(order)) {
    tied.order = to_vector(order);
    type = type.clone(applyPermutation(type.getShape(), order));
    value = makeNode(
        "Transpose", 13, type, value,
        builder.getNamedAttr("perm", builder.getDenseI64ArrayAttr(order)));
  }
  if (type != folded.type) {
    auto dims =
        DenseElementsAttr(builder.getI64TensorAttr(folded.tensor->dims));
    Value shape = arith::ConstantOp::create(builder, nameLoc, dims);
    value = makeNode("Reshape", 14, folded.type, {value, shape}, {});
  }
  graph.redefine(name, value);
}

/// Where the exporter's optimizer left a parameter in the file and what it
/// computed of it beside it, they would train apart. The same values in another
/// shape, or in the order of a transpose, become the parameter again, if these
/// say which of its elements is which. What stands for a parameter that is gone
/// trains, and is another one if it is more than reordered.
LogicalResult Importer::unfoldInitializers(GraphImporter &graph) {
  if (!options.onlyLossOutput)
    return success();
  SmallVector<FoldedTensor> standIns;
  for (const FoldedTensor &tensor : file->getFolded()) {
    Weight *folded = findWeight(tensor.name);
    if (!folded || folded->frozen)
      continue;
    if (!tensor.parameters.empty() &&
        none_of(tensor.parameters,
                [&](const auto &name) { return findWeight(name); }))
      standIns.push_back(tensor);
    for (StringRef name : tensor.parameters) {
      Weight *source = findWeight(name);
      if (!source || source->frozen)
        continue;
      std::optional<SmallVector<int64_t>> order;
      if (tensor.parameters.size() == 1 &&
          source->type.getElementType() == folded->type.getElementType())
        order = findOrder(source->range.bytes, source->tensor->dims,
                          folded->range.bytes);
      if (!order)
        return error("initializer '" + tensor.name +
                     "' is what the exporter's optimizer computed of "
                     "parameter '" +
                     name +
                     "', which would train apart from it; export the model "
                     "without that (PyTorch: optimize=False), or hold one of "
                     "them with --freeze");
      redefineAsOrdered(graph, *source, *folded, *order);
    }
  }
  if (!standIns.empty())
    emitWarning(loc) << standIns.size()
                     << " initializers are what the exporter's optimizer "
                        "computed of parameters, the first '"
                     << standIns.front().name << "' of '"
                     << standIns.front().parameters.front()
                     << "', and train in their place: as they would where it "
                        "only reordered them; to train the parameters, export "
                        "without that (PyTorch: optimize=False)";
  return success();
}

/// The second of a pair becomes the first. Nodes have not been imported, so
/// that they only ever see the first.
LogicalResult Importer::tieInitializers(GraphImporter &graph) {
  std::map<std::string, std::string> replaced;
  for (auto [first, second] : options.ties) {
    std::string flag = (Twine("--tie ") + first + "=" + second + ": ").str();
    // What is tied to something else already stands for that.
    for (std::string *name : {&first, &second})
      for (auto it = replaced.find(*name); it != replaced.end();
           it = replaced.find(*name))
        *name = it->second;
    for (const std::string &name : {first, second}) {
      if (!initializerNames.contains(name))
        return error(Twine(flag) + "the model has no initializer '" + name +
                     "'");
      if (!findWeight(name))
        return error(Twine(flag) + "initializer '" + name +
                     "' is no float tensor that could train");
    }
    Weight &kept = *findWeight(first), &other = *findWeight(second);
    if (&kept == &other)
      return error(Twine(flag) + "these are one initializer");
    if (kept.type != other.type || kept.range.bytes != other.range.bytes)
      return error(Twine(flag) + "the two are not equal");
    if (kept.frozen != other.frozen)
      return error(Twine(flag) + "one of the two is frozen");
    graph.redefine(second, graph.lookup(first));
    replaced[second] = first;
    kept.tied.push_back({other.tensor->name, other.range});
    kept.tied.append(other.tied);
    other.tied.clear();
  }
  return success();
}

/// A parameter is in a group if any of its names is.
LogicalResult Importer::assignGroups() {
  warnIfUnmatched("--no-decay", options.noDecayRegex);
  for (const auto &[pattern, scale] : options.rateScales)
    warnIfUnmatched("--lr-scale", pattern);
  for (Weight &weight : weights) {
    if (weight.frozen || weight.role != pipeline::Role::Parameter)
      continue;
    SmallVector<StringRef> names = {weight.tensor->name};
    for (const Weight::Tied &other : weight.tied)
      names.push_back(other.name);
    // Whether a pattern is one was checked where it was said.
    auto isNamed = [&](StringRef flag, StringRef pattern) {
      return any_of(names, [&](StringRef name) {
        Expected<bool> found = matches(flag, pattern, name);
        if (found)
          return *found;
        consumeError(found.takeError());
        return false;
      });
    };
    weight.noDecay = isNamed("--no-decay", options.noDecayRegex);
    for (const auto &[pattern, scale] : options.rateScales) {
      if (!isNamed("--lr-scale", pattern))
        continue;
      if (weight.rateScale && *weight.rateScale != scale)
        return error("initializer '" + weight.tensor->name +
                     "' matches two --lr-scale, the second of which is " +
                     pattern + "; make their expressions exclude each other");
      weight.rateScale = scale;
    }
  }
  return success();
}

LogicalResult Importer::importInitializers(GraphImporter &graph) {
  if (file->hasSparseInitializers())
    return error("sparse initializers are not supported; store them densely");
  for (const TensorRecord &tensor : file->getInitializers())
    if (failed(importInitializer(graph, tensor)))
      return failure();
  if (failed(unfoldInitializers(graph)) || failed(tieInitializers(graph)))
    return failure();
  warnIfUnmatched("--train", options.trainRegex);
  warnIfUnmatched("--freeze", options.freezeRegex);
  return assignGroups();
}
