//===- Nccl.h - The functions of NCCL that we call --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our own declarations of NCCL from version 2.19 on: no header of CUDA is
// needed to build. test/unit/runtime/cuda compares them with the real ones
// where these are installed.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_NCCL_NCCL_H
#define PENSTOCK_RUNTIME_TRANSPORT_NCCL_NCCL_H

#include "runtime/device/cuda/Stream.h"
#include "runtime/support/Error.h"

#include <climits>
#include <cstddef>

namespace penstock::runtime::cuda {

using NcclComm = struct NcclCommState *;

/// The id by which the processes of a communicator find each other.
struct UniqueId {
  char bytes[128];
};

/// Statuses.
enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

/// Types of elements.
enum { ncclUint8 = 1 };

/// The configuration of a communicator: the members that version 2.19 has.
/// Later ones are told apart by size and version.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21900;
  int blocking = INT_MIN; // as in NCCL: not set
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
};

/// The first version that has all we need.
inline constexpr int kLeastNccl = 21900;

/// The table of functions.
struct Nccl {
#define PENSTOCK_FUNCTION(name, result, parameters) result(*name) parameters;
#include "runtime/transport/nccl/Nccl.def"
};

/// Sets `result` to the functions, which live as long as the process, and
/// `version` to how the library calls itself, "NCCL 2.28.9". Fails where there
/// is no library, or one that is too old.
Error loadNccl(const Nccl *&result, std::string &version);

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_TRANSPORT_NCCL_NCCL_H
