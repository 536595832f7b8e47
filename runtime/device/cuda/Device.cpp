//===- Device.cpp - A CUDA device: streams and an arena -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses are those of the driver. Whatever runs on the compute stream runs
// in the order of the calls, so kernels need no events among each other.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Device.h"

#include "runtime/device/Cores.h"
#include "runtime/device/cuda/EpilogueTrial.h"
#include "runtime/device/cuda/Tuning.h"
#include "runtime/observe/Failure.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

/// An event.
class CudaMarker final : public Marker {
public:
  CudaMarker(const penstock_device &device, std::shared_ptr<Gpu> gpu)
      : device(device), gpu(std::move(gpu)) {
    Gpu::Visit visit(*this->gpu);
    check(this->gpu->driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING),
          "cuEventCreate");
  }
  ~CudaMarker() override {
    Gpu::Visit visit(*gpu);
    (void)gpu->driver.cuEventDestroy(event);
  }

  void synchronize() override {
    Gpu::Visit visit(*gpu);
    check(gpu->driver.cuEventSynchronize(event), "cuEventSynchronize");
  }
  bool isReached() override {
    Gpu::Visit visit(*gpu);
    int status = gpu->driver.cuEventQuery(event);
    if (status != CUDA_ERROR_NOT_READY)
      check(status, "cuEventQuery");
    return status == CUDA_SUCCESS;
  }
  void *getNative(const void *kind) override {
    return kind == &penstock_cuda ? event : nullptr;
  }

private:
  void check(int status, const char *call) const {
    if (!status)
      return;
    Error error = describeFailure(gpu->driver, status, call);
    fail(device.context.positions, error.code, "device %u: %s", device.index,
         error.text.c_str());
  }

  const penstock_device &device;
  std::shared_ptr<Gpu> gpu;
  Event event = nullptr;
};

/// The event of a marker of such a device; null for none.
Event getEvent(const std::unique_ptr<Marker> &marker) {
  return marker ? static_cast<Event>(marker->getNative(&penstock_cuda))
                : nullptr;
}

} // namespace

/// Returns true unless the environment says VARIABLE=0.
static bool isOn(const char *variable) {
  const char *setting = std::getenv(variable);
  return !setting || std::strcmp(setting, "0");
}

CudaDevice::CudaDevice(Context &context, uint32_t index)
    : penstock_device(context, index),
      thread(index, shareOfCores(context, index)) {
  runsBehind = true;
}

void CudaDevice::start(std::function<void()> job) {
  thread.start(std::move(job));
}

bool CudaDevice::finish(int milliseconds) { return thread.wait(milliseconds); }

void CudaDevice::check(const Error &error) const {
  if (!error)
    return;
  uint32_t task = position.task.load(std::memory_order_relaxed);
  std::string where;
  if (task < context.program.task_count)
    where = format(" at %c%lld (%s)", char(context.program.tasks[task].letter),
                   (long long)position.taskNumber.load(),
                   context.program.tasks[task].name);
  fail(context.positions, error.code, "device %u%s: %s", index, where.c_str(),
       error.text.c_str());
}

void CudaDevice::check(int status, const char *call) const {
  if (status)
    check(describeFailure(*driver, status, call));
}

//===----------------------------------------------------------------------===//
// Opening and closing
//===----------------------------------------------------------------------===//

/// Returns true if messages of a channel come from the memory of a GPU. Those
/// of a source, of a CPU and of another process, unless GPUs reach each other,
/// do not.
bool CudaDevice::isFromGpu(const Endpoint &endpoint) const {
  int32_t sender = endpoint.channel->description.sender;
  if (endpoint.isFar)
    return context.transport->connects();
  return sender >= 0 && !std::strcmp(context.program.devices[sender].kind,
                                     context.program.devices[index].kind);
}

Error CudaDevice::openStreams() {
  int least = 0, greatest = 0;
  int status = driver->cuCtxGetStreamPriorityRange(&least, &greatest);
  for (Stream *stream : {&compute, &transfer, &input, &direct})
    // Copies are short, and others wait for them.
    if (!status)
      status = driver->cuStreamCreateWithPriority(
          stream, CU_STREAM_NON_BLOCKING,
          stream == &compute ? least : greatest);
  for (Event &event : paces)
    // The host sleeps there, and leaves its core to others.
    if (!status)
      status = driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING |
                                                 CU_EVENT_BLOCKING_SYNC);
  if (!status)
    status = outputs.open(*driver);
  if (!status)
    status = copies.open(*driver);
  if (!status && trace)
    status = timeline.open(*driver, compute);
  for (const Endpoint &endpoint : context.endpoints) {
    const penstock_channel &channel = endpoint.channel->description;
    if (!status && !waves && endpoint.hasOwnQueue &&
        channel.receiver == int32_t(index))
      status = driver->cuStreamCreateWithPriority(
          &waves, CU_STREAM_NON_BLOCKING, greatest);
    if (!status && channel.receiver == int32_t(index) && !isFromGpu(endpoint))
      status = inputs.add(*driver, channel.type.bytes, channel.slots + 1);
  }
  return status ? describeFailure(*driver, status, "opening streams") : Error();
}

Error CudaDevice::openMemory() {
  uint64_t bytes = context.program.devices[index].arena_bytes;
  // Scalars are behind the arena.
  constexpr uint64_t kWord = sizeof(uint64_t);
  bytes = (bytes + kWord - 1) / kWord * kWord;
  for (uint32_t i = 0; i < context.program.action_count; ++i) {
    scalars.push_back(bytes);
    bytes += context.program.actions[i].scalar_count * kWord;
  }
  std::lock_guard<std::mutex> hold(gpu->memory);
  size_t free = 0, total = 0;
  if (int status = driver->cuMemGetInfo(&free, &total))
    return describeFailure(*driver, status, "cuMemGetInfo");
  int status = CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes <= free) {
    uint64_t size = std::max<uint64_t>(bytes, 1);
    origin = context.transport->allocate(size);
    status = origin ? CUDA_SUCCESS : driver->cuMemAlloc(&origin, size);
  }
  if (status == CUDA_ERROR_OUT_OF_MEMORY)
    return doesNotFit("device %u needs %llu bytes; of the %llu of GPU %d, %llu "
                      "are free",
                      index, (unsigned long long)bytes,
                      (unsigned long long)total, gpu->ordinal,
                      (unsigned long long)free);
  if (status)
    return describeFailure(*driver, status, "allocating the arena");
  memoryBytes = bytes;
  arena = reinterpret_cast<char *>(origin);
  for (Address &each : scalars)
    each += origin;
  return {};
}

Error CudaDevice::openConstants() {
  constexpr uint64_t kAlignment = 256;
  const penstock_program &program = context.program;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < program.constant_count; ++i) {
    constantOffsets.push_back(bytes);
    bytes +=
        (program.constants[i].bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (bytes == 0)
    return {};
  std::lock_guard<std::mutex> hold(gpu->memory);
  int status = driver->cuMemAlloc(&constants, bytes);
  for (uint32_t i = 0; i < program.constant_count && !status; ++i)
    status = driver->cuMemcpyHtoDAsync(constants + constantOffsets[i],
                                       program.constants[i].data,
                                       program.constants[i].bytes, direct);
  if (!status)
    status = driver->cuStreamSynchronize(direct);
  if (status == CUDA_ERROR_OUT_OF_MEMORY)
    return doesNotFit("device %u needs %llu bytes for constants besides its "
                      "arena",
                      index, (unsigned long long)bytes);
  return status ? describeFailure(*driver, status, "copying constants")
                : Error();
}

void *CudaDevice::findConstant(uint32_t constant) {
  return reinterpret_cast<void *>(constants + constantOffsets[constant]);
}

void *CudaDevice::findScalars(uint32_t action) {
  return reinterpret_cast<void *>(scalars[action]);
}

Error CudaDevice::open() {
  const Driver *table = nullptr;
  if (Error error = loadDriver(table))
    return error;
  int count = 0;
  if (int status = table->cuDeviceGetCount(&count))
    return describeFailure(*table, status, "cuDeviceGetCount");
  if (count < 1)
    return userError("this program needs an NVIDIA GPU: the driver finds none");
  for (int chosen : context.gpus)
    if (chosen >= count)
      return userError("--gpus: there is no GPU %d; the driver finds %d",
                       chosen, count);
  // Devices of other kinds take no turn.
  uint32_t turn =
      countDevices(context.program, context.program.devices[index].kind, index);
  if (Error error = Gpu::open(*table, context.program,
                              placeDevice(turn, count, context.gpus), gpu))
    return error;
  driver = &gpu->driver;
  if (int status = gpu->enter())
    return describeFailure(*driver, status, "cuCtxSetCurrent");
  if (Error error = openStreams())
    return error;
  if (Error error = openMemory())
    return error;
  if (Error error = openConstants())
    return error;
  uint32_t parameters = 0;
  for (uint32_t i = 0; i < context.program.kernel_count; ++i)
    parameters =
        std::max(parameters, context.program.kernels[i].parameter_count);
  cellsOfLaunch.resize(parameters + 1);
  graphs.open(*driver, context.program, index, isOn("PENSTOCK_GRAPHS"));
  if (Error error = openLibraries())
    return error;
  // Products that were tried have left their operands there.
  clear(origin, memoryBytes);
  check(driver->cuStreamSynchronize(compute), "cuStreamSynchronize");
  return {};
}

Error CudaDevice::openLibraries() {
  Tuning tuning;
  if (!context.tunePath.empty()) {
    std::string name;
    if (int status = gpu->getName(name))
      return describeFailure(*driver, status, "cuDeviceGetName");
    if (Error error = tuning.open(context.tunePath, context.measures, name,
                                  *driver, direct, gpu->memory))
      return error;
  }
  EpilogueTrial trial(*driver, direct, origin,
                      context.program.devices[index].arena_bytes);
  if (Error error =
          products.prepare(context.program, index, origin, &tuning,
                           isOn("PENSTOCK_EPILOGUES") ? &trial : nullptr))
    return error;
  if (Error error =
          convolutions.prepare(context.program, index, origin, &tuning))
    return error;
  return tuning.close(index);
}

void CudaDevice::close() {
  if (!driver)
    return;
  (void)gpu->enter();
  graphs.clear();
  products.clear();
  convolutions.clear();
  inputs.clear(*driver);
  copies.clear(*driver);
  outputs.clear(*driver);
  timeline.clear();
  for (Event event : paces)
    if (event)
      (void)driver->cuEventDestroy(event);
  sumKernels.close(*driver);
  for (Stream stream : {compute, transfer, input, direct, sums, waves})
    if (stream)
      (void)driver->cuStreamDestroy(stream);
  if (origin && !context.transport->release(origin))
    (void)driver->cuMemFree(origin);
  if (constants)
    (void)driver->cuMemFree(constants);
}

Statistics CudaDevice::statistics() const {
  return {context.program.devices[index].arena_bytes,
          position.waitedNanoseconds.load(),
          launches,
          graphs.getCount(),
          products.countEpilogues(),
          products.countAppliedEpilogues()};
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

void CudaDevice::launch(uint32_t id, const uint64_t *parameters) {
  const penstock_kernel &kernel = context.program.kernels[id];
  for (uint32_t i = 0; i < kernel.parameter_count; ++i)
    cellsOfLaunch[i] = const_cast<uint64_t *>(&parameters[i]);
  // Where the emulated driver stops.
  cellsOfLaunch[kernel.parameter_count] = nullptr;
  Error error;
  if (int status = driver->cuLaunchKernel(
          gpu->functions[id], kernel.grid[0], kernel.grid[1], kernel.grid[2],
          kernel.block[0], kernel.block[1], kernel.block[2],
          kernel.shared_bytes, compute, cellsOfLaunch.data(), nullptr))
    error = describeFailure(*driver, status,
                            format("launching %s", kernel.name).c_str());
  checkIssued(error);
}

void CudaDevice::gemm(uint32_t id, const void *a, const void *b, void *c) {
  checkIssued(
      products.run(id, getAddress(a), getAddress(b), getAddress(c), compute));
}

bool CudaDevice::gemmWithEpilogue(uint32_t id, const void *a, const void *b,
                                  void *c, const void *bias) {
  bool isPending = true;
  checkIssued(products.run(id, getAddress(a), getAddress(b), getAddress(c),
                           getAddress(bias), compute, isPending));
  return isPending;
}

void CudaDevice::conv(uint32_t id, const void *input, const void *weights,
                      const void *output) {
  checkIssued(convolutions.run(id, getAddress(input), getAddress(weights),
                               getAddress(output), compute));
}

void CudaDevice::checkIssued(const Error &error) {
  launches += !graphs.isCapturing();
  if (error && graphs.isCapturing())
    graphs.reject(error.text);
  else
    check(error);
}

bool CudaDevice::begin(uint32_t action, int64_t key) {
  bool isIssued = true;
  check(graphs.begin(action, key, compute, isIssued), "cuGraphLaunch");
  launches += !isIssued;
  return isIssued;
}

bool CudaDevice::end(uint32_t action) {
  bool isIssuedAgain = false, wasCapturing = graphs.isCapturing();
  check(graphs.end(action, compute, isIssuedAgain), "cuGraphLaunch");
  launches += wasCapturing && !isIssuedAgain;
  return isIssuedAgain;
}

void CudaDevice::parallel(void (*)(void *, int64_t), void *, int64_t) {
  fail(context.positions, PENSTOCK_DEFECT,
       "device %u is a GPU, for which the host does not compute", index);
}

bool CudaDevice::prepack(uint32_t, Address, Address) { return false; }

void CudaDevice::deliver(std::span<char> host, Address at) {
  check(copies.download(*driver, host.data(), at, host.size(), compute),
        "copying an output");
}

void CudaDevice::deliver(SinkRing &sink, int64_t n, Address at,
                         uint64_t bytes) {
  check(outputs.send(*driver, sink, n, at, bytes, compute),
        "copying to a sink");
}

void CudaDevice::pace() {
  if (endPace - firstPace == kAhead)
    check(driver->cuEventSynchronize(paces[firstPace++ % kAhead]),
          "cuEventSynchronize");
  check(driver->cuEventRecord(paces[endPace++ % kAhead], compute),
        "cuEventRecord");
}

void CudaDevice::poll() {
  Gpu::Visit visit(*gpu);
  check(outputs.poll(*driver), "cuEventQuery");
}

void CudaDevice::drain() {
  for (; firstPace != endPace; ++firstPace) {
    check(driver->cuEventSynchronize(paces[firstPace % kAhead]),
          "cuEventSynchronize");
    // The watchdog sees what is done here.
    position.progress.store(position.progress.load() + 1);
  }
  for (Stream stream : {compute, transfer, input, sums, waves})
    if (stream)
      check(driver->cuStreamSynchronize(stream), "cuStreamSynchronize");
  check(outputs.drain(*driver), "cuEventSynchronize");
  if (!trace)
    return;
  // Two events with nothing between them are a microsecond apart.
  constexpr int64_t kShortestWait = 2000;
  check(timeline.drain(), "cuEventElapsedTime");
  trace->resolve([&](int64_t point) { return timeline.getTime(point); },
                 kShortestWait);
}

int64_t CudaDevice::getTraceTime() {
  int64_t point = 0;
  check(timeline.add(point), "cuEventRecord");
  return point;
}

//===----------------------------------------------------------------------===//
// Memory, from any thread
//===----------------------------------------------------------------------===//

void CudaDevice::upload(Address at, const void *host, uint64_t bytes) {
  Gpu::Visit visit(*gpu);
  check(copies.upload(*driver, at, host, bytes, direct), "copying to the GPU");
}

void CudaDevice::download(void *host, Address at, uint64_t bytes) {
  Gpu::Visit visit(*gpu);
  check(copies.download(*driver, host, at, bytes, direct),
        "copying to the host");
}

int CudaDevice::copyOnGpu(Address at, const CudaDevice &to, Address fromAt,
                          const CudaDevice &from, uint64_t bytes,
                          Stream on) const {
  if (from.gpu->ordinal == to.gpu->ordinal && to.gpu->ordinal == gpu->ordinal)
    return driver->cuMemcpyDtoDAsync(at, fromAt, bytes, on);
  return driver->cuMemcpyPeerAsync(at, to.gpu->context, fromAt,
                                   from.gpu->context, bytes, on);
}

void CudaDevice::copy(Address at, DeviceMemory &from, Address fromAt,
                      uint64_t bytes, const Handover &order) {
  Gpu::Visit visit(*gpu);
  Stream stream = getStream(order);
  if (Event ready = getEvent(order.ready)) {
    for (Event event : {getEvent(order.free), ready})
      check(driver->cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
    check(copyOnGpu(at, *this, fromAt, static_cast<CudaDevice &>(from), bytes,
                    stream),
          "copying between GPUs");
    check(driver->cuEventRecord(getEvent(order.done), stream), "cuEventRecord");
  } else {
    // The bytes of another kind of device are there, or it would have a marker.
    const void *host = from.hostAddress(fromAt);
    std::vector<char> staged;
    if (!host) {
      staged.resize(bytes);
      from.download(staged.data(), fromAt, bytes);
      host = staged.data();
    }
    check(inputs.send(*driver, at, host, bytes, getEvent(order.free),
                      getEvent(order.done), stream),
          "copying a message");
  }
}

void CudaDevice::receive(Address at, const void *host, uint64_t bytes,
                         const Handover &order) {
  Gpu::Visit visit(*gpu);
  check(inputs.send(*driver, at, host, bytes, getEvent(order.free),
                    getEvent(order.done), input),
        "copying samples");
}

std::unique_ptr<Marker> CudaDevice::createMarker() {
  return std::make_unique<CudaMarker>(*this, gpu);
}

void CudaDevice::mark(Marker &marker) {
  check(driver->cuEventRecord(
            static_cast<Event>(marker.getNative(&penstock_cuda)), compute),
        "cuEventRecord");
}

void CudaDevice::waitFor(Marker &marker) {
  if (void *event = marker.getNative(&penstock_cuda))
    check(driver->cuStreamWaitEvent(compute, static_cast<Event>(event), 0),
          "cuStreamWaitEvent");
  else
    marker.synchronize();
}

//===----------------------------------------------------------------------===//
// Sums over devices of the process
//===----------------------------------------------------------------------===//

Error CudaDevice::openSums() {
  if (sumKernels.isOpen())
    return {};
  int least = 0, greatest = 0;
  int status = driver->cuCtxGetStreamPriorityRange(&least, &greatest);
  if (!status)
    status = driver->cuStreamCreateWithPriority(&sums, CU_STREAM_NON_BLOCKING,
                                                greatest);
  return status ? describeFailure(*driver, status, "opening streams")
                : sumKernels.open(*driver);
}

void *CudaDevice::getNative(const void *kind) {
  return kind == &penstock_cuda ? this : nullptr;
}

static CudaDevice *toCudaDevice(DeviceMemory &memory) {
  return static_cast<CudaDevice *>(memory.getNative(&penstock_cuda));
}

bool CudaDevice::reaches(DeviceMemory &other) {
  const CudaDevice *device = toCudaDevice(other);
  if (!device)
    return false;
  Gpu::Visit visit(*gpu);
  if (!gpu->reaches(*device->gpu))
    return false;
  check(openSums());
  return true;
}

/// One term after the other is added in the place of the first or, so that
/// sums of two are stored near, the second.
void CudaDevice::sum(const SumPart &part, std::span<Marker *const> ready,
                     Marker &done) {
  for (Marker *marker : ready)
    check(driver->cuStreamWaitEvent(
              sums, static_cast<Event>(marker->getNative(&penstock_cuda)), 0),
          "cuStreamWaitEvent");
  std::vector<const SumPart::Value *> terms;
  for (const SumPart::Value &value : part.values)
    if (terms.empty() || value.reset != PENSTOCK_SUM_RECEIVES)
      terms.push_back(&value);
  const SumPart::Value *to = terms.front(), *from = to;
  if (terms.size() > 1 && toCudaDevice(*terms[1]->memory) == this)
    to = terms[1];
  uint64_t count = part.bytes / (part.isDouble ? 8 : 4);
  for (size_t i = 1; i < terms.size() && count; ++i, from = to)
    check(sumKernels.launch(*driver, part.isDouble, from->at,
                            terms[i]->at - from->at, 2, to->at, count, sums));
  for (const SumPart::Value &value : part.values)
    if (&value != to && value.reset != PENSTOCK_SUM_RESETS && count)
      check(copyOnGpu(value.at, *toCudaDevice(*value.memory), to->at,
                      *toCudaDevice(*to->memory), part.bytes, sums),
            "copying a sum");
  check(driver->cuEventRecord(
            static_cast<Event>(done.getNative(&penstock_cuda)), sums),
        "cuEventRecord");
}

void CudaDevice::clear(Address at, uint64_t bytes) {
  check(driver->cuMemsetD8Async(at, 0, bytes, compute), "cuMemsetD8Async");
}
