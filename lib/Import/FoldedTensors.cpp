//===- FoldedTensors.cpp - What an exporter computed of weights -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what Python printed: the signature of the exported program, a line per
// input, and lists of names.
//===----------------------------------------------------------------------===//

#include "FoldedTensors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace penstock::onnx;

/// The names after "PARAMETER target=" in `signature`.
static StringSet<> readParameters(StringRef signature) {
  StringSet<> parameters;
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
  StringSet<> parameters = readParameters(model.signature);
  for (const auto &[name, sources] : model.folded) {
    FoldedTensor &tensor = folded.emplace_back();
    tensor.name = name;
    for (StringRef source : readList(sources))
      if (parameters.contains(source))
        tensor.parameters.push_back(source.str());
  }
  return folded;
}
