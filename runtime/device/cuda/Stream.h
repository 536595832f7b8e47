//===- Stream.h - A queue of work of a GPU ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The handle alone: driver and libraries have the same one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_STREAM_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_STREAM_H

namespace penstock::runtime::cuda {

using Stream = struct StreamState *;

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_STREAM_H
