//===- severity.h - How messages begin --------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "error: ", "warning: ", "note: ", of the compiler, the tools and programs; in
// colors on terminals that have them, unless NO_COLOR is set
// (https://no-color.org).
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SEVERITY_H
#define PENSTOCK_SEVERITY_H

#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace penstock {

enum class Severity { Error, Warning, Note };

/// Returns whether messages to a file descriptor are colored.
inline bool wantsColors(int descriptor) {
  const char *none = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  return isatty(descriptor) && !(none && *none) && terminal && *terminal &&
         std::strcmp(terminal, "dumb") != 0;
}

/// Returns how a message begins, with a space behind it.
inline const char *getSeverityText(Severity severity, bool isColored) {
  switch (severity) {
  case Severity::Error:
    return isColored ? "\033[1;31merror:\033[0m " : "error: ";
  case Severity::Warning:
    return isColored ? "\033[1;35mwarning:\033[0m " : "warning: ";
  case Severity::Note:
    break;
  }
  return isColored ? "\033[1;36mnote:\033[0m " : "note: ";
}

/// The same for what is printed to stderr.
inline const char *getSeverityText(Severity severity) {
  return getSeverityText(severity, wantsColors(STDERR_FILENO));
}

} // namespace penstock

#endif // PENSTOCK_SEVERITY_H
