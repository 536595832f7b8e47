//===- Dimensions.cpp - Sizes of the inputs -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options name dimensions (NAME) or places (INPUT:AXIS). The batch dimension is
// the leading one of the inputs, where it is open; or a leading 1.
//===----------------------------------------------------------------------===//

#include "Dimensions.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;
using ::onnx::TensorShapeProto;
using ::onnx::ValueInfoProto;

namespace {

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

Expected<BoundInputs>
penstock::onnx::bindInputs(MLIRContext *context,
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
