//===- OptimizerSpec.cpp - The text of --optimizer ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table of keys per optimizer: what is unknown, out of range or without
// meaning is an error that lists what there is.
//===----------------------------------------------------------------------===//

#include "penstock/Optimizers/OptimizerSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace penstock;

namespace {

/// What values a key may have.
enum class Range { NonNegative, BelowOne, Any, Flag };

struct Key {
  StringLiteral name;
  Range range;
  double OptimizerSpec::*number;
  bool isSGD, isAdam;
};

const Key keys[] = {
    {"lr", Range::NonNegative, &OptimizerSpec::learningRate, true, true},
    {"momentum", Range::NonNegative, &OptimizerSpec::momentum, true, false},
    {"dampening", Range::Any, &OptimizerSpec::dampening, true, false},
    {"weight-decay", Range::NonNegative, &OptimizerSpec::weightDecay, true,
     true},
    {"nesterov", Range::Flag, nullptr, true, false},
    {"beta1", Range::BelowOne, &OptimizerSpec::beta1, false, true},
    {"beta2", Range::BelowOne, &OptimizerSpec::beta2, false, true},
    {"eps", Range::NonNegative, &OptimizerSpec::epsilon, false, true},
};

struct Kind {
  StringLiteral name;
  OptimizerKind kind;
  double learningRate, weightDecay;
};

const Kind kinds[] = {
    {"sgd", OptimizerKind::SGD, 1e-2, 0},
    {"adam", OptimizerKind::Adam, 1e-3, 0},
    {"adamw", OptimizerKind::AdamW, 1e-3, 1e-2},
};

template <typename T> std::string listNames(const T &range) {
  return llvm::join(
      llvm::map_range(range, [](const auto &x) { return x.name.str(); }), ", ");
}

LogicalResult setKey(OptimizerSpec &spec, const Key &key, StringRef value,
                     bool hasValue, std::string &error) {
  std::string where = (spec.getName() + ": " + key.name).str();
  if (key.range == Range::Flag) {
    if (hasValue && value != "0" && value != "1" && value != "true" &&
        value != "false") {
      error = where + " is a flag: write " + key.name.str() + " or " +
              key.name.str() + "=0, not '" + value.str() + "'";
      return failure();
    }
    spec.nesterov = !hasValue || value == "1" || value == "true";
    return success();
  }
  double number;
  if (!hasValue || value.getAsDouble(number) || !std::isfinite(number)) {
    error = where + " needs a number, as in " + key.name.str() + "=0.1, not '" +
            value.str() + "'";
    return failure();
  }
  if (number < 0 && key.range != Range::Any) {
    error = where + "=" + value.str() + " is negative";
    return failure();
  }
  if (number >= 1 && key.range == Range::BelowOne) {
    error = where + "=" + value.str() + " is not below 1";
    return failure();
  }
  spec.*key.number = number;
  return success();
}

} // namespace

StringRef OptimizerSpec::getName() const {
  return kinds[static_cast<int>(kind)].name;
}

FailureOr<OptimizerSpec> penstock::parseOptimizerSpec(StringRef text,
                                                      std::string &error) {
  auto [name, options] = text.split(':');
  const Kind *kind = llvm::find_if(
      kinds, [name = name](const Kind &kind) { return kind.name == name; });
  if (kind == std::end(kinds)) {
    error =
        "unknown optimizer '" + name.str() + "': known are " + listNames(kinds);
    return failure();
  }
  OptimizerSpec spec;
  spec.kind = kind->kind;
  spec.learningRate = kind->learningRate;
  spec.weightDecay = kind->weightDecay;

  bool isSGD = spec.kind == OptimizerKind::SGD;
  auto applies = [&](const Key &key) { return isSGD ? key.isSGD : key.isAdam; };
  SmallVector<StringRef> parts, seen;
  options.split(parts, ',', -1, /*KeepEmpty=*/false);
  bool momentumAsDampening = false;
  for (StringRef part : parts) {
    StringRef keyName = part.split('=').first.trim();
    StringRef value = part.split('=').second.trim();
    const Key *key = llvm::find_if(keys, [&](const Key &key) {
      return key.name == keyName && applies(key);
    });
    if (key == std::end(keys)) {
      error = name.str() + " has no option '" + keyName.str() +
              "': known are " +
              listNames(llvm::make_filter_range(keys, applies));
      return failure();
    }
    if (llvm::is_contained(seen, keyName)) {
      error = name.str() + ": " + keyName.str() + " is given twice";
      return failure();
    }
    seen.push_back(keyName);
    if (keyName == "dampening" && value == "momentum") {
      momentumAsDampening = true;
      continue;
    }
    if (failed(setKey(spec, *key, value, part.contains('='), error)))
      return failure();
  }
  if (momentumAsDampening)
    spec.dampening = spec.momentum;
  if (spec.nesterov && (spec.momentum == 0 || spec.dampening != 0)) {
    error = "sgd: nesterov needs momentum > 0 and dampening = 0, as in "
            "sgd:momentum=0.9,nesterov";
    return failure();
  }
  return spec;
}
