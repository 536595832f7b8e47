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

static FailureHandler *handler = nullptr;

void penstock::runtime::setFailureHandler(FailureHandler *next) {
  handler = next;
}

std::string penstock::runtime::describe(const Positions &positions) {
  std::string text;
  for (const PositionRecord &position : record(positions))
    text += format("  device %u: %s\n", position.device,
                   describe(positions.program, position).c_str());
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
  if (handler)
    handler->fail(code, sentence);
  std::string text = format("penstock: %s\n", sentence) + describe(positions);
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, text.data(), text.size());
  _exit(code);
}
