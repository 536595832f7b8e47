//===- VersionTable.cpp - Which weights a microbatch reads ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PipeDream admits to each replica of a stage one microbatch for every device
// from there on, shared among the replicas, rounded up (NOAM). When it forwards
// microbatch k, the others of these are in flight, and all before have come
// back: with r replicas everywhere, k - (p-1-i)·r.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/VersionTable.h"

using namespace penstock;

/// Microbatches of stage i in flight beside the one that each replica begins.
static int64_t countInFlight(llvm::ArrayRef<int64_t> replicas, int64_t i) {
  int64_t devices = 0;
  for (int64_t width : replicas.drop_front(i))
    devices += width;
  int64_t admitted = (devices + replicas[i] - 1) / replicas[i];
  return (admitted - 1) * replicas[i];
}

WeightAges penstock::getWeightAges(const MethodSpec &method,
                                   const PipelinePlace &place) {
  int64_t inFlight = countInFlight(place.replicas, place.i), M = place.M;
  switch (method.kind) {
  case MethodKind::Sync:
    return {0, 0};
  case MethodKind::PipeDream:
    // With vertical sync all stages read what the first one does.
    if (method.verticalSync)
      inFlight = countInFlight(place.replicas, 0);
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
