//===- Position.cpp - Where a device is -----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As a sentence.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Position.h"

#include "runtime/support/Error.h"

using namespace penstock::runtime;

std::vector<PositionRecord>
penstock::runtime::record(const Positions &positions) {
  std::vector<PositionRecord> records;
  for (auto [device, position] : positions.devices) {
    PositionRecord one = {};
    one.device = device;
    one.progress = position->progress.load(std::memory_order_relaxed);
    one.task = position->task.load(std::memory_order_relaxed);
    one.taskNumber = position->taskNumber.load(std::memory_order_relaxed);
    one.waitChannel = position->waitChannel.load(std::memory_order_relaxed);
    one.waitNumber = position->waitNumber.load(std::memory_order_relaxed);
    one.waited = position->waitedNanoseconds.load(std::memory_order_relaxed);
    one.isRunning = position->isRunning.load(std::memory_order_relaxed);
    records.push_back(one);
  }
  return records;
}

std::string penstock::runtime::describe(const penstock_program &program,
                                        const PositionRecord &position) {
  std::string text;
  if (position.task >= program.task_count)
    text = "before its first action";
  else
    text = format("%s %c%lld (%s)", position.isRunning ? "at" : "done after",
                  char(program.tasks[position.task].letter),
                  (long long)position.taskNumber,
                  program.tasks[position.task].name);
  uint32_t group = position.waitChannel - program.channel_count;
  if (position.waitChannel < program.channel_count)
    text += format(", waits for message %lld of channel '%s'",
                   (long long)position.waitNumber,
                   program.channels[position.waitChannel].name);
  else if (position.waitChannel != UINT32_MAX && group < program.group_count)
    text += format(", waits for sum %lld of group '%s'",
                   (long long)position.waitNumber, program.groups[group].name);
  return text;
}
