//===- Columns.h - Reports that fit a page ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lines of reports are at most as wide as a terminal of 100 columns. What is
// cut is whole in the JSON.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_COLUMNS_H
#define PENSTOCK_SUPPORT_COLUMNS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace penstock {

inline constexpr size_t kReportColumns = 100;

/// Returns "abc..." for a text that has more characters than `columns`.
std::string cutBehind(llvm::StringRef text, size_t columns = kReportColumns);

/// Returns "...xyz": of a path, the end tells more.
std::string cutBefore(llvm::StringRef text, size_t columns);

/// Returns "TITLE: a b c", with as many names as fit and the number of the
/// others: "TITLE: a b ... 7 more".
std::string listNames(llvm::StringRef title, llvm::ArrayRef<std::string> names);

} // namespace penstock

#endif // PENSTOCK_SUPPORT_COLUMNS_H
