//===- Transfers.h - Messages between GPUs by NCCL --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process per GPU. What a device posts goes onto its transfer stream at once,
// in the order of its calls, which is the queue of rule S7 (docs/rules.md):
// NCCL has no tags, and starts nothing before what stands ahead of it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_NCCL_TRANSFERS_H
#define PENSTOCK_RUNTIME_TRANSPORT_NCCL_TRANSFERS_H

#include "runtime/device/Kinds.h"

namespace penstock::runtime::cuda {

/// The transport that the kind "cuda" has for several processes.
extern const PeerTransport peerTransport;

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_TRANSPORT_NCCL_TRANSFERS_H
