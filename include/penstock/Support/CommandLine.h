//===- CommandLine.h - Command lines of the tools ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tools say the same way: a mistake in one line that starts with the
// tool's name, and a standard output that cannot be written.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_COMMANDLINE_H
#define PENSTOCK_SUPPORT_COMMANDLINE_H

#include "penstock/severity.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace penstock {

/// Begins a message: "PLACE: error: ", where the place is a file, with line and
/// column if it has them, or a tool. Returns the stream.
llvm::raw_ostream &beginMessage(llvm::raw_ostream &stream,
                                const llvm::Twine &place, Severity severity);

/// For tools whose messages LLVM prints: without colors where NO_COLOR is set.
void respectNoColor();

/// Prints one line, whatever is in the message.
void reportError(llvm::StringRef tool, const llvm::Twine &message,
                 llvm::raw_ostream &errors);

/// The description of a tool besides its flags.
struct ToolText {
  llvm::StringRef name;
  /// A sentence that begins behind the name.
  llvm::StringRef overview;
  /// The arguments behind the name on a command line.
  llvm::StringRef usage = "[options]";
  /// The groups of its flags, in order; none: whatever is not hidden.
  llvm::ArrayRef<const llvm::cl::OptionCategory *> groups = {};
};

/// Parses the flags that are registered with LLVM's parser. Where it is false,
/// what is wrong was said. Ends the process with code 0 after --help,
/// --version, and --completion=SHELL or --man, which make files of packages
/// from the registered flags.
bool parseFlags(const ToolText &tool, int argc, const char *const *argv,
                llvm::raw_ostream &errors);

/// Rejects a flag that is given and empty, which would say the same as leaving
/// it out.
bool checkNotEmpty(llvm::StringRef tool,
                   llvm::ArrayRef<const llvm::cl::opt<std::string> *> flags,
                   llvm::raw_ostream &errors);

/// Flushes standard output. Where it is false, it could not be written, which
/// was said.
bool flushOutput(llvm::StringRef tool, llvm::raw_ostream &errors);

} // namespace penstock

#endif // PENSTOCK_SUPPORT_COMMANDLINE_H
