//===- Method.cpp - The methods by name ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A method without a line here is known by name, and not in this build.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Methods/Method.h"

using namespace penstock;

Method::~Method() = default;

std::unique_ptr<Method> penstock::createMethod(const MethodSpec &spec) {
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
  case MethodKind::SpecTrain:
  case MethodKind::XPipe:
  case MethodKind::PipeOptim:
    return nullptr;
  }
  return nullptr;
}
