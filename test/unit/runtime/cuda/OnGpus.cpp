//===- OnGpus.cpp - Puts the hand-written programs on GPUs ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linked with tests of the runtime, which then run on CUDA devices over the
// emulated driver, in an adverse order unless the test says otherwise.
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "runtime/device/emulated/Enqueue.h"

#include <cstdlib>

[[gnu::constructor]] static void place() {
  setenv("PENSTOCK_EMULATED_ORDER", "1", /*overwrite=*/0);
  penstock::test::placement = {"cuda", "cuda", "cuda"};
  penstock::test::kernelBias = penstock::runtime::emulated::kBias;
}
