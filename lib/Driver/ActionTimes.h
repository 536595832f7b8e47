//===- ActionTimes.h - How long actions took in traces ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the traces of programs that were trained to be measured, and says what
// forward, backward and update of each stage typically take.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_ACTIONTIMES_H
#define PENSTOCK_LIB_DRIVER_ACTIONTIMES_H

#include "penstock/Partition/Units.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace penstock {

class ActionTimes {
public:
  /// Leaves out the first `warmup` updates of each trace.
  ActionTimes(int64_t microbatches, int64_t warmup)
      : microbatches(microbatches), warmup(warmup) {}

  /// Adds the trace of one program. False, with `reason`, if there is none.
  bool read(llvm::StringRef trace, std::string &reason);

  /// The lower quartile of every action by itself, which others on the machine
  /// hardly touch: for comparing.
  std::vector<UnitSeconds> getLowerQuartiles(size_t stages) const;
  /// The means over the faster half of all updates: what adds up to the time of
  /// such an update.
  std::vector<UnitSeconds> getMeans(size_t stages) const;

private:
  /// Stage, letter, and which one of the update it was.
  using Action = std::tuple<unsigned, char, int64_t>;
  struct Update {
    double seconds = 0;
    std::map<Action, double> actions;
  };
  using Summary = double (*)(llvm::MutableArrayRef<double>);

  std::vector<UnitSeconds> summarize(llvm::ArrayRef<const Update *> chosen,
                                     size_t stages, Summary summary) const;

  int64_t microbatches, warmup;
  std::vector<Update> updates;
};

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_ACTIONTIMES_H
