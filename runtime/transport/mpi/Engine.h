//===- Engine.h - Messages between processes by MPI -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Claims what devices of this process post on far channels, and moves it
// between their slots and MPI. Whoever posts or waits calls it; a thread of its
// own does only while a message is under way that needs help and that nobody
// waits for. None does that its receiver copies by itself, unless there is a
// core for the thread: it would copy in the time of a device.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_MPI_ENGINE_H
#define PENSTOCK_RUNTIME_TRANSPORT_MPI_ENGINE_H

#include "runtime/job/Job.h"
#include "runtime/transport/Transport.h"
#include "runtime/transport/mpi/Shim.h"

namespace penstock::runtime {

/// Returns the transport of a program whose devices are divided as `job` says.
/// The functions live longer.
std::unique_ptr<Transport> createMpi(const penstock_mpi &functions,
                                     int largestTag, const Job &job);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_MPI_ENGINE_H
