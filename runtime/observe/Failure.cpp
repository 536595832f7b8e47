//===- Failure.cpp - The end of a run that cannot go on -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The message goes out in one write, so that lines of other threads do not mix
// with it.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Failure.h"

#include "runtime/support/Error.h"

#include <cstdarg>
#include <cstdio>
#include <unistd.h>

using namespace penstock::runtime;

std::string penstock::runtime::describe(const Positions &positions) {
  const penstock_program &program = positions.program;
  std::string text;
  for (auto [device, position] : positions.devices) {
    text += format("  device %u: ", device);
    uint32_t task = position->task.load(std::memory_order_relaxed);
    if (task >= program.task_count)
      text += "before its first action";
    else
      text += format(
          "%s %c%lld (%s)", position->isRunning.load() ? "at" : "done after",
          char(program.tasks[task].letter),
          (long long)position->taskNumber.load(), program.tasks[task].name);
    uint32_t channel = position->waitChannel.load(std::memory_order_relaxed);
    uint32_t group = channel - program.channel_count;
    if (channel != UINT32_MAX && channel >= program.channel_count &&
        group < program.group_count)
      text += format(", waits for sum %lld of group '%s'",
                     (long long)position->waitNumber.load(),
                     program.groups[group].name);
    if (channel < program.channel_count)
      text += format(", waits for message %lld of channel '%s'",
                     (long long)position->waitNumber.load(),
                     program.channels[channel].name);
    text += "\n";
  }
  return text;
}

void penstock::runtime::fail(const Positions &positions, int code,
                             const char *pattern, ...) {
  static std::atomic<bool> hasFailed{false};
  if (hasFailed.exchange(true))
    while (true)
      pause(); // The first failure ends the process.
  char sentence[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(sentence, sizeof(sentence), pattern, arguments);
  va_end(arguments);
  std::string text = format("penstock: %s\n", sentence) + describe(positions);
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, text.data(), text.size());
  _exit(code);
}
