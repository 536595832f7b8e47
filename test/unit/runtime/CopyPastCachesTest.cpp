//===- CopyPastCachesTest.cpp - Copies of more than caches hold -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any number of bytes, from anywhere to anywhere, and none besides.
//===----------------------------------------------------------------------===//

#include "runtime/support/CopyPastCaches.h"

#include <gtest/gtest.h>
#include <vector>

using namespace penstock::runtime;

TEST(CopyPastCachesTest, CopiesAllBytesAndNoOthers) {
  std::vector<char> from(5000);
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = char(i * 7 + i / 256 + 1);
  for (size_t toOffset : {0, 1, 13, 63})
    for (size_t fromOffset : {0, 1, 8, 61})
      for (size_t bytes :
           {0, 1, 7, 63, 64, 65, 127, 255, 256, 257, 383, 4099}) {
        SCOPED_TRACE(testing::Message()
                     << bytes << " from " << fromOffset << " to " << toOffset);
        std::vector<char> to(5000, char(0x5a)), expected = to;
        alignas(64) static char aligned[5000];
        std::copy(to.begin(), to.end(), aligned);
        copyPastCaches(aligned + toOffset, from.data() + fromOffset, bytes);
        std::copy_n(from.begin() + fromOffset, bytes,
                    expected.begin() + toOffset);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), aligned));
      }
}
