//===- PinnedRingsTest.cpp - Values on their way to the host --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The thread that empties sinks also looks for values that have arrived, so it
// must not wait for room in a sink.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/PinnedRings.h"

#include "runtime/device/emulated/Driver.h"

#include <gtest/gtest.h>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

TEST(PinnedRings, KeepWhatASinkHasNoRoomFor) {
  const Driver &driver = emulated::driver;
  DriverContext context = nullptr;
  Stream stream = nullptr;
  uint64_t device = 0;
  ASSERT_EQ(driver.cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver.cuCtxSetCurrent(context), CUDA_SUCCESS);
  ASSERT_EQ(
      driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
      CUDA_SUCCESS);
  ASSERT_EQ(driver.cuMemAlloc(&device, 8), CUDA_SUCCESS);

  OutputRing ring;
  ASSERT_EQ(ring.open(driver), CUDA_SUCCESS);
  SinkRing sink;
  int64_t pushed = 0;
  while (!sink.isFull())
    sink.push(pushed++, 0);
  for (unsigned char value : {3, 5}) {
    ASSERT_EQ(driver.cuMemsetD8Async(device, value, 4, stream), CUDA_SUCCESS);
    ASSERT_EQ(ring.send(driver, sink, 100 + value, device, 4, stream),
              CUDA_SUCCESS);
  }
  ASSERT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);

  ASSERT_EQ(ring.poll(driver), CUDA_SUCCESS);
  SinkRing::Item item;
  for (int64_t i = 0; i < pushed; ++i) {
    ASSERT_TRUE(sink.pop(item));
    EXPECT_EQ(item.n, i);
  }
  EXPECT_FALSE(sink.pop(item));
  ASSERT_EQ(ring.poll(driver), CUDA_SUCCESS);
  ASSERT_TRUE(sink.pop(item));
  EXPECT_EQ(item.n, 103);
  EXPECT_EQ(item.bits, 0x03030303u);
  ASSERT_TRUE(sink.pop(item));
  EXPECT_EQ(item.n, 105);
  EXPECT_EQ(item.bits, 0x05050505u);
  ring.clear(driver);
  EXPECT_EQ(driver.cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

} // namespace
