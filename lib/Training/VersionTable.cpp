//===- VersionTable.cpp - Which weights a microbatch reads ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When stage i forwards microbatch k, k - (p-1-i)·r have come back to it.
//===----------------------------------------------------------------------===//

#include "penstock/Training/VersionTable.h"

using namespace penstock;

WeightAges penstock::getWeightAges(const MethodSpec &method,
                                   const PipelinePlace &place) {
  auto [i, p, r, M] = place;
  int64_t inFlight = (p - 1 - i) * r;
  switch (method.kind) {
  case MethodKind::Sync:
    return {0, 0};
  case MethodKind::PipeDream:
    // With vertical sync all stages read what the first one does.
    if (method.verticalSync)
      inFlight = (p - 1) * r;
    return {inFlight, inFlight};
  case MethodKind::TwoBW:
    return {M, M};
  case MethodKind::Naive:
  case MethodKind::PipeMare:
  case MethodKind::SpecTrain:
  case MethodKind::PipeOptim:
    return {inFlight, 0};
  case MethodKind::XPipe:
    // All microbatches of an update read what its first one finds.
    return {(inFlight + M - 1) / M * M, 0};
  }
  return {};
}
