//===- Engine.cpp - Messages between processes by MPI ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lock that nobody waits for is around all calls of MPI: whoever does not get
// it leaves a note, and the one who has it looks again.
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/Engine.h"

#include "runtime/observe/Failure.h"
#include "runtime/support/ThreadName.h"
#include "runtime/transport/mpi/Sum.h"

#include <algorithm>
#include <sched.h>
#include <thread>

using namespace penstock::runtime;

namespace {

/// A message of MPI is no longer than this; the rest of ours follows in others.
constexpr uint64_t kMessageBytes = 1 << 30;
/// Up to here an MPI sends at once. What is longer has to be asked for, and
/// somebody has to answer.
constexpr uint64_t kEager = 4 << 10;
/// Messages that are on their way where the host cannot address the slot.
constexpr int64_t kStaged = 2;
constexpr int64_t kShortestNap = 200000, kLongestNap = 1000000;

/// Written under the lock, read by whoever watches.
struct Progress {
  std::atomic<int64_t> begun{0}, done{0};
};

/// One end of a far channel.
struct Line {
  Channel *channel;
  bool sends;
  int peer;
  DeviceMemory *memory; // of the end that is here
  int64_t started = 0, finished = 0, limit;
  /// The same two for others to read.
  std::unique_ptr<Progress> progress = std::make_unique<Progress>();
  uint64_t pieces;
  std::vector<penstock_mpi_request> requests; // by message and piece
  uint64_t tested = 0;                        // pieces of the oldest message
  std::vector<char> staging;
  Address slots[kStaged];
};

class Engine final : public Transport {
public:
  Engine(const penstock_mpi &mpi, int largestTag, const Job &job)
      : mpi(mpi), largestTag(largestTag), job(job) {}

  Error open(Endpoints &endpoints, const std::vector<AllReduce *> &sums,
             const Positions &positions, bool isOversubscribed) override;
  void begin() override;
  void posted(Channel &channel) override;
  void posted(AllReduce &sum) override;
  bool progress() override;
  Error end() override;
  void leave() noexcept override;
  std::vector<TransferCount> count() const override;
  uint64_t getBytes() const override;

private:
  class Lock;
  bool start(Line &line);
  bool finish(Line &line);
  bool sweep();
  void loop();
  void check(int code);
  void expectHelp();
  bool hasCoreForThread() const;

  const penstock_mpi &mpi;
  const int largestTag;
  const Job job;
  const Positions *positions = nullptr;
  std::vector<Line> lines;
  std::vector<char> needsHelp; // by channel
  std::vector<std::unique_ptr<MpiSum>> sums;
  std::vector<std::unique_ptr<Progress>> sumProgress; // by sum
  std::vector<uint32_t> sumIds;

  /// Held around calls of MPI.
  std::atomic<bool> isBusy{false};
  /// Rises with each post.
  std::atomic<uint32_t> posts{0};

  // The thread.
  std::atomic<int64_t> helpless{0};  // unfinished, and need help
  std::atomic<bool> isFresh{false};  // one of them is new
  std::atomic<bool> isAsleep{false}; // until somebody wakes it
  std::atomic<bool> isStopping{false};
  WaitWord wakeUp;
  std::thread thread;
};

Error Engine::open(Endpoints &endpoints,
                   const std::vector<AllReduce *> &allSums,
                   const Positions &where, bool isOversubscribed) {
  positions = &where;
  int64_t tags = int64_t(endpoints.size()) + 2 * int64_t(allSums.size());
  if (tags > largestTag)
    return userError("this program has %lld channels and sums, and this MPI "
                     "only %d tags; use fewer stages",
                     (long long)tags, largestTag);
  bool hasCore = !isOversubscribed && hasCoreForThread();
  needsHelp.resize(endpoints.size());
  for (Endpoint &endpoint : endpoints) {
    if (!endpoint.isFar)
      continue;
    Line line;
    line.channel = endpoint.channel.get();
    line.sends = line.channel->from;
    line.memory = line.sends ? line.channel->from : line.channel->to;
    const penstock_channel &description = line.channel->description;
    line.peer = job.rankOfDevice[line.sends ? description.receiver
                                            : description.sender];
    line.limit = line.channel->capacity();
    line.pieces = (description.type.bytes + kMessageBytes - 1) / kMessageBytes;
    line.requests.resize(line.limit * line.pieces);
    needsHelp[line.channel->index] = description.type.bytes > kEager &&
                                     (hasCore || !mpi.arrives_alone(line.peer));
    lines.push_back(std::move(line));
  }
  for (size_t i = 0; i < allSums.size(); ++i) {
    if (!allSums[i]->isFar())
      continue;
    sums.push_back(std::make_unique<MpiSum>(*allSums[i], mpi, job,
                                            int(endpoints.size() + 2 * i)));
    sumProgress.push_back(std::make_unique<Progress>());
    sumIds.push_back(uint32_t(endpoints.size() + i));
  }
  if (!lines.empty() || !sums.empty())
    thread = std::thread([this] { loop(); });
  return {};
}

/// Returns true if this process may use more cores than it has devices.
bool Engine::hasCoreForThread() const {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) != 0 ||
         CPU_COUNT(&cores) > std::count(job.rankOfDevice.begin(),
                                        job.rankOfDevice.end(), job.rank);
}

uint64_t Engine::getBytes() const {
  uint64_t bytes = 0;
  for (const auto &sum : sums)
    bytes += sum->getBytes();
  return bytes;
}

std::vector<TransferCount> Engine::count() const {
  std::vector<TransferCount> counts;
  auto add = [&](uint32_t id, const Progress &progress) {
    // In this order, so that nothing seems to be done before it begins.
    int64_t done = progress.done.load(std::memory_order_acquire);
    counts.push_back({id, 0, progress.begun.load(), done});
  };
  for (const Line &line : lines)
    add(line.channel->index, *line.progress);
  for (size_t i = 0; i < sums.size(); ++i)
    add(sumIds[i], *sumProgress[i]);
  return counts;
}

/// For those who need all of it to stand still.
class Engine::Lock {
public:
  explicit Lock(Engine &engine) : engine(engine) {
    while (engine.isBusy.exchange(true, std::memory_order_seq_cst))
      sched_yield();
  }
  ~Lock() { engine.isBusy.store(false, std::memory_order_seq_cst); }

private:
  Engine &engine;
};

void Engine::begin() {
  Lock lock(*this);
  // The devices are open now.
  for (Line &line : lines) {
    line.started = line.finished = 0;
    line.progress->begun = line.progress->done = 0;
    if (line.memory->isHostAddressable() || !line.staging.empty())
      continue;
    line.limit = kStaged;
    line.staging.resize(kStaged * line.channel->description.type.bytes);
  }
  for (auto &sum : sums)
    sum->reset();
  for (auto &progress : sumProgress)
    progress->begun = progress->done = 0;
}

/// Whoever finds an error of MPI ends the run; nothing can be known of what is
/// under way.
void Engine::check(int code) {
  if (code != 0)
    fail(*positions, PENSTOCK_PEER_FAILED, "%s: %s", mpi.library(),
         mpi.describe(code));
}

/// Hands to MPI what was posted.
bool Engine::start(Line &line) {
  bool isMoved = false;
  Channel &channel = *line.channel;
  uint64_t bytes = channel.description.type.bytes;
  while (line.started - line.finished < line.limit) {
    int64_t n;
    Address slot;
    if (!(line.sends ? channel.claimSend(line.started, n, slot)
                     : channel.claimReceive(line.started, n, slot)))
      break;
    char *host = static_cast<char *>(line.memory->hostAddress(slot));
    if (!host) {
      host = &line.staging[line.started % kStaged * bytes];
      line.slots[line.started % kStaged] = slot;
      if (line.sends)
        line.memory->download(host, slot, bytes);
    }
    for (uint64_t i = 0; i < line.pieces; ++i) {
      uint64_t at = i * kMessageBytes,
               size = std::min(bytes - at, kMessageBytes);
      penstock_mpi_request *request =
          &line.requests[(line.started % line.channel->capacity()) *
                             line.pieces +
                         i];
      int tag = int(channel.index);
      check(line.sends ? mpi.send(host + at, size, line.peer, tag, request)
                       : mpi.receive(host + at, size, line.peer, tag, request));
    }
    line.progress->begun.store(++line.started, std::memory_order_relaxed);
    isMoved = true;
  }
  return isMoved;
}

/// Takes back what MPI is done with.
bool Engine::finish(Line &line) {
  bool isMoved = false;
  Channel &channel = *line.channel;
  uint64_t bytes = channel.description.type.bytes;
  while (line.finished < line.started) {
    int isDone = 1;
    for (; line.tested < line.pieces && isDone; line.tested += isDone)
      check(mpi.test(
          &line.requests[(line.finished % channel.capacity()) * line.pieces +
                         line.tested],
          &isDone));
    if (!isDone)
      break;
    line.tested = 0;
    if (!line.sends && !line.staging.empty()) {
      uint64_t slot = line.finished % kStaged;
      line.memory->receive(line.slots[slot], &line.staging[slot * bytes], bytes,
                           channel.order(line.finished));
    }
    channel.finish(line.finished++);
    line.progress->done.store(line.finished, std::memory_order_release);
    if (needsHelp[channel.index])
      helpless.fetch_sub(1, std::memory_order_relaxed);
    isMoved = true;
  }
  return isMoved;
}

bool Engine::sweep() {
  bool isMoved = false;
  for (Line &line : lines) {
    isMoved |= start(line);
    isMoved |= finish(line);
  }
  int code = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    bool wasActive = sums[i]->isActive();
    isMoved |= sums[i]->advance(code);
    if (wasActive != sums[i]->isActive())
      helpless.fetch_add(wasActive ? -1 : 1, std::memory_order_seq_cst);
    sumProgress[i]->begun.store(sums[i]->countDone() + sums[i]->isActive(),
                                std::memory_order_relaxed);
    sumProgress[i]->done.store(sums[i]->countDone(), std::memory_order_release);
  }
  check(code);
  return isMoved;
}

bool Engine::progress() {
  bool isMoved = false;
  while (true) {
    if (isBusy.exchange(true, std::memory_order_seq_cst))
      return isMoved;
    uint32_t seen = posts.load(std::memory_order_seq_cst);
    isMoved |= sweep();
    isBusy.store(false, std::memory_order_seq_cst);
    // Whoever posted meanwhile may have found the lock taken.
    if (posts.load(std::memory_order_seq_cst) == seen)
      return isMoved;
  }
}

/// Something is under way that may need somebody to answer for it.
void Engine::expectHelp() {
  isFresh.store(true, std::memory_order_relaxed);
  if (isAsleep.load(std::memory_order_seq_cst))
    wakeUp.bump(/*wake=*/true);
}

void Engine::posted(Channel &channel) {
  bool isHelpless = needsHelp[channel.index];
  bool isFirst =
      isHelpless && helpless.fetch_add(1, std::memory_order_seq_cst) == 0;
  posts.fetch_add(1, std::memory_order_seq_cst);
  progress();
  if (isFirst)
    expectHelp();
  else if (isHelpless)
    isFresh.store(true, std::memory_order_relaxed);
}

void Engine::posted(AllReduce &) {
  posts.fetch_add(1, std::memory_order_seq_cst);
  progress();
  if (helpless.load(std::memory_order_relaxed) > 0)
    expectHelp();
}

void Engine::loop() {
  nameThread("messages");
  // Large messages often follow each other: waking this thread for each of them
  // would take longer than a short nap now and then.
  constexpr int kIdleNaps = 10;
  int64_t nap = kShortestNap;
  int idle = 0;
  while (!isStopping.load()) {
    uint32_t seen = wakeUp.load();
    if (helpless.load(std::memory_order_relaxed) > 0) {
      idle = 0;
    } else if (++idle <= kIdleNaps) {
      wakeUp.park(seen, kLongestNap);
      continue;
    } else {
      isAsleep.store(true, std::memory_order_seq_cst);
      if (helpless.load(std::memory_order_seq_cst) <= 0 && !isStopping.load())
        wakeUp.park(seen);
      isAsleep.store(false, std::memory_order_seq_cst);
      idle = 0;
      continue;
    }
    // Whoever posted has just done what there was to do.
    if (isFresh.exchange(false, std::memory_order_relaxed)) {
      nap = kShortestNap;
    } else if (progress()) {
      // A sum goes on piece by piece.
      nap = kShortestNap;
      sched_yield();
      continue;
    }
    wakeUp.park(wakeUp.load(), nap);
    nap = std::min(2 * nap, kLongestNap);
  }
}

Error Engine::end() {
  Lock lock(*this);
  for (const Line &line : lines)
    if (line.started != line.finished)
      return defect("channel '%s' has a message under way at the end of a "
                    "segment",
                    line.channel->description.name);
  for (const auto &sum : sums)
    if (sum->isActive())
      return defect("a sum is under way at the end of a segment");
  return {};
}

void Engine::leave() noexcept {
  isStopping.store(true);
  wakeUp.bump(/*wake=*/true);
  if (thread.joinable())
    thread.join();
}

} // namespace

std::unique_ptr<Transport>
penstock::runtime::createMpi(const penstock_mpi &functions, int largestTag,
                             const Job &job) {
  return std::make_unique<Engine>(functions, largestTag, job);
}
