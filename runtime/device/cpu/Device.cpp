//===- Device.cpp - A CPU device: a thread and an arena -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses are pointers. Library calls run on the threads of the device.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Device.h"

#include "runtime/device/Cores.h"
#include "runtime/device/cpu/OpenMP.h"
#include "runtime/observe/Failure.h"
#include "runtime/support/CopyPastCaches.h"

#include <cstring>

using namespace penstock::runtime;

/// Addresses are those of the host.
static char *pointerTo(Address at) { return reinterpret_cast<char *>(at); }

CpuDevice::CpuDevice(Context &context, uint32_t index)
    : penstock_device(context, index),
      threads(context.program.devices[index].threads),
      worker(index, shareOfCores(context, index), threads) {}

void CpuDevice::start(std::function<void()> job) {
  worker.start(std::move(job));
}

bool CpuDevice::finish(int milliseconds) { return worker.wait(milliseconds); }

Error CpuDevice::open() {
  const penstock_program &program = context.program;
  if (Error error = memory.allocate(index, program.devices[index]))
    return error;
  arena = memory.base();
  origin = reinterpret_cast<uintptr_t>(arena);
  if (Error error = gemms.prepare(program, index, arena))
    return error;
  return convs.prepare(program, index, arena);
}

void CpuDevice::close() {
  gemms.clear();
  convs.clear();
}

void CpuDevice::gemm(uint32_t id, const void *a, const void *b, void *c) {
  if (!gemms.run(this, id, static_cast<const float *>(a),
                 static_cast<const float *>(b), static_cast<float *>(c)))
    fail(context.positions, PENSTOCK_DEFECT, "device %u: oneDNN failed in %s",
         index, shapeText(context.program.gemms[id]).c_str());
}

void CpuDevice::conv(uint32_t id, const void *input, const void *weights,
                     const void *output) {
  if (!convs.run(id, static_cast<const float *>(input),
                 static_cast<const float *>(weights),
                 static_cast<const float *>(output)))
    fail(context.positions, PENSTOCK_DEFECT,
         "device %u: oneDNN failed in the %s", index,
         describe(context.program.convs[id]).c_str());
}

void CpuDevice::launch(uint32_t kernel, const uint64_t *) {
  fail(context.positions, PENSTOCK_DEFECT,
       "device %u is a CPU, which is called and not launched: kernel '%s'",
       index, context.program.kernels[kernel].name);
}

void *CpuDevice::findConstant(uint32_t constant) {
  return const_cast<void *>(context.program.constants[constant].data);
}

bool CpuDevice::prepack(uint32_t call, Address weights, Address result) {
  auto *from = reinterpret_cast<float *>(pointerTo(weights));
  auto *to = reinterpret_cast<float *>(pointerTo(result));
  uint32_t convolutions = context.program.conv_count;
  return call < convolutions
             ? convs.run(call, nullptr, from, to)
             : gemms.run(this, call - convolutions, nullptr, from, to);
}

Statistics CpuDevice::statistics() const {
  return {memory.size(), position.waitedNanoseconds.load()};
}

void CpuDevice::upload(Address at, const void *host, uint64_t bytes) {
  std::memcpy(pointerTo(at), host, bytes);
}

void CpuDevice::download(void *host, Address at, uint64_t bytes) {
  // A large value leaves the caches before anybody reads it.
  constexpr uint64_t kLarge = 4 << 20;
  if (bytes < kLarge)
    std::memcpy(host, pointerTo(at), bytes);
  else
    copyPastCaches(host, pointerTo(at), bytes);
}

void CpuDevice::copy(Address at, DeviceMemory &from, Address fromAt,
                     uint64_t bytes, const Handover &order) {
  if (order.ready)
    order.ready->synchronize();
  from.download(pointerTo(at), fromAt, bytes);
}

void *CpuDevice::hostAddress(Address at) { return pointerTo(at); }

namespace {

struct ParallelCall {
  void (*body)(void *closure, int64_t index);
  void *closure;
  int64_t count, parts;
  // What the team's own barrier orders, said once more in terms that tools see:
  // the thread sanitizer does not look into the packaged OpenMP runtime.
  std::atomic<int64_t> order{0};
};

void runParts(void *data) {
  ParallelCall &call = *static_cast<ParallelCall *>(data);
  call.order.load(std::memory_order_acquire);
  // The parts are fixed by the plan, even where the team came out smaller.
  for (int64_t part = omp_get_thread_num(); part < call.parts;
       part += omp_get_num_threads()) {
    int64_t end = call.count * (part + 1) / call.parts;
    for (int64_t i = call.count * part / call.parts; i < end; ++i)
      call.body(call.closure, i);
  }
  call.order.fetch_add(1, std::memory_order_release);
}

} // namespace

void CpuDevice::parallel(void (*body)(void *closure, int64_t index),
                         void *closure, int64_t count) {
  if (threads <= 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i)
      body(closure, i);
    return;
  }
  ParallelCall call = {body, closure, count, threads};
  call.order.store(1, std::memory_order_release);
  GOMP_parallel(runParts, &call, threads, 0);
  call.order.load(std::memory_order_acquire);
}
