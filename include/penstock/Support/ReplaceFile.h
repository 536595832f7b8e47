//===- ReplaceFile.h - Small files that appear whole ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For texts that are in memory already. Driver/OutputFile.h writes as it goes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_REPLACEFILE_H
#define PENSTOCK_SUPPORT_REPLACEFILE_H

#include "llvm/ADT/StringRef.h"

#include <system_error>

namespace penstock {

/// Writes `text` to `path`. The file appears whole or not at all; a device or a
/// pipe is written to.
std::error_code replaceFile(llvm::StringRef path, llvm::StringRef text);

} // namespace penstock

#endif // PENSTOCK_SUPPORT_REPLACEFILE_H
