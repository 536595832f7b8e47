//===- Convolutions.cpp - The convolutions of a device --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prepares those of this device within the scratch that was planned.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Convolutions.h"

#include "penstock/onednn.h"
#include "runtime/device/LibraryCalls.h"

#include <algorithm>

using namespace penstock::runtime;

Error Convolutions::prepare(const penstock_program &program, uint32_t device,
                            char *arena) {
  convolutions.resize(program.conv_count);
  deviceThreads = std::max(program.devices[device].threads, 1u);
  threads.assign(program.conv_count, deviceThreads);
  for (uint32_t i = 0; i < program.conv_count; ++i) {
    const penstock_conv_descriptor &conv = program.convs[i];
    if (!isCalledOn(conv, device))
      continue;
    auto call = ConvolutionCall::get(conv, deviceThreads);
    threads[i] = call.threads;
    // oneDNN is loaded only where something calls it.
    limitOneDnn(program.devices[device].features);
    if (threads[i] != deviceThreads)
      setConvolutionThreads(int(threads[i]));
    std::string error = convolutions[i].plan(call);
    if (!error.empty())
      return userError("%s", error.c_str());
    uint64_t bytes = convolutions[i].getScratchBytes();
    if (bytes > conv.scratch.bytes)
      return userError(
          "the %s needs %llu bytes of scratch, the plan has %llu: "
          "oneDNN takes another algorithm here than where this program "
          "was compiled; compile again here",
          describe(call).c_str(), (unsigned long long)bytes,
          (unsigned long long)conv.scratch.bytes);
    error =
        convolutions[i].prepare(arena + scratchOffset(conv.scratch, device));
    if (threads[i] != deviceThreads)
      setConvolutionThreads(int(deviceThreads));
    if (!error.empty())
      return defect("%s", error.c_str());
  }
  return {};
}
