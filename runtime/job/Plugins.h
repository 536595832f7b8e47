//===- Plugins.h - Libraries that a program loads ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program is linked with none of what only some runs need. Files named
// libpenstock-NAME.so are in a folder of PENSTOCK_LIBRARY_PATH, beside the
// executable, or in the lib/penstock that it was linked against.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_PLUGINS_H
#define PENSTOCK_RUNTIME_JOB_PLUGINS_H

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::runtime {

/// The folders in which they are looked for, in that order.
std::vector<std::string> listPluginFolders();

/// Puts cores next to each other that share caches, memory or a package, as
/// libpenstock-topology.so knows them; in the order of their numbers where it
/// is missing or does not know them all.
void orderCores(std::vector<int32_t> &cores);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_PLUGINS_H
