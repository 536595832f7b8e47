//===- LoopBackMpi.h - An MPI within one process ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of a shim for several ranks that are threads of one process.
// Messages of one sender, receiver and tag keep their order; all else is left
// to chance.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_LOOPBACKMPI_H
#define PENSTOCK_TEST_UNIT_RUNTIME_LOOPBACKMPI_H

#include "runtime/transport/mpi/Shim.h"

namespace penstock::test {

constexpr int kMostRanks = 4;

/// Forgets all messages, and begins with another chance.
void resetLoopBackMpi(uint32_t seed);
/// Messages that were sent and not received, or the reverse.
uint64_t countUnmatched();
/// From now on, says of all messages whether they arrive without their sender.
void setArrivesAlone(bool value);
/// The calls by which a rank looked for the end of a message.
uint64_t countLooks(int rank);
/// From now on every call of this rank fails.
void breakLoopBackMpi(int rank);

const penstock_mpi &getLoopBackMpi(int rank);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_LOOPBACKMPI_H
