//===- JsonText.h - Values as JSON ------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What logs, traces and summaries write in the same way.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_JSONTEXT_H
#define PENSTOCK_RUNTIME_OBSERVE_JSONTEXT_H

#include <string>

namespace penstock::runtime {

/// Text as a JSON string, with quotes.
std::string jsonString(const char *text);

/// Nine digits, which tell any two f32 values apart. What is not finite is
/// null: JSON has no other word for it.
std::string jsonNumber(double value);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_JSONTEXT_H
