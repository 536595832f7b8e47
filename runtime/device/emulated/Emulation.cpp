//===- Emulation.cpp - Puts the emulated GPU in place of CUDA -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comes out of the library where its symbol is asked for: in executables that
// were compiled for the emulated GPU.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/emulated/Driver.h"
#include "runtime/device/emulated/Libraries.h"
#include "runtime/device/emulated/Nccl.h"

using namespace penstock::runtime;

extern "C" {
extern const cuda::Libraries penstock_emulated;
const cuda::Libraries penstock_emulated = {
    &emulated::driver, &emulated::cublasLt, &emulated::cudnn, &emulated::nccl,
    &emulated::sums};
}

[[gnu::constructor]] static void install() {
  cuda::emulatedLibraries = &penstock_emulated;
}
