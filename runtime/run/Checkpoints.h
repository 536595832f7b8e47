//===- Checkpoints.h - The checkpoints that a run writes --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between two segments the pipeline is empty, and one version of each value is
// all that there is. That is copied, by each device what it has, and training
// goes on while the copy is written.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_CHECKPOINTS_H
#define PENSTOCK_RUNTIME_RUN_CHECKPOINTS_H

#include "runtime/io/CheckpointWriter.h"
#include "runtime/job/Job.h"
#include "runtime/run/Instance.h"
#include "runtime/run/SavedValues.h"

#include <utility>

namespace penstock::runtime {

class Checkpoints {
public:
  explicit Checkpoints(const penstock_program &program) : program(program) {}

  /// Looks at the part of the program that this process writes. It is one of
  /// this version of the interface.
  void prepare(const Job &job);
  /// Takes the folder and the memory. `keepsNotFinite`: weights that are not
  /// finite are written, too.
  Error open(CheckpointRanks &ranks, const std::string &folder, int64_t keep,
             bool keepsNotFinite) {
    return open(ranks, writer, folder, keep, keepsNotFinite);
  }
  /// The same for checkpoints that are written elsewhere.
  Error open(CheckpointRanks &ranks, CheckpointWriter &target,
             const std::string &folder, int64_t keep, bool keepsNotFinite);
  /// On rank 0: other processes know the folder by this text.
  Error sign(const std::string &text) { return writer.sign(text); }
  bool isOpen() const { return writer.isOpen(); }
  const std::string &getFolder() const { return writer.getFolder(); }
  /// Returns the bytes of the memory that holds what is written; 0 before it is
  /// open.
  uint64_t stagedBytes() const { return isOpen() ? offsets.back() : 0; }

  /// The next pause is to write one; `isAsked`: somebody waits for it.
  void request(bool isAsked = false) {
    isDue = true;
    isAwaited |= isAsked;
  }
  bool isRequested() const { return isDue; }
  bool takeRequest() { return std::exchange(isDue, false); }

  bool isBusy() const { return writer.isBusy(); }
  /// Counts one that was due while the last one was being written. Returns true
  /// if that is to be said: not again and again while that one is.
  bool skip() {
    ++skipped;
    bool isFirst = std::exchange(skippedAt, newestStep) != newestStep;
    return std::exchange(isAwaited, false) || isFirst;
  }
  int64_t countSkipped() const { return skipped; }
  bool hasFailed() const { return writer.hasFailed(); }
  /// Copies all values and begins to write them, as of manifest.step.
  void begin(const Instance &instance, Manifest manifest);
  /// Waits until the last one is on the disk; returns what went wrong with it
  /// since it was asked, or "".
  std::string finish() { return writer.finish(); }
  /// The same for those elsewhere.
  void begin(CheckpointWriter &target, const Instance &instance,
             Manifest manifest);
  /// The step of the last that was begun, or -1.
  int64_t newest() const { return newestStep; }
  /// When that was, in nanoseconds.
  int64_t getNewestTime() const { return newestTime; }

  /// The sum of the times in which training stood still for them.
  double getPauseSeconds() const { return pauseSeconds; }
  /// Not while it is busy.
  const CheckpointWriter::Statistics &getStatistics() const {
    return writer.getStatistics();
  }
  /// Returns true if a drain changes what is computed.
  bool isAsynchronous() const {
    return !std::string_view(program.method).starts_with("sync");
  }

private:
  const penstock_program &program;
  std::vector<SavedValue> values; ///< of this process
  std::vector<uint64_t> offsets;  ///< in the memory; the last is its size
  CheckpointWriter writer;
  bool isDue = false, isAwaited = false;
  int64_t newestStep = -1, newestTime = 0;
  int64_t skipped = 0, skippedAt = -1;
  double pauseSeconds = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_CHECKPOINTS_H
