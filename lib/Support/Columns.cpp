//===- Columns.cpp - Reports that fit a page ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Columns.h.
//===----------------------------------------------------------------------===//

#include "penstock/Support/Columns.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace penstock;

static bool isFirstByte(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

static size_t countCharacters(StringRef text) {
  return llvm::count_if(text, isFirstByte);
}

std::string penstock::cutBehind(StringRef text, size_t columns) {
  if (countCharacters(text) <= columns)
    return text.str();
  constexpr StringLiteral kDots("...");
  size_t kept = columns - std::min(columns, kDots.size()), end = 0;
  for (size_t characters = 0; end < text.size(); ++end)
    if (isFirstByte(text[end]) && characters++ == kept)
      break;
  return text.take_front(end).rtrim().str() + kDots.str();
}

std::string penstock::cutBefore(StringRef text, size_t columns) {
  size_t characters = countCharacters(text);
  if (characters <= columns)
    return text.str();
  constexpr StringLiteral kDots("...");
  size_t dropped = characters - columns + kDots.size(), begin = 0;
  for (size_t seen = 0; begin < text.size(); ++begin)
    if (isFirstByte(text[begin]) && seen++ == dropped)
      break;
  return kDots.str() + text.drop_front(begin).str();
}

std::string penstock::listNames(StringRef title, ArrayRef<std::string> names) {
  std::string line = title.str() + ":";
  for (auto [index, name] : enumerate(names)) {
    size_t others = names.size() - index - 1;
    std::string end = " ... " + std::to_string(others + 1) + " more";
    // The end has to fit behind this name, unless it is the last one.
    size_t room = kReportColumns - (others > 0 ? end.size() : 0);
    if (countCharacters(line) + 1 + countCharacters(name) > room)
      return index == 0
                 ? cutBehind(line + " " + name, kReportColumns - end.size()) +
                       (others > 0 ? " ... " + std::to_string(others) + " more"
                                   : "")
                 : line + end;
    line += " " + name;
  }
  return line;
}
