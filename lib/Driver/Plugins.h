//===- Plugins.h - Passes, schedules and methods of others ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --load-pass-plugin=FILE: a shared library that was built against the
// installed headers, and adds rows to the tables of the compiler.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_PLUGINS_H
#define PENSTOCK_LIB_DRIVER_PLUGINS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace penstock {

/// Loads plug-ins, in their order, and registers what they bring. Returns
/// false, after one line about the first that cannot be used.
bool loadPlugins(llvm::ArrayRef<std::string> files, llvm::raw_ostream &errors);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PLUGINS_H
