//===- Spec.cpp - NAME:key=value,flag as a checked record -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The grammar and all its messages. What is unknown, out of range or given
// twice is an error that lists or suggests what there is.
//===----------------------------------------------------------------------===//

#include "penstock/Support/Spec.h"
#include "penstock/nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <charconv>
#include <cmath>

using namespace llvm;
using namespace penstock;

/// The shortest text that reads back as this number.
static std::string formatNumber(double number) {
  char text[32];
  std::to_chars_result end = std::to_chars(text, std::end(text), number);
  return std::string(text, end.ptr);
}

const SpecKey *SpecKind::findKey(StringRef name) const {
  const auto *key = llvm::find_if(
      keys, [&](const SpecKey &known) { return known.name == name; });
  return key == keys.end() ? nullptr : key;
}

const SpecKind *SpecTable::find(StringRef name) const {
  const auto *kind = llvm::find_if(
      kinds, [&](const SpecKind *known) { return known->name == name; });
  return kind == kinds.end() ? nullptr : *kind;
}

std::vector<std::string> SpecTable::getNames() const {
  std::vector<std::string> names;
  for (const SpecKind *kind : kinds) {
    std::string name = kind->name.str();
    if (isVerbose)
      for (auto [index, key] : llvm::enumerate(kind->keys))
        name += (index ? "," : ":") + key.name.str() + "=" +
                formatNumber(key.fallback);
    names.push_back(std::move(name));
  }
  return names;
}

std::string SpecTable::getSubject(const SpecKind &kind) const {
  return isVerbose ? (noun + " " + kind.name).str() : kind.name.str();
}

std::string SpecTable::describeUnknown(StringRef name) const {
  std::string names = llvm::join(getNames(), ", ");
  std::vector<std::string> bare;
  for (const SpecKind *kind : kinds)
    bare.push_back(kind->name.str());
  std::string text =
      isVerbose
          ? (noun + " '" + name + "' is not known; there are " + names).str()
          : ("unknown " + noun + " '" + name + "': known are " + names).str();
  return text + suggestNearest(name, bare);
}

std::string SpecTable::describeUnknownKey(const SpecKind &kind,
                                          StringRef key) const {
  std::vector<std::string> names;
  for (const SpecKey &known : kind.keys)
    names.push_back(known.name.str());
  std::string known = llvm::join(names, ", ");
  return getSubject(kind) +
         (isVerbose ? " has no parameter '" : " has no option '") + key.str() +
         "'" + (isVerbose ? "; " : ": ") +
         (known.empty() ? "it has none"
          : isVerbose   ? "it has " + known
                        : "known are " + known) +
         suggestNearest(key, names);
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

Spec::Spec(const SpecKind &kind) : kind(&kind) {
  for (const SpecKey &key : kind.keys)
    values.push_back(key.fallback);
  given.resize(values.size());
}

double Spec::get(StringRef key) const {
  const SpecKey *known = kind->findKey(key);
  return known ? values[known - kind->keys.begin()] : 0;
}

bool Spec::isGiven(StringRef key) const {
  const SpecKey *known = kind->findKey(key);
  return known && given[known - kind->keys.begin()];
}

/// Returns the error of a value, as the rest of a sentence that begins with the
/// key; empty if there is none. No number: the text is none.
static std::string describeProblem(const SpecKey &key, StringRef text,
                                   std::optional<double> number) {
  std::string suggestion = key.example.empty()
                               ? ", not '" + text.str() + "'"
                               : ", as in " + key.name.str() + "=" +
                                     key.example.str() + ", not '" +
                                     text.str() + "'";
  bool isWhole = number && *number == std::floor(*number);
  bool isInRange = number && *number >= key.least && *number < key.below &&
                   (key.type != SpecKey::Whole || isWhole);
  if (isInRange)
    return "";
  if (!key.wants.empty())
    return " needs " + key.wants.str() + suggestion;
  if (!number)
    return " needs a number" + suggestion;
  std::string value = "=" + text.str();
  if (*number < 0 && key.least >= 0)
    return value + " is negative";
  if (key.type == SpecKey::Whole && !isWhole)
    return value + " is not a whole number" +
           (key.counts.empty() ? "" : " of " + key.counts.str());
  if (*number == 0)
    return value + ": a positive number is needed";
  if (*number < key.least)
    return value + " is below " + formatNumber(key.least);
  return value + " is not below " + formatNumber(key.below);
}

std::string Spec::set(const SpecKey &key, double value) {
  std::string problem = describeProblem(key, formatNumber(value), value);
  if (!problem.empty())
    return (getName() + ": " + key.name).str() + problem;
  size_t index = &key - kind->keys.begin();
  values[index] = value;
  given[index] = true;
  text.clear();
  return "";
}

std::string Spec::getText() const {
  if (!text.empty())
    return text;
  SmallVector<std::string> settings;
  for (auto [key, value, isGiven] :
       llvm::zip_equal(kind->keys, values, given)) {
    if (!isGiven)
      continue;
    bool isSet = key.type == SpecKey::Flag && value != 0;
    settings.push_back(key.name.str() +
                       (isSet ? "" : "=" + formatNumber(value)));
  }
  std::string result = getName().str();
  if (!settings.empty())
    result += ":" + llvm::join(settings, ",");
  return result;
}

raw_ostream &penstock::operator<<(raw_ostream &stream, const Spec &spec) {
  return stream << spec.getText();
}

//===----------------------------------------------------------------------===//
// The grammar
//===----------------------------------------------------------------------===//

/// The value of a flag: given alone, or with a truth value.
static std::optional<double> parseFlag(StringRef value, bool hasValue) {
  if (!hasValue || value == "1" || value == "true")
    return 1;
  if (value == "0" || value == "false")
    return 0;
  return std::nullopt;
}

std::optional<Spec> penstock::parseSpec(StringRef text, const SpecTable &table,
                                        std::string &error) {
  // 1. The row.
  auto [name, settings] = text.split(':');
  const SpecKind *kind = table.find(name);
  if (!kind) {
    error = table.describeUnknown(name);
    return std::nullopt;
  }
  Spec spec(*kind);

  // 2. Its keys, one by one.
  SmallVector<StringRef> parts;
  SmallVector<std::pair<const SpecKey *, StringRef>> copies;
  settings.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    StringRef keyName = part.split('=').first.trim();
    StringRef value = part.split('=').second.trim();
    const SpecKey *key = kind->findKey(keyName);
    if (!key) {
      error = table.describeUnknownKey(*kind, keyName);
      return std::nullopt;
    }
    size_t index = key - kind->keys.begin();
    std::string where = table.getSubject(*kind) + ": " + key->name.str();
    if (spec.given[index]) {
      error = where + " is given twice";
      return std::nullopt;
    }
    spec.given[index] = true;
    if (!key->sameAs.empty() && value == key->sameAs) {
      copies.emplace_back(key, value);
      continue;
    }
    if (key->type == SpecKey::Flag) {
      std::optional<double> flag = parseFlag(value, part.contains('='));
      if (!flag) {
        error = where + " is a flag: write " + key->name.str() + " or " +
                key->name.str() + "=0, not '" + value.str() + "'";
        return std::nullopt;
      }
      spec.values[index] = *flag;
      continue;
    }
    std::optional<double> number = 0;
    if (value.getAsDouble(*number) || !std::isfinite(*number))
      number.reset();
    std::string problem = describeProblem(*key, value, number);
    if (!problem.empty()) {
      error = where + problem;
      return std::nullopt;
    }
    spec.values[index] = *number;
  }
  for (auto [key, other] : copies)
    spec.values[key - kind->keys.begin()] = spec.get(other);

  // 3. All of them together.
  error = spec.check();
  if (!error.empty())
    return std::nullopt;
  spec.text = text;
  return spec;
}
