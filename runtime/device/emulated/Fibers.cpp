//===- Fibers.cpp - The threads of a block as fibers ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fiber runs until it waits, at a barrier or in a shuffle, or ends. A wait
// says what it waits for, so a block in which no thread can go on is reported:
// on a GPU it is undefined behavior. Kernels in which nobody waits need no
// fibers and run as plain calls.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Fibers.h"

#include "runtime/device/emulated/Enqueue.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <vector>
#include <xmmintrin.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PENSTOCK_FIBERS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(thread_sanitizer)
#define PENSTOCK_FIBERS_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#endif

using namespace penstock::runtime;
using emulated::Dimensions;

#if !defined(__x86_64__)
#error "this processor needs a switch of its callee-saved registers here"
#endif

/// Saves the callee-saved registers on the stack and the stack in `*save`, then
/// goes on where another fiber did the same.
extern "C" void penstock_switch_fiber(void **save, void *to);
asm(R"(
.text
.type penstock_switch_fiber,@function
penstock_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size penstock_switch_fiber, .-penstock_switch_fiber
)");

namespace {

enum class State : uint8_t { Ready, Barrier, Shuffle, Done };
enum class Shuffle : uint8_t {
  WarpBarrier,
  Butterfly,
  Down,
  Up,
  Index,
  Ballot
};

constexpr uint32_t kWarp = 32;
// Sanitizers make frames several times as large.
#if defined(PENSTOCK_FIBERS_ASAN) || defined(PENSTOCK_FIBERS_TSAN)
constexpr size_t kStackBytes = 512 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

/// A stack that can be left and entered again: a thread's, or that of whoever
/// lets the threads of a block run.
struct Stack {
  void *pointer = nullptr; // of the stack, where it was left
  char *memory = nullptr;  // null: that of the host's thread
#if defined(PENSTOCK_FIBERS_ASAN)
  const void *bottom = nullptr;
  size_t bytes = 0;
  void *fake = nullptr;
#endif
#if defined(PENSTOCK_FIBERS_TSAN)
  void *fiber = nullptr;
#endif

  Stack() = default;
  Stack(const Stack &) = delete;
  ~Stack() {
    if (memory)
      munmap(memory, kStackBytes);
#if defined(PENSTOCK_FIBERS_TSAN)
    if (memory)
      __tsan_destroy_fiber(fiber);
#endif
  }
};

struct Fiber {
  Stack stack;
  State state = State::Done;
  // In a shuffle: who takes part, the value, and the lane whose value comes.
  Shuffle shuffle = Shuffle::WarpBarrier;
  uint32_t mask = 0, bits = 0, source = 0;
};

/// The block that runs on a thread of the host.
struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<uint32_t> threads; // in the order in which they run
  Stack scheduler;
  const penstock_emulated_kernel *kernel = nullptr;
  void **parameters = nullptr;
  Dimensions grid, block, id;
  uint32_t current = 0, count = 0;
  uint32_t sharedBytes = 0;
  /// Where an access outside of the GPU's memory ends the kernel, and what it
  /// accessed.
  sigjmp_buf landing;
  void *fault = nullptr;
  /// Instead: the parameter that it left, where, and how many bytes it has.
  uint32_t parameter = 0;
  uint64_t offset = 0, bytes = 0;
  alignas(128) char shared[emulated::kSharedBytes];
};

thread_local std::unique_ptr<Block> memory;      // kept for the next kernel
constinit thread_local Block *running = nullptr; // null: no kernel runs

} // namespace

//===----------------------------------------------------------------------===//
// Switches
//===----------------------------------------------------------------------===//

/// Leaves `from` for `to`, until somebody switches back.
static void switchTo(Stack &from, Stack &to) {
#if defined(PENSTOCK_FIBERS_ASAN)
  __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
#endif
#if defined(PENSTOCK_FIBERS_TSAN)
  __tsan_switch_to_fiber(to.fiber, 0);
#endif
  penstock_switch_fiber(&from.pointer, to.pointer);
#if defined(PENSTOCK_FIBERS_ASAN)
  __sanitizer_finish_switch_fiber(from.fake, nullptr, nullptr);
#endif
}

/// Lets the other threads of the block run until this one may go on.
static void wait(State state) {
  Block &block = *running;
  Fiber &fiber = *block.fibers[block.current];
  fiber.state = state;
  switchTo(fiber.stack, block.scheduler);
}

/// Runs one thread of a kernel in its fiber.
[[noreturn]] static void runThread() {
#if defined(PENSTOCK_FIBERS_ASAN)
  Stack &scheduler = running->scheduler;
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.bottom, &scheduler.bytes);
#endif
  running->kernel->packed(running->parameters);
  wait(State::Done);
  std::abort(); // Nobody switches to a thread that has ended.
}

static void start(Fiber &fiber, uint32_t index) {
  Stack &stack = fiber.stack;
  if (!stack.memory) {
    stack.memory =
        static_cast<char *>(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (stack.memory == MAP_FAILED) {
      std::fprintf(stderr, "error: no memory for a thread of the emulated "
                           "GPU\n");
      std::exit(PENSTOCK_DOES_NOT_FIT);
    }
#if defined(PENSTOCK_FIBERS_ASAN)
    stack.bottom = stack.memory;
    stack.bytes = kStackBytes;
#endif
#if defined(PENSTOCK_FIBERS_TSAN)
    stack.fiber = __tsan_create_fiber(0);
#endif
  }
  // The stack of somebody who has called penstock_switch_fiber: six registers,
  // then where to return to, with the alignment that a function finds on entry.
  // Stacks that begin at equal addresses modulo 4096 would share one set of the
  // cache.
  size_t color = index % 32 * 576;
  auto **top =
      reinterpret_cast<void **>(stack.memory + kStackBytes - color) - 2;
  *top = reinterpret_cast<void *>(&runThread);
  stack.pointer = top - 6;
  fiber.state = State::Ready;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Returns the votes of the lanes that take part with this one, a bit each.
static uint32_t countVotes(const std::unique_ptr<Fiber> *lanes, uint32_t size,
                           const Fiber &fiber) {
  uint32_t votes = 0;
  for (uint32_t lane = 0; lane < size; ++lane)
    votes |= (fiber.mask >> lane & lanes[lane]->bits & 1) << lane;
  return votes;
}

/// Lets those lanes of each warp go on whose partners have all come to the same
/// shuffle. Returns false if there are none.
static bool releaseShuffles(Block &block) {
  bool hasReleased = false;
  for (uint32_t first = 0; first < block.count; first += kWarp) {
    uint32_t size = std::min(kWarp, block.count - first);
    uint32_t present = size == kWarp ? ~0u : (1u << size) - 1;
    std::unique_ptr<Fiber> *lanes = &block.fibers[first];
    auto hasAllPartners = [&](const Fiber &fiber) {
      for (uint32_t lane = 0; lane < size; ++lane)
        if ((fiber.mask >> lane & 1) &&
            (lanes[lane]->state != State::Shuffle ||
             lanes[lane]->shuffle != fiber.shuffle ||
             lanes[lane]->mask != fiber.mask))
          return false;
      return true;
    };
    uint32_t released = 0;
    for (uint32_t lane = 0; lane < size; ++lane)
      if (lanes[lane]->state == State::Shuffle && !(released >> lane & 1) &&
          hasAllPartners(*lanes[lane]))
        released |= lanes[lane]->mask & present;
    uint32_t values[kWarp];
    for (uint32_t lane = 0; lane < size; ++lane)
      values[lane] = lanes[lane]->shuffle == Shuffle::Ballot
                         ? countVotes(lanes, size, *lanes[lane])
                         : lanes[lane]->bits;
    for (uint32_t lane = 0; lane < size; ++lane) {
      if (!(released >> lane & 1))
        continue;
      Fiber &fiber = *lanes[lane];
      fiber.bits = values[fiber.source < size ? fiber.source : lane];
      fiber.state = State::Ready;
    }
    hasReleased |= released != 0;
  }
  return hasReleased;
}

static uint32_t count(const Block &block, State state) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block.count; ++i)
    count += block.fibers[i]->state == state;
  return count;
}

/// Says why a block does not go on.
static std::string describeHang(const Block &block) {
  return format("kernel %s, block (%u,%u,%u): of %u threads, %u wait at a "
                "barrier, %u in a shuffle whose other lanes do not come, %u "
                "have ended",
                block.kernel->name, block.id.x, block.id.y, block.id.z,
                block.count, count(block, State::Barrier),
                count(block, State::Shuffle), count(block, State::Done));
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

// Sanitizers have handlers of their own, which say more.
#if !defined(PENSTOCK_FIBERS_ASAN) && !defined(PENSTOCK_FIBERS_TSAN)
constinit static struct sigaction previous = {};

/// Ends the kernel. Of other code, the fault is nothing of ours, nor is what
/// another process sends.
static void onFault(int signal, siginfo_t *info, void *) {
  bool isSent = info->si_code <= 0;
  if (isSent || !running) {
    sigaction(signal, &previous, nullptr);
    if (isSent)
      raise(signal);
    return;
  }
  running->fault = info->si_addr;
  siglongjmp(running->landing, 1);
}

static void watchFaults() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = onFault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &previous);
  });
}
#else
static void watchFaults() {}
#endif

static std::string describeFault(const Block &block) {
  if (block.bytes)
    return format("kernel %s, block (%u,%u,%u), thread %u: an access at byte "
                  "%lld of parameter %u, which has %llu",
                  block.kernel->name, block.id.x, block.id.y, block.id.z,
                  block.current, (long long)block.offset, block.parameter,
                  (unsigned long long)block.bytes);
  return format("kernel %s, block (%u,%u,%u), thread %u: the GPU has no memory "
                "at 0x%llx",
                block.kernel->name, block.id.x, block.id.y, block.id.z,
                block.current,
                (unsigned long long)(reinterpret_cast<uint64_t>(block.fault) +
                                     emulated::kBias));
}

static std::string runBlock(Block &block) {
  std::memset(block.shared, 0xff, block.sharedBytes);
  if (!block.kernel->waits) {
    for (uint32_t thread : block.threads) {
      block.current = thread;
      block.kernel->packed(block.parameters);
    }
    return "";
  }
  for (uint32_t i = 0; i < block.count; ++i)
    start(*block.fibers[i], i);
  while (true) {
    bool hasRun = false;
    for (uint32_t thread : block.threads) {
      Fiber &fiber = *block.fibers[thread];
      if (fiber.state != State::Ready)
        continue;
      block.current = thread;
      switchTo(block.scheduler, fiber.stack);
      hasRun = true;
    }
    if (releaseShuffles(block) || hasRun)
      continue;
    if (count(block, State::Done) == block.count)
      return "";
    if (count(block, State::Barrier) != block.count)
      return describeHang(block);
    for (uint32_t i = 0; i < block.count; ++i)
      block.fibers[i]->state = State::Ready;
  }
}

/// Returns 0 .. count - 1 in an order.
static std::vector<uint32_t> permute(uint64_t count, uint64_t order) {
  std::vector<uint32_t> numbers(count);
  for (uint64_t i = 0; i < count; ++i)
    numbers[i] = uint32_t(order == 1 ? count - 1 - i : i);
  uint64_t state = order * 0x9e3779b97f4a7c15ull;
  for (uint64_t i = count; order > 1 && i > 1; --i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(numbers[i - 1], numbers[(state >> 33) % i]);
  }
  return numbers;
}

/// Runs the blocks. Nothing here has a destructor that a fault would leave out.
static std::string runGrid(Block &state, uint64_t order) {
  std::vector<uint32_t> blocks = permute(state.grid.count(), order);
  if (sigsetjmp(state.landing, /*savemask=*/1))
    return describeFault(state);
  for (uint32_t i : blocks) {
    const Dimensions &grid = state.grid;
    state.id = {i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y};
    std::string problem = runBlock(state);
    if (!problem.empty())
      return problem;
  }
  return "";
}

std::string emulated::launch(const penstock_emulated_kernel &kernel,
                             Dimensions grid, Dimensions block,
                             uint32_t sharedBytes, void **parameters,
                             uint64_t order) {
  watchFaults();
  if (!memory)
    memory = std::make_unique<Block>();
  running = memory.get();
  Block &state = *running;
  state.kernel = &kernel;
  state.parameters = parameters;
  state.grid = grid;
  state.block = block;
  state.sharedBytes = kernel.shared_bytes + sharedBytes;
  state.count = uint32_t(block.count());
  state.bytes = 0;
  while (state.fibers.size() < state.count)
    state.fibers.push_back(std::make_unique<Fiber>());
  state.threads = permute(state.count, order);
#if defined(PENSTOCK_FIBERS_TSAN)
  state.scheduler.fiber = __tsan_get_current_fiber();
#endif

  // Kernels flush subnormal numbers, their operands and their results.
  constexpr unsigned kFlush = 0x8040;
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlush);
  std::string problem = runGrid(state, order);
  _mm_setcsr(before);
  running = nullptr;
  return problem;
}

//===----------------------------------------------------------------------===//
// What kernels call
//===----------------------------------------------------------------------===//

static uint32_t getLane() { return running->current % kWarp; }

/// Waits for the lanes of `mask` and returns the bits of lane `source`.
static uint32_t shuffle(Shuffle kind, uint32_t mask, uint32_t bits,
                        uint32_t source) {
  Fiber &fiber = *running->fibers[running->current];
  fiber.shuffle = kind;
  fiber.mask = mask;
  fiber.bits = bits;
  fiber.source = source;
  wait(State::Shuffle);
  return fiber.bits;
}

/// Returns the lane that a shuffle reads, which is `lane` if that lies within
/// the segment, and its own otherwise. In `clamp`, bits 8 to 12 say which bits
/// of a lane's number are those of its segment, bits 0 to 4 bound the others
/// from above, or from below going up. (PTX ISA, shfl.sync.)
static uint32_t clampLane(uint32_t clamp, uint32_t lane, bool isUp) {
  uint32_t segment = clamp >> 8 & 31,
           bound = (getLane() & segment) | (clamp & 31 & ~segment);
  bool isInside = isUp ? int32_t(lane) >= int32_t(bound) : lane <= bound;
  return isInside ? lane : getLane();
}

extern "C" {

extern const uint64_t ps_emulated_bias;
const uint64_t ps_emulated_bias = emulated::kBias;

uint32_t ps_emulated_read_ptx_sreg_tid_x() {
  return running->current % running->block.x;
}
uint32_t ps_emulated_read_ptx_sreg_tid_y() {
  return running->current / running->block.x % running->block.y;
}
uint32_t ps_emulated_read_ptx_sreg_tid_z() {
  return running->current / running->block.x / running->block.y;
}
uint32_t ps_emulated_read_ptx_sreg_ctaid_x() { return running->id.x; }
uint32_t ps_emulated_read_ptx_sreg_ctaid_y() { return running->id.y; }
uint32_t ps_emulated_read_ptx_sreg_ctaid_z() { return running->id.z; }
uint32_t ps_emulated_read_ptx_sreg_ntid_x() { return running->block.x; }
uint32_t ps_emulated_read_ptx_sreg_nctaid_x() { return running->grid.x; }
uint32_t ps_emulated_read_ptx_sreg_laneid() { return getLane(); }

void *ps_emulated_shared() { return running->shared; }

/// Ends a kernel at an access that is outside of its buffer; called by its
/// code.
[[noreturn]] void ps_emulated_outside(uint32_t parameter, uint64_t offset,
                                      uint64_t bytes) {
  running->parameter = parameter;
  running->offset = offset;
  running->bytes = bytes;
#if defined(PENSTOCK_FIBERS_ASAN) || defined(PENSTOCK_FIBERS_TSAN)
  // Sanitizers do not follow a jump from one stack to another.
  std::fprintf(stderr, "error: %s\n", describeFault(*running).c_str());
  std::abort();
#else
  siglongjmp(running->landing, 1);
#endif
}

void ps_emulated_barrier_cta_sync_aligned_all(uint32_t) {
  wait(State::Barrier);
}
void ps_emulated_bar_warp_sync(uint32_t mask) {
  shuffle(Shuffle::WarpBarrier, mask, 0, getLane());
}

uint32_t ps_emulated_shfl_sync_bfly_i32(uint32_t mask, uint32_t value,
                                        uint32_t offset, uint32_t clamp) {
  return shuffle(Shuffle::Butterfly, mask, value,
                 clampLane(clamp, getLane() ^ offset, false));
}
uint32_t ps_emulated_shfl_sync_down_i32(uint32_t mask, uint32_t value,
                                        uint32_t offset, uint32_t clamp) {
  return shuffle(Shuffle::Down, mask, value,
                 clampLane(clamp, getLane() + offset, false));
}
uint32_t ps_emulated_shfl_sync_up_i32(uint32_t mask, uint32_t value,
                                      uint32_t offset, uint32_t clamp) {
  return shuffle(Shuffle::Up, mask, value,
                 clampLane(clamp, getLane() - offset, true));
}
uint32_t ps_emulated_shfl_sync_idx_i32(uint32_t mask, uint32_t value,
                                       uint32_t lane, uint32_t clamp) {
  uint32_t segment = clamp >> 8 & 31;
  lane = (getLane() & segment) | (lane & 31 & ~segment);
  return shuffle(Shuffle::Index, mask, value, clampLane(clamp, lane, false));
}

/// The predicate is the lowest bit.
uint32_t ps_emulated_vote_ballot_sync(uint32_t mask, uint32_t predicate) {
  return shuffle(Shuffle::Ballot, mask, predicate, getLane());
}

#define PENSTOCK_SHUFFLE_F32(kind)                                             \
  float ps_emulated_shfl_sync_##kind##_f32(uint32_t mask, float value,         \
                                           uint32_t lane, uint32_t clamp) {    \
    return std::bit_cast<float>(ps_emulated_shfl_sync_##kind##_i32(            \
        mask, std::bit_cast<uint32_t>(value), lane, clamp));                   \
  }
PENSTOCK_SHUFFLE_F32(bfly)
PENSTOCK_SHUFFLE_F32(down)
PENSTOCK_SHUFFLE_F32(up)
PENSTOCK_SHUFFLE_F32(idx)
#undef PENSTOCK_SHUFFLE_F32

} // extern "C"
