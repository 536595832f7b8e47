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

/// The longest name in a message, and the longest text of one.
inline constexpr size_t kLongestName = 200, kLongestLine = 480;

/// Where `text` can be cut at or before `at` without dividing a character.
inline size_t findCut(std::string_view text, size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80)
    --at;
  return at;
}

/// Names that are longer than any that a person chose, and lines with many,
/// are cut: what is wrong and what to do stand at the ends.
inline std::string shorten(std::string_view text) {
  std::string line;
  for (size_t at = 0; at < text.size();) {
    // A name in quotes, or whatever has no space in it.
    bool isQuoted = text[at] == '\'';
    size_t end =
        isQuoted ? text.find('\'', at + 1) : text.find_first_of(" '", at);
    end = end == std::string_view::npos ? text.size() : end + isQuoted;
    if (end == at)
      ++end;
    std::string_view part = text.substr(at, end - at);
    if (part.size() > kLongestName + 2) {
      line += part.substr(0, findCut(part, kLongestName + isQuoted));
      line += isQuoted ? "...'" : "...";
    } else {
      line += part;
    }
    at = end;
  }
  if (line.size() <= kLongestLine)
    return line;
  constexpr size_t kTail = 140;
  size_t tail = line.size() - kTail;
  while (tail < line.size() &&
         (static_cast<unsigned char>(line[tail]) & 0xc0) == 0x80)
    ++tail;
  return line.substr(0, findCut(line, kLongestLine - kTail - 5)) + " ... " +
         line.substr(tail);
}

/// `text`, shortened, with its control characters written as in C: \n, \t,
/// \x1b.
inline std::string toOneLine(std::string_view whole) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = shorten(whole), line;
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
