//===- MethodTable.h - Rows of methods --------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the rows that Methods.def lists.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_METHODS_METHODTABLE_H
#define PENSTOCK_LIB_METHODS_METHODTABLE_H

#include "penstock/Methods/Method.h"

namespace penstock {

#define PENSTOCK_METHOD(NAME) const Method &get##NAME();
#include "Methods.def"
#undef PENSTOCK_METHOD

} // namespace penstock

#endif // PENSTOCK_LIB_METHODS_METHODTABLE_H
