//===- Averages.h - Moving averages of the weights --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that was compiled with --ema keeps an average beside each weight
// that trains. To be evaluated or saved, averages and weights change places for
// the time: so whatever reads weights, packed or from another process, reads
// averages.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_AVERAGES_H
#define PENSTOCK_RUNTIME_RUN_AVERAGES_H

#include "penstock/abi.h"

#include <vector>

namespace penstock::runtime {

/// A weight as updates compute it, and its average.
struct Average {
  const penstock_variable *weight, *average;
  /// The parameter that is rounded from the weight, or null.
  const penstock_variable *rounded;
};

/// Returns true if the variable is an average of a weight.
bool isAverage(const penstock_variable &variable);

/// Those of a program, each once; of a program without averages, none.
std::vector<Average> listAverages(const penstock_program &program);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_AVERAGES_H
