//===- Averages.cpp - Moving averages of the weights ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Averages.h.
//===----------------------------------------------------------------------===//

#include "runtime/run/Averages.h"

#include <cstring>
#include <set>

using namespace penstock::runtime;

bool penstock::runtime::isAverage(const penstock_variable &variable) {
  return variable.role == PENSTOCK_ROLE_COMPENSATION && variable.kind &&
         !std::strcmp(variable.kind, "ema");
}

/// The variable of a role that is of the same initializer on the same stage.
static const penstock_variable *findBeside(const penstock_program &program,
                                           const penstock_variable &average,
                                           uint32_t role) {
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (variable.role == role && variable.of == average.of &&
        variable.stage == average.stage && !variable.file_order)
      return &variable;
  }
  return nullptr;
}

std::vector<Average>
penstock::runtime::listAverages(const penstock_program &program) {
  std::vector<Average> averages;
  // Initializers that train as one share a place.
  std::set<const penstock_placement *> known;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (!isAverage(variable) || !known.insert(variable.placements).second)
      continue;
    const penstock_variable *parameter =
        findBeside(program, variable, PENSTOCK_ROLE_PARAMETER);
    const penstock_variable *master =
        findBeside(program, variable, PENSTOCK_ROLE_MASTER);
    if (master)
      averages.push_back({master, &variable, parameter});
    else if (parameter)
      averages.push_back({parameter, &variable, nullptr});
  }
  return averages;
}
