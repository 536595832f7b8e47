//===- VersionTable.cpp - Which weights a microbatch reads ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PipeDream admits to each replica of a stage one microbatch for every device
// from there on, shared among the replicas, rounded up (NOAM). When it forwards
// microbatch k, the others of these are in flight, and all before have come
// back: with r replicas everywhere, k - (p-1-i)·r. Under nF1B all microbatches
// of an update are forwarded min(L, p-1-i) updates before it.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/VersionTable.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <iterator>
#include <vector>

using namespace penstock;

/// Microbatches of stage i in flight beside the one that each replica begins;
/// of whole updates, beside the one that begins.
static int64_t countInFlight(const PipelinePlace &place, int64_t i) {
  llvm::ArrayRef<int64_t> replicas = place.replicas;
  int64_t behind = static_cast<int64_t>(replicas.size()) - 1 - i;
  if (place.ahead)
    return std::min(*place.ahead, behind) * place.M;
  int64_t devices = 0;
  for (int64_t width : replicas.drop_front(i))
    devices += width;
  int64_t admitted = (devices + replicas[i] - 1) / replicas[i];
  return (admitted - 1) * replicas[i];
}

namespace {

/// Forward reads what is there when it runs, backward the newest.
WeightAges readNewest(const MethodSpec &, int64_t inFlight,
                      const PipelinePlace &) {
  return {inFlight, 0};
}

/// Returns the place in the pipeline of TiMePReSt, which is nF1B by itself.
PipelinePlace getManyForwards(const MethodSpec &method, PipelinePlace place) {
  int64_t ahead = method.getWhole("ahead");
  place.ahead = ahead > 0 ? ahead : std::ssize(place.replicas) - 1;
  return place;
}

struct Row {
  llvm::StringLiteral method;
  WeightAgesFormula formula;
};

const Row kTable[] = {
    {"sync", [](const MethodSpec &, int64_t,
                const PipelinePlace &) { return WeightAges{0, 0}; }},
    {"naive", readNewest},
    {"pipedream",
     [](const MethodSpec &method, int64_t inFlight,
        const PipelinePlace &place) {
       // With vertical sync all stages read what the first one does.
       if (method.has("vertical-sync"))
         inFlight = countInFlight(place, 0);
       return WeightAges{inFlight, inFlight};
     }},
    {"2bw",
     [](const MethodSpec &, int64_t, const PipelinePlace &place) {
       return WeightAges{place.M, place.M};
     }},
    {"pipemare", readNewest},
    {"spectrain", readNewest},
    {"xpipe",
     [](const MethodSpec &, int64_t inFlight, const PipelinePlace &place) {
       // All microbatches of an update read what its first one finds.
       return WeightAges{(inFlight + place.M - 1) / place.M * place.M, 0};
     }},
    {"pipeoptim", readNewest},
    {"timeprest",
     [](const MethodSpec &method, int64_t, const PipelinePlace &place) {
       // What there was when the minibatch entered the pipe.
       return WeightAges{countInFlight(getManyForwards(method, place), 0), 0};
     }},
    {"v-timeprest",
     [](const MethodSpec &method, int64_t, const PipelinePlace &place) {
       return WeightAges{countInFlight(getManyForwards(method, place), place.i),
                         0};
     }},
    {"i-timeprest",
     [](const MethodSpec &method, int64_t, const PipelinePlace &place) {
       int64_t age = countInFlight(getManyForwards(method, place), place.i);
       // Nothing decays: the backward reads what the forward read.
       if (method.get("decay") == 0)
         return WeightAges{age, age};
       return WeightAges{age, 0, age / place.M};
     }},
    // s_local = N - 1, of the own updates that may be missing.
    {"hetpipe",
     [](const MethodSpec &method, int64_t, const PipelinePlace &place) {
       int64_t wave = method.getWhole("wave");
       int64_t stages = std::ssize(place.replicas);
       int64_t age = (wave > 0 ? wave : stages) - 1;
       return WeightAges{age, age};
     }},
};

} // namespace

/// Those of plug-ins.
static std::vector<Row> &getFurtherRows() {
  static std::vector<Row> rows;
  return rows;
}

void penstock::addWeightAges(llvm::StringLiteral method,
                             WeightAgesFormula formula) {
  getFurtherRows().push_back({method, formula});
}

std::optional<WeightAges> penstock::getWeightAges(const MethodSpec &method,
                                                  const PipelinePlace &place) {
  auto rows = llvm::concat<const Row>(kTable, getFurtherRows());
  for (const Row &row : rows)
    if (row.method == method.getName())
      return row.formula(method, countInFlight(place, place.i), place);
  return std::nullopt;
}
