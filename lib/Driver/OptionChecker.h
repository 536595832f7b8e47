//===- OptionChecker.h - From flags to options ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What flags say together must make sense before a model is read.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_OPTIONCHECKER_H
#define PENSTOCK_LIB_DRIVER_OPTIONCHECKER_H

#include "Flags.h"

#include "penstock/Driver/Options.h"
#include "penstock/Support/CommandLine.h"

namespace penstock {

/// Turns flags into options; the first thing that is wrong is said.
class OptionChecker {
public:
  OptionChecker(Flags &flags, CompileOptions &options,
                llvm::raw_ostream &errors)
      : flags(flags), options(options), errors(errors) {}
  bool check();

private:
  bool fail(const llvm::Twine &message) {
    reportError("penstockc", message, errors);
    return false;
  }
  /// Checks the flags by the traits in their rows.
  bool checkRows();
  bool checkProduct();
  bool checkMode();
  /// Once nothing is wrong: a mistake is said in one line.
  void warnOfIgnored();
  bool checkMicrobatches();
  bool checkGlobalBatch(bool isAuto);
  bool checkModel();
  bool checkLoss();
  bool checkGroups();
  bool checkClassTargets(llvm::StringRef parameters);
  bool checkTarget();
  bool checkPlan();
  bool checkAverage();
  bool checkDeviceGroups(bool saysStages);
  bool checkSchedule();
  bool checkDeviceModel();
  bool checkReplicas();
  bool checkPlannedReplicas();
  bool checkMirror(const schedule::ScheduleSpec &spec);
  bool checkRegex(llvm::StringRef flag, std::string &text,
                  llvm::StringRef wants = "a regular expression");
  bool positive(llvm::StringRef flag, int64_t value) {
    return value >= 1 || fail("--" + flag + "=" + llvm::Twine(value) +
                              ": a positive number is needed");
  }

  Flags &flags;
  CompileOptions &options;
  llvm::raw_ostream &errors;
};

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_OPTIONCHECKER_H
