//===- Convolutions.h - The convolutions of a device ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prepared once, called by number.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONS_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONS_H

#include "penstock/convolution.h"
#include "runtime/support/Error.h"

#include <vector>

namespace penstock::runtime {

/// Prepared, run and destroyed on the device's thread.
class Convolutions {
public:
  void clear() { convolutions.clear(); }

  /// `arena` is the device's. The library's scratch lies in it.
  Error prepare(const penstock_program &program, uint32_t device, char *arena);
  /// False when the library reports a failure.
  bool run(uint32_t id, const float *input, const float *weights,
           const float *output) {
    if (threads[id] == deviceThreads)
      return convolutions[id].run(input, weights, output);
    setConvolutionThreads(int(threads[id]));
    bool done = convolutions[id].run(input, weights, output);
    setConvolutionThreads(int(deviceThreads));
    return done;
  }

private:
  std::vector<Convolution> convolutions; // by descriptor
  /// Those that each was planned for, and those of the device.
  std::vector<uint32_t> threads;
  uint32_t deviceThreads = 1;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONS_H
