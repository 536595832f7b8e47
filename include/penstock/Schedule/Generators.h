//===- Generators.h - Orders of known schedules -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A schedule is a row of a table: its name and parameters, where it wants the
// stages, and a function that writes the order of every device. Runs only;
// transfers are placed between them afterwards.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_GENERATORS_H
#define PENSTOCK_SCHEDULE_GENERATORS_H

#include "penstock/Schedule/Order.h"
#include "penstock/Support/SpecOption.h"

#include "llvm/ADT/StringRef.h"

namespace penstock::schedule {

struct Family;

/// Where stages live.
enum class Placement {
  /// Stage i on device i; neighbors share a device where there are fewer.
  Line,
  /// Stage i on device i mod p.
  Loop,
  /// Down and up again: stages 0 .. p-1 on devices 0 .. p-1, the next p on p-1
  /// .. 0, and so on. With two chunks, a V.
  Wave,
  /// A line, and a second replica of every stage on a line the other way.
  Mirror,
};

/// The device, of `devices`, of replica `replica` of chunk `chunk`.
int getDevice(Placement placement, int chunk, int devices, int replica = 0);

/// A schedule with its parameters, as --schedule names it.
class ScheduleSpec : public Spec {
public:
  /// `1f1b`.
  ScheduleSpec();
  explicit ScheduleSpec(Spec spec) : Spec(std::move(spec)) {}

  const Family &getFamily() const;
  llvm::StringRef name() const { return getName(); }
  /// Stages per device.
  int chunks() const;
  /// Returns true if input and weight gradients are separate actions.
  bool splitsBackward() const;
  /// Replicas of every stage that it runs.
  int replicas() const;
  Placement placement() const;
  /// Returns true if every update ends before the next one begins.
  bool flushes() const;
  /// The device, of `devices`, of replica `replica` of stage `stage`.
  int getDevice(int stage, int devices, int replica = 0) const;
};

/// On a mistake, one sentence in `error`.
std::optional<ScheduleSpec> parseScheduleSpec(llvm::StringRef text,
                                              std::string &error);

/// The same, for options.
inline std::optional<ScheduleSpec>
parseSpecAs(const ScheduleSpec *, llvm::StringRef text, std::string &error) {
  return parseScheduleSpec(text, error);
}

/// The schedule of this name, with its default parameters.
ScheduleSpec getScheduleNamed(llvm::StringRef name);

/// The table of all schedules.
const SpecTable &getScheduleTable();

/// All names, in the order of the table; with parameters as in
/// `interleaved:chunks=2`.
std::vector<std::string> scheduleNames();

/// How long a stage's half of a backward, its forward and a transfer take. A
/// chunk takes its share of the stage.
struct Times {
  double forward = 1, backward = 1, weight = 1, transfer = 0;
};

/// Some devices, each with a stage or several chunks of one, and microbatches
/// to run through them: what a generator knows. Its model has tasks F, B or I
/// and W, and U for every chunk, so that what is generated can be proved and
/// executed without a program.
class Problem {
public:
  Problem(const ScheduleSpec &spec, int devices, int64_t microbatches,
          const Times &times = {});

  /// The same with other microbatches.
  Problem withMicrobatches(int64_t count) const;

  ScheduleSpec spec;
  /// p, M, and all stages: one per device, or one per chunk.
  int devices;
  int64_t microbatches;
  int stages;
  /// Updates that are simulated.
  int64_t updates = 1;
  Times times;
  /// Times by stage, where they are known to differ; each its own, no share of
  /// one.
  std::vector<Times> stageTimes;
  /// In microbatches of one stage; 0: none.
  double memoryLimit = 0;
  /// Share of a microbatch's activations that stays from I to W.
  double weightMemory = 0;

  Model model;

  /// Letters F, B, I, W, U.
  int task(char letter, int stage) const;
  char getLetter(int task) const { return model.tasks[task].letter; }
  int getStage(int task) const { return model.tasks[task].stage; }
  /// A task's duration, as a share of its stage's.
  double getTime(int task) const;
  /// Returns the time that a device computes per microbatch.
  double getLoad(int device) const;
  /// The device with the most of it, the first of several.
  int busiestDevice() const;
  /// The stages of a device, in the order of the model.
  llvm::SmallVector<int, 2> getStages(int device) const;
};

/// Returns the error of these numbers for this schedule, or an empty string.
std::string checkProblem(const Problem &problem);

/// Orders of the problem's model. It must pass checkProblem().
std::vector<Order> generate(const Problem &problem);

/// Orders of a model with placed stages: neighbors share a chunk when there
/// are more stages than chunks. Or why there are none. `taskTimes`, by task of
/// the model, if given, stand for those of an even line.
std::optional<std::vector<Order>>
generate(const Model &model, const ScheduleSpec &spec, const Times &times,
         std::string &error, llvm::ArrayRef<double> taskTimes = {});
std::optional<std::vector<Order>> generate(const Model &model,
                                           llvm::StringRef text);

/// The chunk of a stage, when `stages` are shared out among `chunks`: the first
/// `stages mod chunks` have one more.
int chunkOfStage(int stage, int stages, int chunks);

/// 1F1B that is flush-free within a segment, for any depth, M and numbers of
/// replicas: one loop over the microbatches of all updates.
std::vector<Order> generateOpen(const Model &model);

/// The same for lines of workers that update with every microbatch, and with
/// every wave of them exchange what that changed: no more than a wave is in
/// flight.
std::vector<Order> generateWaves(const Model &model);

/// Returns, by stage, the lag in microbatches with which its forward reads the
/// newest weights in these orders, over all replicas. In 1F1B, its distance
/// from its own backward.
std::vector<int64_t> computeForwardLags(const Model &model,
                                        llvm::ArrayRef<Order> orders);

/// Evaluate tasks, one microbatch after the other.
std::vector<Order> generateEvaluation(const Model &model);

/// One device: all forward, all backward in reverse, every update.
std::vector<Order> generateReplay(const Model &model);

} // namespace penstock::schedule

PENSTOCK_SPEC_OPTION(penstock::schedule::ScheduleSpec, "schedule")

#endif // PENSTOCK_SCHEDULE_GENERATORS_H
