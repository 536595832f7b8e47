//===- Driver.cpp - The CUDA driver of the emulated GPU -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One lock guards everything, and whoever waits runs the work of all streams
// under it.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Driver.h"

#include "runtime/device/emulated/Enqueue.h"
#include "runtime/device/emulated/Fibers.h"
#include "runtime/device/emulated/Streams.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;
using namespace penstock::runtime::emulated;

struct cuda::FunctionState {
  DriverContext context;
  const penstock_emulated_kernel *kernel;
};

struct cuda::ModuleState {
  DriverContext context;
  std::vector<FunctionState> functions;
};

struct cuda::ContextState {
  int gpu;
  int retained = 0;
  uint64_t allocatedBytes = 0;
  std::vector<std::unique_ptr<ModuleState>> modules;
  /// Those whose memory its kernels may have.
  std::set<DriverContext> peers;
  /// The error of a kernel. Nothing else runs in the context after that.
  std::string failure;

  int status() const {
    return failure.empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
  }
};

struct cuda::EventState {
  DriverContext context;
  bool hasTime;
  Mark mark;            // null: never recorded
  uint64_t capture = 0; // recorded there, if positive
};

struct cuda::GraphState {
  DriverContext context;
  std::vector<std::function<void()>> work;
};

struct cuda::GraphExecState : GraphState {};

namespace {

struct Allocation {
  DriverContext context;
  uint64_t bytes;
  bool isMapped;
};

/// All GPUs of the machine.
struct Machine {
  Machine() {
    Settings settings;
    auto read = [](const char *name, auto &value) {
      if (const char *text = std::getenv(name))
        value = std::strtoull(text, nullptr, 10);
    };
    read("PENSTOCK_EMULATED_ORDER", settings.order);
    read("PENSTOCK_EMULATED_GPUS", settings.gpus);
    read("PENSTOCK_EMULATED_MEMORY", settings.memoryBytes);
    read("PENSTOCK_EMULATED_CAPTURE", settings.capturesLaunches);
    read("PENSTOCK_EMULATED_PEERS", settings.arePeers);
    // Whoever waits has the lock.
    streams.idle = [this] {
      changed.wait_for(mutex, std::chrono::milliseconds(1));
    };
    configure(settings);
  }

  void configure(const Settings &next) {
    settings = next;
    streams.setOrder(settings.order);
    contexts.clear();
    for (int gpu = 0; gpu < settings.gpus; ++gpu) {
      contexts.push_back(std::make_unique<ContextState>());
      contexts.back()->gpu = gpu;
    }
  }

  std::mutex mutex;
  std::condition_variable_any changed; // of what other processes do
  bool isInitialized = false;
  Settings settings;
  std::vector<std::unique_ptr<ContextState>> contexts; // by GPU
  Streams streams;
  uint64_t captures = 0;
  std::map<uint64_t, Allocation> allocations;
  std::map<uintptr_t, uint64_t> pinned; // bytes, by address of the host
};

thread_local DriverContext current = nullptr;

} // namespace

static Machine &getMachine() {
  static Machine *const machine = new Machine; // outlives all threads
  return *machine;
}

void emulated::configure(const Settings &settings) {
  Machine &machine = getMachine();
  std::lock_guard<std::mutex> lock(machine.mutex);
  machine.configure(settings);
}

//===----------------------------------------------------------------------===//
// Conditions of calls
//===----------------------------------------------------------------------===//

/// Makes a call that needs no context.
template <typename Call> static int callDriver(Call call) {
  Machine &machine = getMachine();
  std::lock_guard<std::mutex> lock(machine.mutex);
  if (!machine.isInitialized)
    return CUDA_ERROR_NOT_INITIALIZED;
  return call(machine);
}

/// Makes a call in the current context, where nothing has failed yet. What the
/// call waits for may fail.
template <typename Call> static int callInContext(Call call) {
  return callDriver([&](Machine &machine) -> int {
    if (!current)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (int status = current->status())
      return status;
    if (int status = call(machine))
      return status;
    return current->status();
  });
}

/// Fails a call that no graph can repeat. What is captured is lost with it.
static int invalidate(Stream captured, int status) {
  captured->capture->isInvalid = true;
  return status;
}

/// Makes a call that a thread may not make while it captures a stream.
template <typename Call> static int callOutsideOfCapture(Call call) {
  return callInContext([&](Machine &machine) -> int {
    if (Stream captured = machine.streams.findCaptured())
      return invalidate(captured, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return call(machine);
  });
}

/// Makes a call on a stream of the current context.
template <typename Call> static int callOnStream(Stream stream, Call call) {
  return callInContext([&](Machine &machine) -> int {
    if (!machine.streams.exists(stream) || stream->context != current)
      return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture && stream->capture->isInvalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return call(machine);
  });
}

/// Returns the allocation of a context that has all these bytes, or the end.
static auto findAllocation(const Machine &machine, uint64_t address,
                           uint64_t bytes, DriverContext context) {
  auto found = machine.allocations.upper_bound(address);
  if (found == machine.allocations.begin())
    return machine.allocations.end();
  const auto &[begin, allocation] = *--found;
  bool isInside = allocation.context == context &&
                  address - begin + bytes <= allocation.bytes;
  return isInside ? found : machine.allocations.end();
}

/// Returns true if all bytes are allocated, in one piece, in a context.
static bool isAllocated(const Machine &machine, uint64_t address,
                        uint64_t bytes, DriverContext context) {
  return findAllocation(machine, address, bytes, context) !=
         machine.allocations.end();
}

/// Returns the context whose memory is at an address, or null.
static DriverContext findOwner(const Machine &machine, uint64_t address) {
  auto after = machine.allocations.upper_bound(address);
  if (after == machine.allocations.begin())
    return nullptr;
  const auto &[begin, allocation] = *std::prev(after);
  return address - begin < allocation.bytes ? allocation.context : nullptr;
}

static bool isPinned(const Machine &machine, const void *memory,
                     uint64_t bytes) {
  auto address = reinterpret_cast<uintptr_t>(memory);
  auto after = machine.pinned.upper_bound(address);
  if (after == machine.pinned.begin())
    return false;
  const auto &[begin, size] = *std::prev(after);
  return address - begin + bytes <= size;
}

/// Memory of a GPU ends where a page ends, and pages around it are nobody's, so
/// that an index out of range faults. Less than kAlignment bytes behind it do
/// not.
struct Pages {
  static constexpr size_t kAlignment = 256;

  explicit Pages(size_t bytes) : page(size_t(sysconf(_SC_PAGESIZE))) {
    used = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    inner = (used + page - 1) / page * page;
  }

  /// All bytes are 0xff; null where there is no memory.
  char *allocate() const {
    void *memory = mmap(nullptr, inner + 2 * page, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return nullptr;
    char *first = static_cast<char *>(memory) + page;
    if (mprotect(first, inner, PROT_READ | PROT_WRITE)) {
      munmap(memory, inner + 2 * page);
      return nullptr;
    }
    std::memset(first, 0xff, inner);
    return first + inner - used;
  }
  void free(char *memory) const {
    munmap(memory + used - inner - page, inner + 2 * page);
  }

  size_t page, used, inner;
};

static char *pointerTo(uint64_t address) {
  return reinterpret_cast<char *>(address - kBias);
}

static int allocateMemory(uint64_t *address, size_t bytes, bool isMapped) {
  return callOutsideOfCapture([&](Machine &machine) {
    if (bytes == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (bytes > machine.settings.memoryBytes - current->allocatedBytes)
      return CUDA_ERROR_OUT_OF_MEMORY;
    char *memory = Pages(bytes).allocate();
    if (!memory)
      return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<uintptr_t>(memory) + kBias;
    machine.allocations[*address] = {current, bytes, isMapped};
    current->allocatedBytes += bytes;
    return CUDA_SUCCESS;
  });
}

static int freeMemory(uint64_t address, bool isMapped) {
  return callOutsideOfCapture([&](Machine &machine) {
    auto found = machine.allocations.find(address);
    if (found == machine.allocations.end() ||
        found->second.context != current || found->second.isMapped != isMapped)
      return CUDA_ERROR_INVALID_VALUE;
    machine.streams.finishAll(current);
    Pages(found->second.bytes).free(static_cast<char *>(pointerTo(address)));
    current->allocatedBytes -= found->second.bytes;
    machine.allocations.erase(found);
    return CUDA_SUCCESS;
  });
}

/// Puts work on a stream, which is left out after a failure. On a stream that
/// is captured, it goes into the graph.
static void enqueueWork(Machine &machine, Stream stream,
                        std::function<void()> work) {
  auto checked = [context = stream->context, work = std::move(work)] {
    if (context->failure.empty())
      work();
  };
  if (stream->capture)
    stream->capture->work.push_back(std::move(checked));
  else
    machine.streams.enqueue(stream, std::move(checked));
}

void emulated::enqueue(Stream stream, std::function<void()> work) {
  Machine &machine = getMachine();
  std::lock_guard<std::mutex> lock(machine.mutex);
  enqueueWork(machine, stream, std::move(work));
}

std::mutex &emulated::getLock() { return getMachine().mutex; }

void emulated::enqueueRemote(Stream stream, std::function<bool()> isDone) {
  Machine &machine = getMachine();
  if (!machine.streams.exists(stream))
    return;
  machine.streams.enqueueRemote(
      stream, [context = stream->context, isDone = std::move(isDone)] {
        return !context->failure.empty() || isDone();
      });
}

void emulated::notifyWaiting() { getMachine().changed.notify_all(); }

bool emulated::stepStreams() { return getMachine().streams.step(); }

int emulated::getCurrentGpu() { return current ? current->gpu : -1; }

bool emulated::isOnDevice(const void *address, uint64_t bytes) {
  return current &&
         isAllocated(getMachine(), reinterpret_cast<uint64_t>(address), bytes,
                     current);
}

int emulated::allocateMapped(uint64_t *address, size_t bytes) {
  return allocateMemory(address, bytes, /*isMapped=*/true);
}

int emulated::freeMapped(uint64_t address) {
  return freeMemory(address, /*isMapped=*/true);
}

uint64_t emulated::findMapped(const void *address, uint64_t bytes) {
  const Machine &machine = getMachine();
  auto found = findAllocation(machine, reinterpret_cast<uint64_t>(address),
                              bytes, current);
  return found != machine.allocations.end() && found->second.isMapped
             ? found->first
             : 0;
}

bool emulated::takesRemote(Stream stream) {
  return getMachine().streams.exists(stream) && stream->context == current &&
         !stream->capture;
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

namespace {

int cuInit(unsigned flags) {
  Machine &machine = getMachine();
  std::lock_guard<std::mutex> lock(machine.mutex);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (machine.contexts.empty())
    return CUDA_ERROR_NO_DEVICE;
  machine.isInitialized = true;
  return CUDA_SUCCESS;
}

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

int cuGetErrorName(int status, const char **name) {
  switch (status) {
#define PENSTOCK_STATUS(status)                                                \
  case status:                                                                 \
    *name = #status;                                                           \
    return CUDA_SUCCESS;
    PENSTOCK_STATUS(CUDA_SUCCESS)
    PENSTOCK_STATUS(CUDA_ERROR_INVALID_VALUE)
    PENSTOCK_STATUS(CUDA_ERROR_OUT_OF_MEMORY)
    PENSTOCK_STATUS(CUDA_ERROR_NOT_INITIALIZED)
    PENSTOCK_STATUS(CUDA_ERROR_NO_DEVICE)
    PENSTOCK_STATUS(CUDA_ERROR_INVALID_DEVICE)
    PENSTOCK_STATUS(CUDA_ERROR_INVALID_CONTEXT)
    PENSTOCK_STATUS(CUDA_ERROR_NO_BINARY_FOR_GPU)
    PENSTOCK_STATUS(CUDA_ERROR_INVALID_HANDLE)
    PENSTOCK_STATUS(CUDA_ERROR_NOT_FOUND)
    PENSTOCK_STATUS(CUDA_ERROR_NOT_READY)
    PENSTOCK_STATUS(CUDA_ERROR_LAUNCH_FAILED)
    PENSTOCK_STATUS(CUDA_ERROR_ILLEGAL_STATE)
    PENSTOCK_STATUS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    PENSTOCK_STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    PENSTOCK_STATUS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    PENSTOCK_STATUS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
    PENSTOCK_STATUS(CUDA_ERROR_CAPTURED_EVENT)
    PENSTOCK_STATUS(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
#undef PENSTOCK_STATUS
  default:
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
  }
}

/// Says what the kernel did wrong that failed in the current context.
int cuGetErrorString(int status, const char **text) {
  return callDriver([&](Machine &) {
    bool isFailure = status == CUDA_ERROR_LAUNCH_FAILED && current;
    *text = isFailure ? current->failure.c_str() : "on the emulated GPU";
    return CUDA_SUCCESS;
  });
}

int cuDeviceGetCount(int *count) {
  return callDriver([&](Machine &machine) {
    *count = machine.settings.gpus;
    return CUDA_SUCCESS;
  });
}

int cuDeviceGet(int *gpu, int ordinal) {
  return callDriver([&](Machine &machine) {
    if (ordinal < 0 || ordinal >= machine.settings.gpus)
      return CUDA_ERROR_INVALID_DEVICE;
    *gpu = ordinal;
    return CUDA_SUCCESS;
  });
}

int cuDeviceGetAttribute(int *value, int attribute, int gpu) {
  return callDriver([&](Machine &machine) {
    if (gpu < 0 || gpu >= machine.settings.gpus)
      return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

int cuDeviceGetName(char *name, int length, int gpu) {
  return callDriver([&](Machine &machine) {
    if (gpu < 0 || gpu >= machine.settings.gpus)
      return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(name, size_t(length), "emulated GPU");
    return CUDA_SUCCESS;
  });
}

/// The same in all processes, as they have the same GPUs.
int cuDeviceGetUuid(unsigned char *uuid, int gpu) {
  return callDriver([&](Machine &machine) {
    if (gpu < 0 || gpu >= machine.settings.gpus)
      return CUDA_ERROR_INVALID_DEVICE;
    std::memcpy(uuid, "emulated GPU", 12);
    std::memcpy(uuid + 12, &gpu, sizeof(gpu));
    return CUDA_SUCCESS;
  });
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

int cuDevicePrimaryCtxRetain(DriverContext *context, int gpu) {
  return callDriver([&](Machine &machine) {
    if (gpu < 0 || gpu >= machine.settings.gpus)
      return CUDA_ERROR_INVALID_DEVICE;
    *context = machine.contexts[gpu].get();
    ++(*context)->retained;
    return CUDA_SUCCESS;
  });
}

/// With the last release, everything in the context goes.
int cuDevicePrimaryCtxRelease(int gpu) {
  return callDriver([&](Machine &machine) {
    if (gpu < 0 || gpu >= machine.settings.gpus)
      return CUDA_ERROR_INVALID_DEVICE;
    DriverContext context = machine.contexts[gpu].get();
    if (context->retained == 0)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->retained)
      return CUDA_SUCCESS;
    machine.streams.finishAll(context);
    machine.streams.destroyAll(context);
    std::erase_if(machine.allocations, [&](auto &entry) {
      if (entry.second.context != context)
        return false;
      Pages(entry.second.bytes)
          .free(static_cast<char *>(pointerTo(entry.first)));
      return true;
    });
    context->modules.clear();
    context->peers.clear();
    context->allocatedBytes = 0;
    context->failure.clear();
    return CUDA_SUCCESS;
  });
}

int cuDeviceCanAccessPeer(int *can, int gpu, int peer) {
  return callDriver([&](Machine &machine) {
    for (int each : {gpu, peer})
      if (each < 0 || each >= machine.settings.gpus)
        return CUDA_ERROR_INVALID_DEVICE;
    *can = machine.settings.arePeers && gpu != peer;
    return CUDA_SUCCESS;
  });
}

int cuCtxEnablePeerAccess(DriverContext peer, unsigned flags) {
  return callInContext([&](Machine &machine) {
    if (flags || peer->retained == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (!machine.settings.arePeers || peer == current)
      return CUDA_ERROR_INVALID_DEVICE;
    return current->peers.insert(peer).second
               ? CUDA_SUCCESS
               : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

int cuCtxGetCurrent(DriverContext *context) {
  return callDriver([&](Machine &) {
    *context = current;
    return CUDA_SUCCESS;
  });
}

int cuCtxSetCurrent(DriverContext context) {
  return callDriver([&](Machine &) {
    if (context && context->retained == 0)
      return CUDA_ERROR_INVALID_CONTEXT;
    current = context;
    return CUDA_SUCCESS;
  });
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return callInContext([&](Machine &) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
  });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

int cuModuleLoadDataEx(Module *module, const void *data, unsigned optionCount,
                       int *, void **) {
  return callOutsideOfCapture([&](Machine &) {
    const auto &image = *static_cast<const penstock_image *>(data);
    if (image.kind != PENSTOCK_IMAGE_EMULATED || optionCount)
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    current->modules.push_back(std::make_unique<ModuleState>());
    *module = current->modules.back().get();
    (*module)->context = current;
    auto *end = static_cast<const penstock_emulated_kernel *>(image.end);
    for (auto *kernel =
             static_cast<const penstock_emulated_kernel *>(image.begin);
         kernel != end; ++kernel)
      (*module)->functions.push_back({current, kernel});
    return CUDA_SUCCESS;
  });
}

int cuModuleUnload(Module module) {
  return callOutsideOfCapture([&](Machine &machine) {
    if (module->context != current)
      return CUDA_ERROR_INVALID_HANDLE;
    machine.streams.finishAll(current);
    std::erase_if(current->modules,
                  [&](auto &other) { return other.get() == module; });
    return CUDA_SUCCESS;
  });
}

int cuModuleGetFunction(Function *function, Module module, const char *name) {
  return callInContext([&](Machine &) {
    for (FunctionState &candidate : module->functions)
      if (!std::strcmp(candidate.kernel->name, name)) {
        *function = &candidate;
        return CUDA_SUCCESS;
      }
    return CUDA_ERROR_NOT_FOUND;
  });
}

int cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                   unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned sharedBytes, Stream stream,
                   void **parameters, void **extra) {
  return callOnStream(stream, [&](Machine &machine) -> int {
    if (function->context != current)
      return CUDA_ERROR_INVALID_HANDLE;
    const penstock_emulated_kernel &kernel = *function->kernel;
    Dimensions grid = {gridX, gridY, gridZ}, block = {blockX, blockY, blockZ};
    auto isOutside = [](unsigned size, unsigned most) {
      return size == 0 || size > most;
    };
    if (isOutside(gridX, 0x7fffffff) || isOutside(gridY, 65535) ||
        isOutside(gridZ, 65535) || isOutside(blockX, 1024) ||
        isOutside(blockY, 1024) || isOutside(blockZ, 64) ||
        block.count() > 1024 || kernel.shared_bytes > kSharedBytes ||
        sharedBytes > kSharedBytes - kernel.shared_bytes || !parameters ||
        extra)
      return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture && !machine.settings.capturesLaunches)
      return invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    std::vector<uint64_t> words;
    for (; *parameters; ++parameters)
      words.push_back(*static_cast<uint64_t *>(*parameters));
    for (uint64_t word : words)
      if (DriverContext owner = findOwner(machine, word);
          owner && owner != current && !current->peers.count(owner)) {
        enqueueWork(machine, stream, [=, &kernel, context = current] {
          context->failure =
              format("kernel %s: the GPU does not reach the "
                     "memory of GPU %d at 0x%llx",
                     kernel.name, owner->gpu, (unsigned long long)word);
        });
        return CUDA_SUCCESS;
      }
    enqueueWork(machine, stream,
                [=, &machine, &kernel, context = current,
                 words = std::move(words)]() mutable {
                  std::vector<void *> addresses;
                  for (uint64_t &word : words)
                    addresses.push_back(&word);
                  context->failure =
                      launch(kernel, grid, block, sharedBytes, addresses.data(),
                             machine.settings.order);
                });
    return CUDA_SUCCESS;
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Allocates memory of the host, all bytes 0xff; null where there is none.
char *allocatePinned(size_t bytes) {
  constexpr size_t kAlignment = 512;
  void *memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes))
    return nullptr;
  std::memset(memory, 0xff, bytes);
  return static_cast<char *>(memory);
}

int cuMemGetInfo(size_t *free, size_t *total) {
  return callInContext([&](Machine &machine) {
    *total = machine.settings.memoryBytes;
    *free = *total - current->allocatedBytes;
    return CUDA_SUCCESS;
  });
}

int cuMemAlloc(uint64_t *address, size_t bytes) {
  return allocateMemory(address, bytes, /*isMapped=*/false);
}

int cuMemFree(uint64_t address) {
  return freeMemory(address, /*isMapped=*/false);
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  return callOutsideOfCapture([&](Machine &machine) {
    if (bytes == 0 || (flags & ~unsigned(CU_MEMHOSTALLOC_PORTABLE)))
      return CUDA_ERROR_INVALID_VALUE;
    *memory = allocatePinned(bytes);
    if (!*memory)
      return CUDA_ERROR_OUT_OF_MEMORY;
    machine.pinned[reinterpret_cast<uintptr_t>(*memory)] = bytes;
    return CUDA_SUCCESS;
  });
}

int cuMemFreeHost(void *memory) {
  return callOutsideOfCapture([&](Machine &machine) {
    if (!machine.pinned.erase(reinterpret_cast<uintptr_t>(memory)))
      return CUDA_ERROR_INVALID_VALUE;
    machine.streams.finishAll(current);
    std::free(memory);
    return CUDA_SUCCESS;
  });
}

/// From pinned memory, bytes are taken when the copy runs; from other memory,
/// by this call.
int cuMemcpyHtoDAsync(uint64_t to, const void *from, size_t bytes,
                      Stream stream) {
  return callOnStream(stream, [&](Machine &machine) -> int {
    if (!isAllocated(machine, to, bytes, current))
      return CUDA_ERROR_INVALID_VALUE;
    if (isPinned(machine, from, bytes)) {
      enqueueWork(machine, stream,
                  [=] { std::memcpy(pointerTo(to), from, bytes); });
      return CUDA_SUCCESS;
    }
    if (stream->capture)
      return invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    auto *begin = static_cast<const char *>(from);
    enqueueWork(machine, stream,
                [to, staged = std::vector<char>(begin, begin + bytes)] {
                  std::memcpy(pointerTo(to), staged.data(), staged.size());
                });
    return CUDA_SUCCESS;
  });
}

/// To memory that is not pinned, bytes are there when the call returns.
int cuMemcpyDtoHAsync(void *to, uint64_t from, size_t bytes, Stream stream) {
  return callOnStream(stream, [&](Machine &machine) -> int {
    if (!isAllocated(machine, from, bytes, current))
      return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture && !isPinned(machine, to, bytes))
      return invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    enqueueWork(machine, stream,
                [=] { std::memcpy(to, pointerTo(from), bytes); });
    if (!isPinned(machine, to, bytes))
      machine.streams.finish(stream);
    return CUDA_SUCCESS;
  });
}

int copyOnDevice(uint64_t to, DriverContext toContext, uint64_t from,
                 DriverContext fromContext, size_t bytes, Stream stream) {
  return callOnStream(stream, [&](Machine &machine) {
    if (!isAllocated(machine, to, bytes, toContext) ||
        !isAllocated(machine, from, bytes, fromContext))
      return CUDA_ERROR_INVALID_VALUE;
    enqueueWork(machine, stream,
                [=] { std::memmove(pointerTo(to), pointerTo(from), bytes); });
    return CUDA_SUCCESS;
  });
}

int cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t bytes, Stream stream) {
  return copyOnDevice(to, current, from, current, bytes, stream);
}

int cuMemcpyPeerAsync(uint64_t to, DriverContext toContext, uint64_t from,
                      DriverContext fromContext, size_t bytes, Stream stream) {
  return copyOnDevice(to, toContext, from, fromContext, bytes, stream);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes,
                    Stream stream) {
  return callOnStream(stream, [&](Machine &machine) {
    if (!isAllocated(machine, to, bytes, current))
      return CUDA_ERROR_INVALID_VALUE;
    enqueueWork(machine, stream,
                [=] { std::memset(pointerTo(to), value, bytes); });
    return CUDA_SUCCESS;
  });
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

int cuStreamCreateWithPriority(Stream *stream, unsigned flags, int) {
  return callInContext([&](Machine &machine) {
    // One that does wait for the default stream would hide a missing wait.
    if (flags != CU_STREAM_NON_BLOCKING)
      return CUDA_ERROR_INVALID_VALUE;
    *stream = machine.streams.create(current);
    return CUDA_SUCCESS;
  });
}

int cuStreamDestroy(Stream stream) {
  return callOnStream(stream, [&](Machine &machine) {
    if (stream->capture)
      return invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    machine.streams.destroy(stream);
    return int(CUDA_SUCCESS);
  });
}

int cuStreamSynchronize(Stream stream) {
  return callOnStream(stream, [&](Machine &machine) {
    Stream captured = machine.streams.findCaptured();
    if (stream->capture)
      captured = stream;
    if (captured)
      return invalidate(captured, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    machine.streams.finish(stream);
    return int(CUDA_SUCCESS);
  });
}

/// Waits for the latest record of an event, of any context, that was enqueued.
int cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  return callOnStream(stream, [&](Machine &machine) {
    if (flags)
      return int(CUDA_ERROR_INVALID_VALUE);
    if (Stream captured = machine.streams.findCaptured(event->capture)) {
      captured->capture->isUnjoined |= captured != stream;
      return int(CUDA_SUCCESS);
    }
    if (stream->capture)
      return invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (event->mark)
      machine.streams.wait(stream, event->mark);
    return int(CUDA_SUCCESS);
  });
}

int cuEventCreate(Event *event, unsigned flags) {
  return callInContext([&](Machine &) {
    if (flags & ~unsigned(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
      return CUDA_ERROR_INVALID_VALUE;
    bool hasTime = !(flags & CU_EVENT_DISABLE_TIMING);
    *event = new EventState{current, hasTime, nullptr};
    return CUDA_SUCCESS;
  });
}

int cuEventDestroy(Event event) {
  return callInContext([&](Machine &) {
    delete event;
    return CUDA_SUCCESS;
  });
}

int cuEventRecord(Event event, Stream stream) {
  return callOnStream(stream, [&](Machine &machine) {
    if (event->context != current)
      return CUDA_ERROR_INVALID_HANDLE;
    event->mark = nullptr;
    event->capture = stream->capture ? stream->capture->number : 0;
    if (!stream->capture)
      event->mark = machine.streams.mark(stream);
    return CUDA_SUCCESS;
  });
}

/// Asks about an event that is on no graph.
template <typename Call> int callOnEvent(Event event, Call call) {
  return callOutsideOfCapture([&](Machine &machine) -> int {
    return event->capture ? CUDA_ERROR_CAPTURED_EVENT : call(machine);
  });
}

/// Whoever asks again and again gets on: a little runs with each call.
int cuEventQuery(Event event) {
  return callOnEvent(event, [&](Machine &machine) {
    if (!event->mark || event->mark->isReached)
      return CUDA_SUCCESS;
    machine.streams.step();
    return event->mark->isReached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

int cuEventSynchronize(Event event) {
  return callOnEvent(event, [&](Machine &machine) {
    if (event->mark)
      machine.streams.finish(event->mark);
    return CUDA_SUCCESS;
  });
}

int cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  return callOnEvent(begin, [&](Machine &) {
    if (!begin->hasTime || !end->hasTime || !begin->mark || !end->mark)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!begin->mark->isReached || !end->mark->isReached)
      return CUDA_ERROR_NOT_READY;
    *milliseconds =
        float(end->mark->nanoseconds - begin->mark->nanoseconds) * 1e-6f;
    return CUDA_SUCCESS;
  });
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

int cuStreamBeginCapture(Stream stream, CaptureMode mode) {
  return callOnStream(stream, [&](Machine &machine) {
    if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
      return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
      return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = std::make_unique<Capture>(
        Capture{++machine.captures, std::this_thread::get_id(), {}});
    return CUDA_SUCCESS;
  });
}

/// The stream is as before in any case.
int cuStreamEndCapture(Stream stream, Graph *graph) {
  return callInContext([&](Machine &machine) {
    *graph = nullptr;
    if (!machine.streams.exists(stream) || stream->context != current)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->capture)
      return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->capture->thread != std::this_thread::get_id())
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    std::unique_ptr<Capture> capture = std::move(stream->capture);
    if (capture->isInvalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (capture->isUnjoined)
      return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *graph = new GraphState{current, std::move(capture->work)};
    return CUDA_SUCCESS;
  });
}

int cuGraphInstantiate(GraphExec *exec, Graph graph, unsigned long long flags) {
  return callInContext([&](Machine &) {
    if (flags)
      return CUDA_ERROR_INVALID_VALUE;
    *exec = new GraphExecState{*graph};
    return CUDA_SUCCESS;
  });
}

/// Its work is on the stream, in order, as that of other calls.
int cuGraphLaunch(GraphExec exec, Stream stream) {
  return callOnStream(stream, [&](Machine &machine) {
    if (exec->context != current)
      return int(CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture)
      return invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    for (const std::function<void()> &work : exec->work)
      machine.streams.enqueue(stream, work);
    return int(CUDA_SUCCESS);
  });
}

int cuGraphDestroy(Graph graph) {
  return callInContext([&](Machine &) {
    delete graph;
    return CUDA_SUCCESS;
  });
}

int cuGraphExecDestroy(GraphExec exec) {
  return callInContext([&](Machine &) {
    delete exec;
    return CUDA_SUCCESS;
  });
}

} // namespace

const Driver emulated::driver = {
#define PENSTOCK_FUNCTION(name, symbol, parameters) name,
#include "runtime/device/cuda/Driver.def"
};
