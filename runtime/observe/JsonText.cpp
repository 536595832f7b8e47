//===- JsonText.cpp - Values as JSON --------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names may hold anything; numbers are written for programs to read.
//===----------------------------------------------------------------------===//

#include "runtime/observe/JsonText.h"

#include "runtime/support/Error.h"

#include <cmath>

using namespace penstock::runtime;

std::string penstock::runtime::jsonString(const char *text) {
  std::string result = "\"";
  for (; *text; ++text) {
    unsigned char c = *text;
    if (c == '"' || c == '\\')
      result += '\\';
    if (c < 0x20)
      result += format("\\u%04x", c);
    else
      result += *text;
  }
  return result + "\"";
}

std::string penstock::runtime::jsonNumber(double value) {
  return std::isfinite(value) ? format("%.9g", value) : std::string("null");
}
