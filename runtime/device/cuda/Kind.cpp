//===- Kind.cpp - Registers the GPU as a kind of device -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of its own: it comes out of the library only where it is asked for.
//===----------------------------------------------------------------------===//

#include "runtime/device/HostFeatures.h"
#include "runtime/device/cuda/Device.h"
#include "runtime/transport/nccl/Transfers.h"

using namespace penstock::runtime;

DeviceKind penstock_cuda(
    "cuda", checkFeatures,
    [](Context &context, uint32_t index) -> std::unique_ptr<penstock_device> {
      return std::make_unique<cuda::CudaDevice>(context, index);
    },
    /*isInHostMemory=*/false, /*describe=*/nullptr, &cuda::peerTransport);
