//===- nearest.h - What a misspelt name may mean ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flags, methods, schedules and nodes are suggested by one rule: few letters
// differ, or one name is the end or the beginning of the other.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_NEAREST_H
#define PENSTOCK_NEAREST_H

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// The number of letters to insert, remove or exchange, and of neighbors to
/// swap, that makes `left` of `right`.
inline size_t getEditDistance(std::string_view left, std::string_view right) {
  std::vector<std::vector<size_t>> rows(3,
                                        std::vector<size_t>(right.size() + 1));
  for (size_t j = 0; j <= right.size(); ++j)
    rows[0][j] = j;
  for (size_t i = 1; i <= left.size(); ++i) {
    std::vector<size_t> &row = rows[i % 3], &above = rows[(i + 2) % 3];
    row[0] = i;
    for (size_t j = 1; j <= right.size(); ++j) {
      bool isSame = left[i - 1] == right[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + !isSame});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] &&
          left[i - 2] == right[j - 1])
        row[j] = std::min(row[j], rows[(i + 1) % 3][j - 2] + 1);
    }
  }
  return rows[left.size() % 3][right.size()];
}

/// The name that `wanted` is likely to mean, the first of equals; empty if none
/// is near.
inline std::string findNearest(std::string_view wanted,
                               const std::vector<std::string> &names) {
  // The longest names that anyone mistypes; others would take long to compare.
  constexpr size_t kMostLetters = 128;
  size_t best = wanted.size() / 3 + 1;
  std::string nearest;
  if (wanted.size() < 2 || wanted.size() > kMostLetters)
    return nearest;
  for (const std::string &name : names) {
    if (name.empty() || name.size() > kMostLetters)
      continue;
    size_t distance = getEditDistance(wanted, name);
    if (distance < best && distance < name.size()) {
      best = distance;
      nearest = name;
    }
  }
  if (!nearest.empty())
    return nearest;
  // A part of a longer name: the shortest that begins or ends so.
  for (const std::string &name : names) {
    std::string_view text = name;
    bool isPart = text.size() > wanted.size() &&
                  (text.substr(0, wanted.size()) == wanted ||
                   text.substr(text.size() - wanted.size()) == wanted);
    if (isPart && (nearest.empty() || name.size() < nearest.size()))
      nearest = name;
  }
  return nearest;
}

/// "; did you mean 'x'?", or nothing.
inline std::string suggestNearest(std::string_view wanted,
                                  const std::vector<std::string> &names) {
  std::string nearest = findNearest(wanted, names);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

} // namespace penstock

#endif // PENSTOCK_NEAREST_H
