//===- Resume.h - From a checkpoint to a program ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of moves: what a program takes of a checkpoint that another one may
// have written. A function from (manifest, program) to a list of reads, or to a
// sentence that says why not.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_RESUME_H
#define PENSTOCK_RUNTIME_RUN_RESUME_H

#include "runtime/io/CheckpointFolder.h"
#include "runtime/run/SavedValues.h"

namespace penstock::runtime {

/// A variable, and where its value comes from: from a tensor of the checkpoint,
/// else from where the program starts it.
struct ResumeRead {
  uint32_t variable;
  const ManifestFile *file = nullptr;
  const ManifestTensor *tensor = nullptr;
};

/// The run that goes on, besides the program.
struct ResumeTarget {
  const penstock_program &program;
  std::string method, optimizer;                    ///< with their parameters
  int64_t samplesPerUpdate = 0, samplesPerPass = 0; ///< 0: no data
  bool isWeightsOnly = false;
};

struct ResumePlan {
  /// The updates that are done, as the program counts them.
  int64_t step = 0;
  /// All variables that have a state, in order.
  std::vector<ResumeRead> reads;
  std::vector<std::string> notes;
};

/// The reads point into the manifest. `path` is that of the checkpoint.
Error planResume(const std::string &path, const Manifest &manifest,
                 const ResumeTarget &target, ResumePlan &plan);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_RESUME_H
