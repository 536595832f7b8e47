//===- Memory.cpp - What was allocated ------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Memory.h.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Memory.h"

#include "runtime/io/File.h"

#include <map>

using namespace penstock::runtime;

namespace {
/// Bytes of the variables of one stage on one device.
struct VariableBytes {
  uint64_t weights = 0, versions = 0, gradients = 0, optimizer = 0;
};
} // namespace

Error penstock::runtime::writeMemory(const std::string &path,
                                     const penstock_program &program,
                                     const std::vector<ArenaBytes> &arenas,
                                     const std::vector<uint64_t> &transport,
                                     uint64_t checkpointBytes) {
  std::map<std::pair<uint32_t, uint32_t>, VariableBytes> stages;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    uint64_t one = variable.type.bytes, all = one * variable.versions;
    for (uint32_t j = 0; j < variable.placement_count; ++j) {
      VariableBytes &bytes =
          stages[{variable.placements[j].device, variable.stage}];
      switch (variable.role) {
      case PENSTOCK_ROLE_GRADIENT:
        bytes.gradients += all;
        break;
      case PENSTOCK_ROLE_OPTIMIZER:
      case PENSTOCK_ROLE_COMPENSATION:
      case PENSTOCK_ROLE_MASTER:
        bytes.optimizer += all;
        break;
      case PENSTOCK_ROLE_PREPACKED:
        bytes.versions += all;
        break;
      default:
        bytes.weights += one;
        bytes.versions += all - one;
      }
    }
  }
  std::string text = "{\"devices\":[";
  const char *comma = "";
  for (auto [device, arena] : arenas) {
    text += format("%s\n{\"device\":%u,\"arena\":%llu,\"stages\":[", comma,
                   device, (unsigned long long)arena);
    comma = ",";
    const char *separator = "";
    for (const auto &[place, bytes] : stages) {
      if (place.first != device)
        continue;
      text += format("%s{\"stage\":%u,\"weights\":%llu,\"versions\":%llu,"
                     "\"gradients\":%llu,\"optimizer\":%llu}",
                     separator, place.second, (unsigned long long)bytes.weights,
                     (unsigned long long)bytes.versions,
                     (unsigned long long)bytes.gradients,
                     (unsigned long long)bytes.optimizer);
      separator = ",";
    }
    text += "]}";
  }
  text += "\n]";
  for (size_t rank = 0; rank < transport.size(); ++rank)
    text += format("%s\n{\"rank\":%zu,\"transport\":%llu}%s",
                   rank ? "," : ",\"processes\":[", rank,
                   (unsigned long long)transport[rank],
                   rank + 1 == transport.size() ? "\n]" : "");
  text +=
      format(",\"checkpoint\":%llu}\n", (unsigned long long)checkpointBytes);
  OutputFile file;
  if (Error error = file.create(path))
    return error;
  if (Error error = file.append(text))
    return error;
  return file.commit();
}
