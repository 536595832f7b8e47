//===- GpuFacts.cpp - What a driver would say of GPUs ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of the fields are those that plans have which cuDNN writes as text.
//===----------------------------------------------------------------------===//

#include "GpuFacts.h"

#include <cstdint>

using namespace penstock;

namespace {

struct Gpu {
  int arch;
  const char *name;
  int64_t multiprocessors, sharedBytes, blocks, threads, memoryBytes, clock,
      memoryClock, l2Bytes;
};

constexpr Gpu kGpus[] = {
#define PENSTOCK_GPU(...) {__VA_ARGS__},
#include "GpuFacts.def"
};

} // namespace

std::string cuda::getGpuFacts(int arch) {
  const Gpu *gpu = nullptr;
  for (const Gpu &each : kGpus)
    if (each.arch == arch)
      gpu = &each;
  if (!gpu)
    return "";
  auto field = [](const char *name, int64_t value) {
    return std::string(",\"") + name + "\":" + std::to_string(value);
  };
  // What all of them have in common comes first.
  return R"({"cudaDeviceId":0,"driverVer":13000,)"
         R"("maxGridSize":[2147483647,65535,65535],)"
         R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
         R"("warpSize":32,"maxSharedMemoryPerBlock":49152,)"
         R"("reservedSharedMemoryPerBlock":1024,)"
         R"("maxRegistersPerSM":65536,"maxThreadsPerBlock":1024,)"
         R"("pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1)" +
         field("deviceVer", gpu->arch * 10) +
         field("multiProcessorCount", gpu->multiprocessors) +
         field("maxSharedMemoryPerBlockOptin", gpu->sharedBytes) +
         field("maxCtasPerSM", gpu->blocks) +
         field("maxThreadsPerSM", gpu->threads) +
         field("totalGlobalMem", gpu->memoryBytes) +
         field("smClockRateKHz", gpu->clock) +
         field("memClockRateKHz", gpu->memoryClock) +
         field("l2CacheSize", gpu->l2Bytes) + ",\"deviceName\":\"" + gpu->name +
         "\"}";
}
