//===- FlagTexts.h - The flags of LLVM's parser as texts --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Help, manual pages and completions are made of the flags that are registered
// with LLVM's parser, so that none of them can lack one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SUPPORT_FLAGTEXTS_H
#define PENSTOCK_LIB_SUPPORT_FLAGTEXTS_H

#include "penstock/Support/CommandLine.h"
#include "penstock/flag_texts.h"

namespace penstock {

/// Returns the flags in their groups, by name; first the groups of the tool, in
/// its order.
FlagPage collectFlags(const ToolText &tool);

/// Returns the columns at which --help is wrapped: those of a terminal, within
/// reason; else none, for a program that reads it.
size_t getHelpWidth();

} // namespace penstock

#endif // PENSTOCK_LIB_SUPPORT_FLAGTEXTS_H
