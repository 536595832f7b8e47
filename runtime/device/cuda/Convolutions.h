//===- Convolutions.h - The convolutions of a GPU ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prepared once, called by number. cuDNN is loaded only where a program has
// convolutions.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H

#include "penstock/cuda_convolution.h"
#include "runtime/device/cuda/Stream.h"
#include "runtime/support/Error.h"
#include "runtime/transport/DeviceMemory.h"

#include <vector>

namespace penstock::runtime::cuda {

class Tuning;

/// The convolutions of one device. Prepared, run and destroyed on its thread,
/// whose current context is the device's.
class Convolutions {
public:
  Convolutions();
  ~Convolutions();

  /// Takes the engines that were planned, or chooses others within their
  /// scratch in the arena where cuDNN is another version than planned for, or
  /// where a tuning knows a faster one.
  Error prepare(const penstock_program &program, uint32_t device, Address arena,
                Tuning *tuning = nullptr);
  /// Puts a convolution on a stream: tensors in their roles, whichever of them
  /// is computed.
  Error run(uint32_t id, Address input, Address weights, Address output,
            Stream stream);
  /// Destroys every convolution.
  void clear();

private:
  struct Prepared {
    ConvolutionGraph graph;
    Address workspace = 0;
  };

  Error prepare(const penstock_conv_descriptor &conv, Address scratch,
                Tuning *tuning, Prepared &result);
  bool tune(const penstock_conv_descriptor &conv, EngineFilter filter,
            Tuning &tuning, ConvolutionGraph &graph);
  int setStream(Stream on);

  const Cudnn *library = nullptr;
  CudnnState *handle = nullptr;
  Stream stream = nullptr; // of the handle
  std::vector<Prepared> convolutions;
  uint32_t replanned = 0; // of those that have a plan
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H
