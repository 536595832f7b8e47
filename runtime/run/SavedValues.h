//===- SavedValues.h - What of a program a checkpoint holds -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value is known by its kind and the initializer that it belongs to: so it
// means the same to any cut, schedule, method and number of replicas. Where a
// program has it several times, they are equal between segments, and the first
// stands for all.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_SAVEDVALUES_H
#define PENSTOCK_RUNTIME_RUN_SAVEDVALUES_H

#include "penstock/abi.h"

#include <string>
#include <vector>

namespace penstock::runtime {

/// Where a checkpoint has a variable: "" or "momentum", of the second worker
/// "momentum@1", and an initializer.
struct Identity {
  std::string kind, name;
  auto operator<=>(const Identity &) const = default;
};

/// Returns true if the variable has a value that a checkpoint holds, or can
/// hold: a parameter or a statistic, trained or not, or state that an optimizer
/// or a method keeps of one.
bool isState(const penstock_variable &variable);

Identity identify(const penstock_program &program, uint32_t variable);

/// Whose it is, by its kind.
uint32_t parseWorker(const std::string &kind);

/// The shape of the value in files: that of the initializer.
std::vector<int64_t> shapeInFile(const penstock_variable &variable);

struct SavedValue {
  uint32_t variable;
  /// Another variable at the same place with the values in the program's order,
  /// or the same one.
  uint32_t home;
  Identity identity;
};

/// Each value that changes in training, once.
std::vector<SavedValue> listSavedValues(const penstock_program &program);

/// Offsets of the homes of those values in a block, by value, and the size of
/// that behind them.
std::vector<uint64_t> placeValues(const penstock_program &program,
                                  const std::vector<SavedValue> &values);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_SAVEDVALUES_H
