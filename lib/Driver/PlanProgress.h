//===- PlanProgress.h - How far a search for plans is -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On a terminal, a search that takes long has a line that says how far it is.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_PLANPROGRESS_H
#define PENSTOCK_LIB_DRIVER_PLANPROGRESS_H

namespace penstock {

/// Lives as long as one plan is compiled. From two seconds after the first of
/// the process on, the line stands meanwhile, and goes with the object.
class PlanProgress {
public:
  PlanProgress();
  ~PlanProgress();

private:
  bool isShown = false;
};

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PLANPROGRESS_H
