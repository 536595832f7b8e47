//===- BrokenNccl.cpp - An NCCL that lacks functions ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For LoadTest: a libnccl.so.2 that has only the first of them.
//===----------------------------------------------------------------------===//

extern "C" int ncclGetVersion(int *version) {
  *version = 22809;
  return 0;
}
