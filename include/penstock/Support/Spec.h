//===- Spec.h - NAME:key=value,flag as a checked record ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Methods, optimizers, learning-rate schedules and schedules are all written
// `NAME[:key=value|flag,...]`. Each is a row of a table with its keys and their
// ranges; one parser reads them and says what is wrong with a text.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_SPEC_H
#define PENSTOCK_SUPPORT_SPEC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

class Spec;

/// A key of a row: the type and range of its value.
struct SpecKey {
  enum Type { Flag, Whole, Number };
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  llvm::StringLiteral name;
  Type type = Number;
  /// The value where the text has none; 0 or 1 of a flag.
  double fallback = 0;
  /// The smallest value, and the one that all values are below.
  double least = 0, below = kNoLimit;
  /// One phrase for the type and the whole range, as in "a number of updates".
  /// Where it is empty, each violation is described by itself.
  llvm::StringLiteral wants = "";
  /// The noun that a whole number counts, in messages; may be empty.
  llvm::StringLiteral counts = "";
  /// A value to suggest; none is suggested if it is empty.
  llvm::StringLiteral example = "0.1";
  /// The name of another key that may stand for its value.
  llvm::StringLiteral sameAs = "";
};

/// A row of a table.
struct SpecKind {
  llvm::StringLiteral name;
  llvm::ArrayRef<SpecKey> keys;
  /// Describes what is wrong with values that are each in range; empty if
  /// nothing is. May be null.
  std::string (*check)(const Spec &spec) = nullptr;

  /// Null if the row has no such key.
  const SpecKey *findKey(llvm::StringRef name) const;
};

/// All rows that a text may name.
struct SpecTable {
  /// Noun of the rows in messages, as in "method".
  llvm::StringLiteral noun;
  llvm::ArrayRef<const SpecKind *> kinds;
  /// True if messages put the noun before each name, and the fallback values
  /// behind the names that they list.
  bool isVerbose = false;

  /// Null if no row has this name.
  const SpecKind *find(llvm::StringRef name) const;
  /// Names of all rows, in the order of the table.
  std::vector<std::string> getNames() const;
  /// Sentences that list what there is in place of a name or a key.
  std::string describeUnknown(llvm::StringRef name) const;
  std::string describeUnknownKey(const SpecKind &kind,
                                 llvm::StringRef key) const;
  /// A row as the subject of a sentence.
  std::string getSubject(const SpecKind &kind) const;
};

/// A row with the values of its keys.
class Spec {
public:
  /// All values are the fallbacks.
  explicit Spec(const SpecKind &kind);

  const SpecKind &getKind() const { return *kind; }
  llvm::StringRef getName() const { return kind->name; }
  /// The value of a key: 0 or 1 of a flag, 0 if the row has no such key.
  double get(llvm::StringRef key) const;
  bool has(llvm::StringRef flag) const { return get(flag) != 0; }
  int64_t getWhole(llvm::StringRef key) const {
    return static_cast<int64_t>(get(key));
  }
  /// Returns true if the value was stated, be it equal to the fallback.
  bool isGiven(llvm::StringRef key) const;
  /// Sets the value of a key of the row. Returns what is wrong with it, or an
  /// empty string.
  std::string set(const SpecKey &key, double value);
  /// Returns what is wrong with the values together, or an empty string.
  std::string check() const { return kind->check ? kind->check(*this) : ""; }

  /// The text that was parsed, or one that parses to an equal record.
  std::string getText() const;

  /// Same row, same values.
  friend bool operator==(const Spec &left, const Spec &right) {
    return left.kind == right.kind && left.values == right.values;
  }

private:
  friend std::optional<Spec>
  parseSpec(llvm::StringRef text, const SpecTable &table, std::string &error);

  const SpecKind *kind;
  llvm::SmallVector<double, 2> values;
  llvm::SmallVector<bool, 4> given;
  std::string text;
};

/// Prints the text.
llvm::raw_ostream &operator<<(llvm::raw_ostream &stream, const Spec &spec);

/// Parses NAME[:key=value|flag,...]. On failure `error` says what is wrong and
/// what would be right.
std::optional<Spec> parseSpec(llvm::StringRef text, const SpecTable &table,
                              std::string &error);

} // namespace penstock

#endif // PENSTOCK_SUPPORT_SPEC_H
