//===- Libraries.h - Where the functions of CUDA come from ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table of function pointers per library, filled when first asked for. In an
// executable for the emulated GPU, the tables are those of the emulation.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_LIBRARIES_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_LIBRARIES_H

#include "penstock/abi.h"

#include <initializer_list>

namespace penstock::runtime::cuda {

struct Driver;
struct CublasLt;
struct Cudnn;
struct Nccl;

struct Libraries {
  const Driver *driver;
  const CublasLt *cublasLt;
  const Cudnn *cudnn;
  const Nccl *nccl = nullptr;
  /// The kernels of sums over processes.
  const penstock_image *sums = nullptr;
};

/// Set before main by libpenstock_emulated.a; null without it.
extern constinit const Libraries *emulatedLibraries;

/// Opens the first library of these names that is found: in the folders of
/// PENSTOCK_CUDA_PATH, separated by colons, in lib64 and lib of each, then
/// where the loader looks. Null if there is none.
void *openLibrary(std::initializer_list<const char *> names);

/// The address of a function of a library; null if there is none.
void *findFunction(void *library, const char *name);

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_LIBRARIES_H
