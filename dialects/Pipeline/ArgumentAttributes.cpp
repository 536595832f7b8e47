//===- ArgumentAttributes.cpp - Attributes of all arguments at once -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ArgumentAttributes.h.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/ArgumentAttributes.h"

using namespace mlir;
using namespace penstock;

void pipeline::changeArgAttrs(
    func::FuncOp function,
    llvm::function_ref<void(unsigned, NamedAttrList &)> change) {
  SmallVector<DictionaryAttr> all;
  for (unsigned i : llvm::seq(function.getNumArguments())) {
    NamedAttrList own(function.getArgAttrDict(i));
    change(i, own);
    all.push_back(own.getDictionary(function.getContext()));
  }
  function.setAllArgAttrs(all);
}
