//===- Error.cpp - Formatting of errors -----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// printf-style construction of Error: std::format is not in the oldest standard
// library that we build with.
//===----------------------------------------------------------------------===//

#include "runtime/support/Error.h"

#include <cstdarg>
#include <cstdio>

using namespace penstock::runtime;

static std::string formatList(const char *pattern, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = std::vsnprintf(nullptr, 0, pattern, again);
  va_end(again);
  std::string text(length > 0 ? length : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, arguments);
  return text;
}

#define PENSTOCK_FORMAT(text)                                                  \
  va_list arguments;                                                           \
  va_start(arguments, pattern);                                                \
  std::string text = formatList(pattern, arguments);                           \
  va_end(arguments)

std::string penstock::runtime::format(const char *pattern, ...) {
  PENSTOCK_FORMAT(text);
  return text;
}

Error penstock::runtime::userError(const char *pattern, ...) {
  PENSTOCK_FORMAT(text);
  return {PENSTOCK_USER_ERROR, std::move(text)};
}

Error penstock::runtime::defect(const char *pattern, ...) {
  PENSTOCK_FORMAT(text);
  return {PENSTOCK_DEFECT, std::move(text)};
}

Error penstock::runtime::doesNotFit(const char *pattern, ...) {
  PENSTOCK_FORMAT(text);
  return {PENSTOCK_DOES_NOT_FIT, std::move(text)};
}

Error penstock::runtime::notEqual(const char *pattern, ...) {
  PENSTOCK_FORMAT(text);
  return {PENSTOCK_VERIFICATION_FAILED, std::move(text)};
}

Error penstock::runtime::notFinite(const char *pattern, ...) {
  PENSTOCK_FORMAT(text);
  return {PENSTOCK_NOT_FINITE, std::move(text)};
}
