//===- ListOperators.h - The operator table as Markdown ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What docs/operators.md holds: written from the table that the importer uses,
// so that it cannot promise what the importer does not know.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_TRANSLATE_LISTOPERATORS_H
#define PENSTOCK_TOOLS_PENSTOCK_TRANSLATE_LISTOPERATORS_H

#include "llvm/Support/raw_ostream.h"

namespace penstock {

void listOperators(llvm::raw_ostream &stream);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PENSTOCK_TRANSLATE_LISTOPERATORS_H
