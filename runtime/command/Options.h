//===- Options.h - The flags of a compiled executable -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table serves the command line and the embedding API: names, whether a
// value follows, and what it means.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_COMMAND_OPTIONS_H
#define PENSTOCK_RUNTIME_COMMAND_OPTIONS_H

#include "runtime/support/Error.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::runtime {

/// A run that is longer than anyone waits for; its microbatches can be counted.
inline constexpr int64_t kMostUpdates = 1'000'000'000'000;

struct Options {
  std::vector<std::pair<std::string, std::string>> data, evalData;
  std::string labels, evalLabels, log, save, trace, memory, outputs;
  std::optional<int64_t> steps, epochs, evalEvery, seed;
  std::optional<double> rate, watchdog;
  bool shuffle = false, verify = false;
  bool help = false, version = false, plan = false;
  /// The flags that were set, each once.
  std::vector<const char *> given;

  /// Sets one option; `value` is null for a flag without one.
  Error set(const std::string &name, const char *value);
  /// A command line, `--name value` or `--name=value`.
  Error parse(int argc, char **argv);
  /// What can be said without the data.
  Error checkTogether() const;
  /// Refuses to write where an input of the run, or the program itself, is.
  Error checkOverwrite(const char *flag, const std::string &output,
                       const penstock_program &program) const;
  /// Refuses flags of the other kind of program.
  Error checkMode(bool infers) const;
};

/// The text of --help.
std::string helpText(const penstock_program &program, const char *executable);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_COMMAND_OPTIONS_H
