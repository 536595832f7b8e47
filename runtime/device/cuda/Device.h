//===- Device.h - A CUDA device: streams and an arena -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls return when their work is on a stream. One stream computes, one brings
// messages of other devices, one samples; what the host asks for in between
// goes through a fourth, sums over devices of the process through a fifth, and
// waves of other workers, which may be late, through a sixth. Events order
// them, and no thread of the host waits but to stay near.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_DEVICE_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_DEVICE_H

#include "runtime/device/DeviceThread.h"
#include "runtime/device/Kinds.h"
#include "runtime/device/cuda/Convolutions.h"
#include "runtime/device/cuda/Gpu.h"
#include "runtime/device/cuda/Graphs.h"
#include "runtime/device/cuda/PinnedRings.h"
#include "runtime/device/cuda/Products.h"
#include "runtime/device/cuda/SumKernels.h"
#include "runtime/device/cuda/Timeline.h"

namespace penstock::runtime::cuda {

class CudaDevice : public penstock_device {
public:
  CudaDevice(Context &context, uint32_t index);

  void start(std::function<void()> job) override;
  bool finish(int milliseconds) override;
  Error open() override;
  void close() override;

  void gemm(uint32_t id, const void *a, const void *b, void *c) override;
  bool gemmWithEpilogue(uint32_t id, const void *a, const void *b, void *c,
                        const void *bias) override;
  void conv(uint32_t id, const void *input, const void *weights,
            const void *output) override;
  void launch(uint32_t kernel, const uint64_t *parameters) override;
  void *findConstant(uint32_t constant) override;
  void *findScalars(uint32_t action) override;
  bool begin(uint32_t action, int64_t key) override;
  bool end(uint32_t action) override;
  void parallel(void (*body)(void *closure, int64_t index), void *closure,
                int64_t count) override;
  bool prepack(uint32_t call, Address weights, Address result) override;

  void deliver(std::span<char> host, Address at) override;
  void deliver(SinkRing &sink, int64_t n, Address at, uint64_t bytes) override;
  void pace() override;
  void poll() override;
  void drain() override;
  int64_t getTraceTime() override;
  Statistics statistics() const override;

  void upload(Address at, const void *host, uint64_t bytes) override;
  void download(void *host, Address at, uint64_t bytes) override;
  void copy(Address at, DeviceMemory &from, Address fromAt, uint64_t bytes,
            const Handover &order) override;
  void receive(Address at, const void *host, uint64_t bytes,
               const Handover &order) override;
  std::unique_ptr<Marker> createMarker() override;
  void mark(Marker &marker) override;
  void waitFor(Marker &marker) override;
  bool reaches(DeviceMemory &other) override;
  void sum(const SumPart &part, std::span<Marker *const> ready,
           Marker &done) override;
  void clear(Address at, uint64_t bytes) override;
  void *getNative(const void *kind) override;

  // For a transport of its own kind, once it is open.
  const Gpu &getGpu() const { return *gpu; }
  /// Returns the stream of messages that come from other devices, and of those
  /// that go to other processes.
  Stream getTransferStream() const { return transfer; }

private:
  /// Ends the process where a call failed.
  void check(int status, const char *call) const;
  void check(const Error &error) const;
  /// The same of a call that may be captured, which it counts.
  void checkIssued(const Error &error);
  bool isFromGpu(const Endpoint &endpoint) const;
  Error openMemory();
  Error openStreams();
  Stream getStream(const Handover &order) const {
    return order.isApart ? waves : transfer;
  }
  Error openConstants();
  Error openLibraries();
  Error openSums();
  int copyOnGpu(Address at, const CudaDevice &to, Address fromAt,
                const CudaDevice &from, uint64_t bytes, Stream on) const;

  /// Runs of tasks that the host may be ahead.
  static constexpr uint64_t kAhead = 64;

  std::shared_ptr<Gpu> gpu;
  const Driver *driver = nullptr;
  Stream compute = nullptr, transfer = nullptr, input = nullptr,
         direct = nullptr;
  // Where there are any within the process.
  Stream sums = nullptr, waves = nullptr;
  SumKernels sumKernels;
  Products products;
  Convolutions convolutions;
  Graphs graphs;
  uint64_t launches = 0;
  Timeline timeline;            // of the compute stream, if it is traced
  uint64_t memoryBytes = 0;     // of the arena and the scalars
  std::vector<Address> scalars; // by action, behind the arena
  /// One block of memory, and where each constant begins in it.
  Address constants = 0;
  std::vector<uint64_t> constantOffsets;
  InputRing inputs;
  HostCopies copies;
  OutputRing outputs;
  /// Events that the host waits for when it is far ahead, and before it is
  /// done.
  Event paces[kAhead] = {};
  uint64_t firstPace = 0, endPace = 0;
  std::vector<void *> cellsOfLaunch;
  /// The thread comes last, so that it ends first.
  DeviceThread thread;
};

} // namespace penstock::runtime::cuda

/// Registers the kind "cuda".
extern "C" penstock::runtime::DeviceKind penstock_cuda;

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_DEVICE_H
