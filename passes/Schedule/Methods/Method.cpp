//===- Method.cpp - The methods by name ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line per method; each has a file.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Methods/Method.h"

using namespace penstock;

Method::~Method() = default;

std::unique_ptr<Method> penstock::createMethod(const MethodSpec &spec,
                                               const OptimizerSpec &optimizer,
                                               const RateSchedule &rates) {
  switch (spec.kind) {
  case MethodKind::Sync:
    return createSync();
  case MethodKind::Naive:
    return createNaive();
  case MethodKind::PipeDream:
    return createPipeDream(spec.verticalSync);
  case MethodKind::TwoBW:
    return createTwoBW();
  case MethodKind::PipeMare:
    return createPipeMare(spec);
  case MethodKind::SpecTrain:
    return createSpecTrain(optimizer, rates);
  case MethodKind::XPipe:
    return createXPipe(optimizer, rates);
  case MethodKind::PipeOptim:
    return createPipeOptim(optimizer, rates);
  }
  return nullptr;
}
