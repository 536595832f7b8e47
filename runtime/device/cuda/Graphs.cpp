//===- Graphs.cpp - The recorded actions of a device ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Capturing enqueues nothing. So where it fails, nothing has happened, and the
// calls are made again.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Graphs.h"
#include "penstock/severity.h"

#include <cstdio>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

void Graphs::open(const Driver &table, const penstock_program &of,
                  uint32_t index, bool isEnabled) {
  driver = &table;
  program = &of;
  device = index;
  actions.resize(of.action_count);
  for (uint32_t i = 0; i < of.action_count; ++i) {
    actions[i].isEager = !isEnabled || of.actions[i].keys == 0;
    actions[i].graphs.resize(of.actions[i].keys);
  }
}

void Graphs::clear() {
  for (Action &action : actions)
    for (GraphExec graph : action.graphs)
      if (graph)
        (void)driver->cuGraphExecDestroy(graph);
  actions.clear();
}

void Graphs::reject(std::string why) {
  if (reason.empty())
    reason = std::move(why);
}

void Graphs::makeEager(uint32_t action) {
  actions[action].isEager = true;
  std::fprintf(stderr,
               "%sdevice %u: action '%s' runs call by call and not as a "
               "graph: %s\n",
               penstock::getSeverityText(penstock::Severity::Warning), device,
               program->actions[action].name, reason.c_str());
  reason.clear();
}

int Graphs::begin(uint32_t id, int64_t which, Stream stream, bool &isIssued) {
  Action &action = actions[id];
  isIssued = true;
  if (action.isEager)
    return CUDA_SUCCESS;
  if (!action.hasRun) {
    action.hasRun = true;
    return CUDA_SUCCESS;
  }
  if (GraphExec graph = action.graphs[uint64_t(which)]) {
    isIssued = false;
    return driver->cuGraphLaunch(graph, stream);
  }
  key = which;
  if (int status = driver->cuStreamBeginCapture(
          stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)) {
    reject("cuStreamBeginCapture failed: " + describeStatus(*driver, status));
    makeEager(id);
  } else {
    capturing = true;
  }
  return CUDA_SUCCESS;
}

int Graphs::end(uint32_t id, Stream stream, bool &isIssuedAgain) {
  isIssuedAgain = false;
  if (!capturing)
    return CUDA_SUCCESS;
  capturing = false;
  GraphExec &result = actions[id].graphs[uint64_t(key)];
  auto check = [&](int status, const char *call) {
    if (status)
      reject(call + (" failed: " + describeStatus(*driver, status)));
    return status == CUDA_SUCCESS;
  };
  Graph graph = nullptr;
  if (check(driver->cuStreamEndCapture(stream, &graph), "cuStreamEndCapture") &&
      reason.empty() &&
      !check(driver->cuGraphInstantiate(&result, graph, 0),
             "cuGraphInstantiate"))
    result = nullptr;
  if (graph)
    (void)driver->cuGraphDestroy(graph);
  if (!reason.empty()) {
    makeEager(id);
    isIssuedAgain = true;
    return CUDA_SUCCESS;
  }
  ++count;
  return driver->cuGraphLaunch(result, stream);
}
