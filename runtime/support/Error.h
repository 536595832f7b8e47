//===- Error.h - One sentence and an exit code ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What goes wrong outside the steady state is returned as an Error: the exit
// code of abi.h and a line that names file, input or flag. There are no
// exceptions in the runtime.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_ERROR_H
#define PENSTOCK_RUNTIME_SUPPORT_ERROR_H

#include "penstock/abi.h"

#include <string>
#include <vector>

namespace penstock::runtime {

/// True when there is an error.
struct [[nodiscard]] Error {
  int code = PENSTOCK_DONE;
  std::string text;
  /// Further lines, where one does not say it all.
  std::vector<std::string> details = {};

  explicit operator bool() const { return code != PENSTOCK_DONE; }
};

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

[[gnu::format(printf, 1, 2)]] Error userError(const char *pattern, ...);
[[gnu::format(printf, 1, 2)]] Error defect(const char *pattern, ...);
[[gnu::format(printf, 1, 2)]] Error doesNotFit(const char *pattern, ...);
[[gnu::format(printf, 1, 2)]] Error notEqual(const char *pattern, ...);
[[gnu::format(printf, 1, 2)]] Error notFinite(const char *pattern, ...);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_SUPPORT_ERROR_H
