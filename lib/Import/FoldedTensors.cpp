//===- FoldedTensors.cpp - What an exporter computed of weights -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what Python printed: the signature of the exported program, a line per
// input, and lists of names.
//===----------------------------------------------------------------------===//

#include "FoldedTensors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>

using namespace llvm;
using namespace penstock::onnx;

/// The names after "PARAMETER target=" in `signature`.
static llvm::StringSet<> readParameters(StringRef signature) {
  llvm::StringSet<> parameters;
  for (StringRef line : split(signature, '\n')) {
    StringRef target = line.split(": PARAMETER target='").second;
    parameters.insert(target.take_front(target.rfind('\'')));
  }
  // Of lines that are something else.
  parameters.erase("");
  return parameters;
}

/// The strings of a list as Python prints it: each between two quotes of one
/// kind.
static std::vector<StringRef> readList(StringRef list) {
  std::vector<StringRef> names;
  while (true) {
    list = list.drop_front(std::min(list.find_first_of("'\""), list.size()));
    if (list.empty())
      return names;
    auto [name, rest] = list.drop_front().split(list.front());
    names.push_back(name);
    list = rest;
  }
}

std::vector<FoldedTensor> penstock::onnx::findFolded(const ModelRecord &model) {
  std::vector<FoldedTensor> folded;
  if (model.signature.empty())
    return folded;
  llvm::StringSet<> parameters = readParameters(model.signature);
  for (const auto &[name, sources] : model.folded) {
    FoldedTensor &tensor = folded.emplace_back();
    tensor.name = name;
    for (StringRef source : readList(sources))
      if (parameters.contains(source))
        tensor.parameters.push_back(source.str());
  }
  return folded;
}

/// Returns true if `bytes` are those of `source` with its axes in `order`.
static bool equalsPermuted(StringRef bytes, StringRef source,
                           ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                           ArrayRef<int64_t> order, size_t width) {
  SmallVector<int64_t> index(sizes.size());
  for (size_t at = 0; at < bytes.size(); at += width) {
    int64_t from = 0;
    for (auto [i, axis] : zip_equal(index, order))
      from += i * strides[axis];
    if (bytes.substr(at, width) != source.substr(from * width, width))
      return false;
    for (size_t i = sizes.size(); i-- > 0;) {
      if (++index[i] < sizes[order[i]])
        break;
      index[i] = 0;
    }
  }
  return true;
}

std::optional<SmallVector<int64_t>>
penstock::onnx::findOrder(StringRef source, ArrayRef<int64_t> shape,
                          StringRef bytes) {
  // Axes of one element are in no order: they come first.
  SmallVector<int64_t> axes, order, sizes;
  for (auto [axis, size] : enumerate(shape)) {
    (size == 1 ? order : axes).push_back(axis);
    if (size != 1)
      sizes.push_back(size);
  }
  SmallVector<int64_t> strides(sizes.size());
  int64_t count = 1;
  for (size_t i = sizes.size(); i-- > 0; count *= sizes[i])
    strides[i] = count;
  // Of more axes there are too many orders to look at.
  constexpr size_t kMostAxes = 6;
  if (count == 0 || source.size() != bytes.size() || sizes.size() > kMostAxes)
    return std::nullopt;
  auto permutation = to_vector(seq<int64_t>(0, sizes.size()));
  std::optional<SmallVector<int64_t>> found;
  do {
    if (!equalsPermuted(bytes, source, sizes, strides, permutation,
                        source.size() / count))
      continue;
    if (found)
      return std::nullopt;
    found = permutation;
  } while (std::next_permutation(permutation.begin(), permutation.end()));
  if (!found)
    return std::nullopt;
  if (is_sorted(*found))
    return to_vector(seq<int64_t>(0, shape.size()));
  for (int64_t &axis : *found)
    order.push_back(axes[axis]);
  return order;
}
