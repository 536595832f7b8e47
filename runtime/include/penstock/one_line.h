//===- one_line.h - Text that stays in its line -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names come from models, and a name may hold any character: a line feed would
// make two lines of a message, an escape would talk to the terminal.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_ONE_LINE_H
#define PENSTOCK_ONE_LINE_H

#include <string>
#include <string_view>

namespace penstock {

/// `text` with its control characters written as in C: \n, \t, \x1b.
inline std::string toOneLine(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string line;
  line.reserve(text.size());
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line += c;
      continue;
    }
    line += '\\';
    if (c == '\n' || c == '\r' || c == '\t') {
      line += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
      continue;
    }
    line += 'x';
    line += kDigits[byte >> 4];
    line += kDigits[byte & 15];
  }
  return line;
}

} // namespace penstock

#endif // PENSTOCK_ONE_LINE_H
