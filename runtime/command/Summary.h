//===- Summary.h - The table that ends a run --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Speed, how busy each device was, and what the plan had said.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_COMMAND_SUMMARY_H
#define PENSTOCK_RUNTIME_COMMAND_SUMMARY_H

#include "runtime/command/Evaluation.h"

namespace penstock::runtime {

/// Returns the table that ends a training, or nothing where none was made.
std::string summarize(const penstock_run &run, const Evaluation &evaluation);

/// Writes the same, and what was evaluated, to --summary-json.
Error writeSummary(const penstock_run &run, const Evaluation &evaluation);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_COMMAND_SUMMARY_H
