//===- KindsTest.cpp - Kinds of devices that are not linked ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This program asks for no kind's symbol, so it has only the one of its own.
//===----------------------------------------------------------------------===//

#include "runtime/run/Instance.h"

#include <gtest/gtest.h>

using namespace penstock::runtime;

namespace {

TEST(Kinds, SaysWhatIsNotLinked) {
  EXPECT_EQ(findDeviceKind("cpu"), nullptr);
  const penstock_device_descriptor device = {64, 64, 1, "cpu", "any", ""};
  penstock_program program = {};
  program.device_count = 1;
  program.devices = &device;
  Error error = checkDevices(program);
  EXPECT_EQ(error.code, PENSTOCK_DEFECT);
  EXPECT_EQ(error.text,
            "this executable was linked without devices of kind 'cpu'");
}

TEST(Kinds, AnInstanceSaysWhatIsNotLinked) {
  const penstock_device_descriptor device = {64, 64, 1, "cpu", "any", ""};
  penstock_program program = {};
  program.device_count = 1;
  program.devices = &device;
  Instance instance(program);
  Error error = instance.open({}, /*isTraced=*/false);
  EXPECT_EQ(error.code, PENSTOCK_DEFECT);
  EXPECT_EQ(error.text,
            "this executable was linked without devices of kind 'cpu'");
}

TEST(Kinds, AreFoundByName) {
  static DeviceKind mill(
      "mill", [](const penstock_device_descriptor &) { return Error(); },
      [](Context &, uint32_t) { return std::unique_ptr<penstock_device>(); });
  EXPECT_EQ(findDeviceKind("mill"), &mill);
  EXPECT_EQ(findDeviceKind("gin"), nullptr);
}

} // namespace
