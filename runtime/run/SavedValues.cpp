//===- SavedValues.cpp - What of a program a checkpoint holds -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients are zero between updates, or overwritten before they are read; so
// are the waves of workers; scalars are computed anew for each update; weights
// are packed again. None of these is saved.
//===----------------------------------------------------------------------===//

#include "runtime/run/SavedValues.h"

#include <cstdlib>
#include <map>
#include <set>

using namespace penstock::runtime;

/// The initializer itself, whatever it is for.
static bool isWeight(const penstock_variable &variable) {
  return variable.role == PENSTOCK_ROLE_PARAMETER ||
         variable.role == PENSTOCK_ROLE_STATISTIC;
}

bool penstock::runtime::isState(const penstock_variable &variable) {
  return !variable.transient &&
         (isWeight(variable) || variable.role == PENSTOCK_ROLE_OPTIMIZER ||
          variable.role == PENSTOCK_ROLE_COMPENSATION ||
          variable.role == PENSTOCK_ROLE_MASTER);
}

Identity penstock::runtime::identify(const penstock_program &program,
                                     uint32_t variable) {
  const penstock_variable &own = program.variables[variable];
  uint32_t of = own.of < program.variable_count ? own.of : variable;
  std::string kind = own.kind ? own.kind : "";
  if (!kind.empty() && own.worker)
    kind += "@" + std::to_string(own.worker);
  return {kind, program.variables[of].name};
}

uint32_t penstock::runtime::parseWorker(const std::string &kind) {
  size_t at = kind.find('@');
  return at == std::string::npos
             ? 0
             : uint32_t(std::strtoul(kind.c_str() + at + 1, nullptr, 10));
}

std::vector<int64_t>
penstock::runtime::shapeInFile(const penstock_variable &variable) {
  const penstock_tensor &type = variable.type;
  std::vector<int64_t> shape(type.shape, type.shape + type.rank);
  for (uint32_t i = 0; variable.file_order && i < type.rank; ++i)
    shape[i] = type.shape[variable.file_order[i]];
  return shape;
}

std::vector<SavedValue>
penstock::runtime::listSavedValues(const penstock_program &program) {
  std::vector<SavedValue> values;
  std::set<Identity> known;
  std::map<const penstock_placement *, uint32_t> homes;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (!isState(variable) || variable.frozen)
      continue;
    uint32_t home = homes.try_emplace(variable.placements, i).first->second;
    Identity identity = identify(program, i);
    if (known.insert(identity).second)
      values.push_back({i, home, std::move(identity)});
  }
  return values;
}

std::vector<uint64_t>
penstock::runtime::placeValues(const penstock_program &program,
                               const std::vector<SavedValue> &values) {
  constexpr uint64_t kAlignment = 64;
  std::vector<uint64_t> offsets;
  std::map<uint32_t, uint64_t> places;
  uint64_t end = 0;
  for (const SavedValue &value : values) {
    auto [place, isNew] = places.try_emplace(value.home, end);
    offsets.push_back(place->second);
    if (isNew)
      end += (program.variables[value.home].type.bytes + kAlignment - 1) /
             kAlignment * kAlignment;
  }
  offsets.push_back(end);
  return offsets;
}
