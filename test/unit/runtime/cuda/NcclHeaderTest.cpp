//===- NcclHeaderTest.cpp - Our declarations of NCCL ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants, structs and signatures are those of the installed header, or this
// does not compile; the installed library has all functions.
//===----------------------------------------------------------------------===//

#include "SameInterface.h"
#include "runtime/transport/nccl/Nccl.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <nccl.h>

namespace cuda = penstock::runtime::cuda;
using penstock::test::SameInterface;

#define PENSTOCK_FUNCTION(name, result, parameters)                            \
  static_assert(                                                               \
      SameInterface<decltype(cuda::Nccl::name), decltype(&::name)>::value);
#include "runtime/transport/nccl/Nccl.def"

#define SAME(name) static_assert(int(cuda::name) == int(::name))
SAME(ncclSuccess);
SAME(ncclUnhandledCudaError);
SAME(ncclSystemError);
SAME(ncclInternalError);
SAME(ncclInvalidArgument);
SAME(ncclInvalidUsage);
SAME(ncclRemoteError);
SAME(ncclInProgress);
SAME(ncclUint8);

#define SAME_MEMBER(name)                                                      \
  static_assert(offsetof(cuda::NcclConfig, name) ==                            \
                offsetof(ncclConfig_t, name))
SAME_MEMBER(size);
SAME_MEMBER(magic);
SAME_MEMBER(version);
SAME_MEMBER(blocking);
SAME_MEMBER(cgaClusterSize);
SAME_MEMBER(minCTAs);
SAME_MEMBER(maxCTAs);
SAME_MEMBER(netName);
SAME_MEMBER(splitShare);
static_assert(sizeof(cuda::NcclConfig) <= sizeof(ncclConfig_t));
static_assert(sizeof(cuda::UniqueId) == sizeof(ncclUniqueId));

TEST(CudaHeaders, NcclConfigIsInitializedAsTheHeaderDoes) {
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  cuda::NcclConfig ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.splitShare, theirs.splitShare);
  EXPECT_GE(theirs.version, ours.version);
  EXPECT_GE(NCCL_VERSION_CODE, cuda::kLeastNccl);
}

TEST(CudaHeaders, TheInstalledNcclHasAllFunctions) {
  void *library = dlopen(PENSTOCK_NCCL_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    GTEST_SKIP() << dlerror();
#define PENSTOCK_FUNCTION(name, result, parameters)                            \
  EXPECT_TRUE(dlsym(library, #name)) << #name;
#include "runtime/transport/nccl/Nccl.def"
  auto getVersion = reinterpret_cast<decltype(cuda::Nccl::ncclGetVersion)>(
      dlsym(library, "ncclGetVersion"));
  int version = 0;
  EXPECT_EQ(getVersion(&version), cuda::ncclSuccess);
  EXPECT_GE(version, cuda::kLeastNccl);
}
