//===- Flags.h - The flags of a compiled executable -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table serves the command line and the embedding API: names, whether a
// value follows, and what it means.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_COMMAND_FLAGS_H
#define PENSTOCK_RUNTIME_COMMAND_FLAGS_H

#include "runtime/run/Options.h"

namespace penstock::runtime {

/// Sets one option; `value` is null for a flag without one.
Error setOption(Options &options, const std::string &name, const char *value);

/// Sets what a command line says, `--name value` or `--name=value`.
Error parseCommandLine(Options &options, int argc, char **argv);

/// The text of --help.
std::string helpText(const penstock_program &program, const char *executable);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_COMMAND_FLAGS_H
