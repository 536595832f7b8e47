//===- Kind.cpp - Registers the CPU as a kind of device -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of its own: it comes out of the library only where it is asked for.
//===----------------------------------------------------------------------===//

#include "penstock/onednn.h"
#include "runtime/device/HostFeatures.h"
#include "runtime/device/cpu/Device.h"

using namespace penstock::runtime;

DeviceKind penstock_cpu(
    "cpu", checkFeatures,
    [](Context &context, uint32_t index) -> std::unique_ptr<penstock_device> {
      return std::make_unique<CpuDevice>(context, index);
    },
    /*isInHostMemory=*/true, [] { return oneDnn().describe(); });
