//===- LoopBackTest.cpp - One program in two instances --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The devices of a program in two instances, whatever the time that messages
// take, compute the bits that they compute in one. Also under the thread
// sanitizer.
//===----------------------------------------------------------------------===//

#include "LoopBack.h"
#include "LinearTraining.h"

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

class LoopBackTest : public LinearTraining {};

TEST_F(LoopBackTest, ComputesTheBitsOfOneInstance) {
  Results expected = runTogether();
  for (uint32_t seed : {1, 2, 3, 4, 5}) {
    Wire wire(seed);
    auto first = wire.makeEnd(), second = wire.makeEnd();
    EXPECT_TRUE(runApart(std::move(first), std::move(second)) == expected)
        << seed;
  }
}

} // namespace
