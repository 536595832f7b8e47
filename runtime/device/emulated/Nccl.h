//===- Nccl.h - The NCCL of the emulated GPU --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between processes of one host, by sockets. It is as strict as NCCL's
// documentation allows an implementation to be, and stricter than NCCL is where
// that only buffers: a transfer begins when it heads the streams of both its
// processes and ends on both together; the first one of two processes keeps the
// call from ending until the other has come; transfers of a communicator are in
// the order of their calls, whatever their streams. Sizes that differ are
// errors, where NCCL hangs, and so is memory that is registered on one side
// only, where nobody knows what NCCL does. It knows nothing of processes that
// have died, as NCCL on one host.
//
// The environment says PENSTOCK_EMULATED_NCCL_VERSION (22809),
// PENSTOCK_EMULATED_NCCL_ABORT=hang for a communicator that cannot be aborted,
// PENSTOCK_EMULATED_NCCL_SWAP=RANK:N for a process that exchanges its transfer
// N, counted from 0, and the next one, and PENSTOCK_EMULATED_NCCL_MEMORY for
// one that allocates no memory (none), registers none (unregistered) or
// exchanges no other (registered).
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_EMULATED_NCCL_H
#define PENSTOCK_RUNTIME_DEVICE_EMULATED_NCCL_H

#include "penstock/abi.h"
#include "runtime/transport/nccl/Nccl.h"

namespace penstock::runtime::emulated {

extern const cuda::Nccl nccl;
/// The kernels that add up what comes.
extern const penstock_image sums;

} // namespace penstock::runtime::emulated

#endif // PENSTOCK_RUNTIME_DEVICE_EMULATED_NCCL_H
