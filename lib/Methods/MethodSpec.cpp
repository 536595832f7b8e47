//===- MethodSpec.cpp - The text of --method ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The methods are an enumeration of the dialect; a table has their keys. What a
// method asks of the rest of the command line is said here too, in the words of
// the flags.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/MethodSpec.h"

#include "penstock/Optimizers/Optimizers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace penstock;

namespace {

/// A key is a flag, a count or a number below one.
struct Key {
  StringLiteral name;
  MethodKind kind;
  bool MethodSpec::*flag = nullptr;
  int64_t MethodSpec::*count = nullptr;
  double MethodSpec::*fraction = nullptr;
};

const Key keys[] = {
    {"vertical-sync", MethodKind::PipeDream, &MethodSpec::verticalSync},
    {"anneal-steps", MethodKind::PipeMare, nullptr, &MethodSpec::annealSteps},
    {"decay", MethodKind::PipeMare, nullptr, nullptr, &MethodSpec::decay},
    {"warmup-steps", MethodKind::PipeMare, nullptr, &MethodSpec::warmupSteps},
};

LogicalResult setKey(MethodSpec &spec, const Key &key, StringRef value,
                     bool hasValue, std::string &error) {
  std::string name = key.name.str();
  std::string where = (spec.getName() + ": " + key.name).str();
  if (key.flag) {
    if (hasValue && value != "0" && value != "1" && value != "true" &&
        value != "false") {
      error = where + " is a flag: write " + name + " or " + name +
              "=0, not '" + value.str() + "'";
      return failure();
    }
    spec.*key.flag = !hasValue || value == "1" || value == "true";
    return success();
  }
  if (key.count) {
    int64_t count;
    if (!hasValue || value.getAsInteger(10, count) || count < 0) {
      error = where + " needs a number of updates, as in " + name +
              "=100, not '" + value.str() + "'";
      return failure();
    }
    spec.*key.count = count;
    return success();
  }
  double number;
  if (!hasValue || value.getAsDouble(number) || !std::isfinite(number) ||
      number < 0 || number >= 1) {
    error = where + " needs a number from 0 (off) to below 1, as in " + name +
            "=0.135353, not '" + value.str() + "'";
    return failure();
  }
  spec.*key.fraction = number;
  return success();
}

} // namespace

pipeline::MethodAttr MethodSpec::toAttr(MLIRContext *context) const {
  bool isPipeMare = kind == MethodKind::PipeMare;
  FloatAttr correction;
  if (isPipeMare && decay != 0)
    correction = Builder(context).getF64FloatAttr(decay);
  return pipeline::MethodAttr::get(context, kind, verticalSync, annealSteps,
                                   correction, warmupSteps);
}

MethodSpec MethodSpec::fromAttr(pipeline::MethodAttr attr) {
  MethodSpec spec;
  spec.kind = attr.getKind();
  spec.verticalSync = attr.getVerticalSync();
  spec.annealSteps = attr.getAnnealSteps();
  spec.decay = attr.getDecay() ? attr.getDecay().getValueAsDouble() : 0;
  spec.warmupSteps = attr.getWarmupSteps();
  return spec;
}

std::string penstock::listMethods() {
  auto kinds =
      llvm::enum_seq_inclusive(MethodKind::Sync, MethodKind::PipeOptim,
                               llvm::force_iteration_on_noniterable_enum);
  return llvm::join(llvm::map_range(kinds, pipeline::stringifyMethodKind),
                    ", ");
}

FailureOr<MethodSpec> penstock::parseMethodSpec(StringRef text,
                                                std::string &error) {
  auto [name, options] = text.split(':');
  std::optional<MethodKind> kind = pipeline::symbolizeMethodKind(name);
  if (!kind) {
    error = "unknown method '" + name.str() + "': known are " + listMethods();
    return failure();
  }
  MethodSpec spec;
  spec.kind = *kind;

  SmallVector<StringRef> known;
  for (const Key &key : keys)
    if (key.kind == spec.kind)
      known.push_back(key.name);
  SmallVector<StringRef> parts, seen;
  options.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    StringRef keyName = part.split('=').first.trim();
    StringRef value = part.split('=').second.trim();
    const Key *key = llvm::find_if(keys, [&](const Key &key) {
      return key.name == keyName && key.kind == spec.kind;
    });
    if (key == std::end(keys)) {
      error = name.str() + " has no option '" + keyName.str() + "': " +
              (known.empty() ? "it has none"
                             : "known are " + llvm::join(known, ", "));
      return failure();
    }
    if (llvm::is_contained(seen, keyName)) {
      error = name.str() + ": " + keyName.str() + " is given twice";
      return failure();
    }
    seen.push_back(keyName);
    if (failed(setKey(spec, *key, value, part.contains('='), error)))
      return failure();
  }
  return spec;
}

LogicalResult penstock::checkMethod(const MethodSpec &method,
                                    int64_t microbatches,
                                    ArrayRef<int64_t> replicas,
                                    const OptimizerSpec &optimizer,
                                    std::string &error) {
  std::unique_ptr<Optimizer> direction = Optimizer::create(optimizer);
  if (method.kind == MethodKind::SpecTrain) {
    // An update is of as many microbatches on every stage.
    if (!llvm::all_equal(replicas)) {
      error = "spectrain updates after every microbatch of a replica, which "
              "stages of different width cannot all do: use stages of equal "
              "width, or --method=pipeoptim";
      return failure();
    }
    int64_t width = replicas.empty() ? 1 : replicas.front();
    if (microbatches != width) {
      error = "spectrain updates after every microbatch" +
              std::string(width > 1 ? " of a replica" : "") + ", not after " +
              std::to_string(microbatches) +
              ": use --microbatches=" + std::to_string(width) +
              ", or --method=pipeoptim";
      return failure();
    }
    if (!direction->hasDirection()) {
      error = "spectrain predicts along SGD's momentum, and there is none: use "
              "--optimizer=sgd:momentum=0.9";
      return failure();
    }
    // Its formula takes a buffer as it is.
    if (!direction->getDirectionState()) {
      error = "spectrain predicts along SGD's momentum, which " +
              optimizer.getName().str() +
              " does not have: use --optimizer=sgd:momentum=0.9, or "
              "--method=pipeoptim";
      return failure();
    }
  }
  bool predicts =
      method.kind == MethodKind::XPipe || method.kind == MethodKind::PipeOptim;
  if (predicts && !direction->hasDirection()) {
    error = method.getName().str() +
            " predicts along the optimizer's direction, and " +
            optimizer.getName().str() +
            " without momentum has none: use --optimizer=sgd:momentum=0.9, "
            "adam or adamw";
    return failure();
  }
  return success();
}

/// As many microbatches are in flight as there are devices from the stage on,
/// rounded up to as many for each of its replicas.
static int64_t countInFlight(int64_t replicas, int64_t after) {
  return static_cast<int64_t>(llvm::alignTo(replicas + after, replicas));
}

bool penstock::allowsStage(const MethodSpec &method, int64_t replicas,
                           int64_t after, int64_t microbatches) {
  switch (method.kind) {
  case MethodKind::TwoBW:
    return countInFlight(replicas, after) <= microbatches;
  case MethodKind::SpecTrain:
    return replicas == microbatches;
  default:
    return true;
  }
}

LogicalResult penstock::checkMethodDepth(const MethodSpec &method,
                                         ArrayRef<int64_t> replicas,
                                         int64_t microbatches,
                                         std::string &error) {
  int64_t needed = 0, devices = 0, turn = 1;
  for (int64_t width : llvm::reverse(replicas)) {
    needed = std::max(needed, countInFlight(width, devices));
    devices += width;
    turn = std::lcm(turn, width);
  }
  if (method.kind != MethodKind::TwoBW || microbatches >= needed)
    return success();
  error = "2bw needs at least as many microbatches per update as the pipeline "
          "is deep";
  int64_t depth = replicas.size();
  if (devices > depth)
    error += ", for every replica: use --microbatches=" +
             std::to_string(llvm::alignTo(needed, turn)) +
             " or more, or fewer replicas";
  else
    error += ": use --microbatches=" + std::to_string(needed) +
             " or more, or a depth of " + std::to_string(microbatches) +
             " instead of " + std::to_string(depth);
  return failure();
}
