//===- FlagTexts.h - Texts that are made of flags ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Help, manual pages and completions, from the flags that are registered with
// LLVM's parser, so that none of them can lack one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SUPPORT_FLAGTEXTS_H
#define PENSTOCK_LIB_SUPPORT_FLAGTEXTS_H

#include "penstock/Support/CommandLine.h"

namespace penstock {

/// The text of --help: in groups, and wrapped on a terminal.
std::string describeFlags(const ToolText &tool);
/// A page of section 1, in the language of man.
std::string makeManPage(const ToolText &tool);
/// A script for bash, zsh or fish; empty for another shell.
std::string makeCompletion(const ToolText &tool, llvm::StringRef shell);

} // namespace penstock

#endif // PENSTOCK_LIB_SUPPORT_FLAGTEXTS_H
