//===- TestStream.cpp - A stream that runs when told ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list of calls.
//===----------------------------------------------------------------------===//

#include "TestStream.h"

#include <gtest/gtest.h>
#include <vector>

using namespace penstock;
using namespace penstock::runtime;

static std::vector<std::function<void()>> calls;

cuda::Stream test::testStream() {
  return reinterpret_cast<cuda::Stream>(&calls);
}

size_t test::runStream() {
  size_t count = calls.size();
  for (std::function<void()> &call : calls)
    call();
  calls.clear();
  return count;
}

void emulated::enqueue(cuda::Stream stream, std::function<void()> work) {
  EXPECT_EQ(stream, test::testStream());
  calls.push_back(std::move(work));
}
