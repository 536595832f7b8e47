//===- RemoteTest.cpp - The device that the host cannot address -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes it a proof: its addresses lead nowhere, and bytes come and go.
//===----------------------------------------------------------------------===//

#include "runtime/device/Kinds.h"

#include <gtest/gtest.h>

using namespace penstock::runtime;

namespace {

TEST(Remote, HasAddressesThatLeadNowhere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const penstock_device_descriptor description = {4096,  64,    1,
                                                  "cpu", "any", ""};
  penstock_program program = {};
  program.device_count = 1;
  program.devices = &description;
  Context context(program);
  std::unique_ptr<penstock_device> device = createDevice(context, 0);
  Error error;
  device->start([&] { error = device->open(); });
  device->finish(-1);
  ASSERT_FALSE(error) << error.text;

  Address at = device->getOrigin() + 128;
  EXPECT_FALSE(device->isHostAddressable());
  EXPECT_EQ(device->getAddress(device->arena + 128), at);
  int64_t sent = 42, received = 0;
  device->upload(at, &sent, sizeof(sent));
  device->copy(at + 8, *device, at, sizeof(sent), Handover());
  device->download(&received, at + 8, sizeof(received));
  EXPECT_EQ(received, 42);
  EXPECT_DEATH((void)*reinterpret_cast<volatile char *>(at), "");
}

} // namespace
