//===- Families.h - The table of schedules ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row per schedule. To add one: a file with its row, and a line in
// Families.def.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_GENERATORS_FAMILIES_H
#define PENSTOCK_LIB_SCHEDULE_GENERATORS_FAMILIES_H

#include "penstock/Schedule/Family.h"

namespace penstock::schedule {

#define PENSTOCK_FAMILY(NAME) extern const Family k##NAME;
#include "Families.def"
#undef PENSTOCK_FAMILY

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_GENERATORS_FAMILIES_H
