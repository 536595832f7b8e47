//===- Libraries.h - The emulated libraries ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables of functions that compute what the documentation of the libraries
// says, in plain loops with f64 sums. They test what we ask of the libraries,
// not what these compute.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_EMULATED_LIBRARIES_H
#define PENSTOCK_RUNTIME_DEVICE_EMULATED_LIBRARIES_H

#include "runtime/device/cuda/CublasLt.h"
#include "runtime/device/cuda/Cudnn.h"

namespace penstock::runtime::emulated {

extern const cuda::CublasLt cublasLt;
extern const cuda::Cudnn cudnn;

} // namespace penstock::runtime::emulated

#endif // PENSTOCK_RUNTIME_DEVICE_EMULATED_LIBRARIES_H
