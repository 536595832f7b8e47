//===- Roles.h - What channels and schedules are for ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The roles of abi.h, as questions that several folders ask.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_ROLES_H
#define PENSTOCK_RUNTIME_SUPPORT_ROLES_H

#include "penstock/abi.h"

namespace penstock::runtime {

/// Returns true if data from outside feeds the channel.
inline bool isSource(const penstock_channel &channel) {
  return channel.role == PENSTOCK_CHANNEL_INPUT ||
         channel.role == PENSTOCK_CHANNEL_LABELS;
}

/// Returns true if the messages of the channel leave the program.
inline bool isSink(const penstock_channel &channel) {
  return channel.role >= PENSTOCK_CHANNEL_LOSS;
}

/// Returns the schedule of that role, or null.
inline const penstock_schedule *findSchedule(const penstock_program &program,
                                             uint32_t role) {
  for (uint32_t i = 0; i < program.schedule_count; ++i)
    if (program.schedules[i].role == role)
      return &program.schedules[i];
  return nullptr;
}

/// Returns true if the program was compiled to infer: it does not train.
inline bool infers(const penstock_program &program) {
  return findSchedule(program, PENSTOCK_SCHEDULE_INFER);
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_SUPPORT_ROLES_H
