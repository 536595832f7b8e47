//===- Transfers.cpp - Messages between GPUs by NCCL ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host only enqueues: a transfer waits on its stream for the event of the
// run that it sends from, or of the slot that it fills, and whoever awaits it
// waits for the event behind it. So a message is done, for the host, when it is
// posted.
//===----------------------------------------------------------------------===//

#include "runtime/transport/nccl/Transfers.h"

#include "runtime/device/cuda/Device.h"
#include "runtime/observe/Failure.h"
#include "runtime/transport/nccl/Communicator.h"
#include "runtime/transport/nccl/Sum.h"

#include <cstring>
#include <deque>
#include <map>
#include <mutex>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

/// One end of a far channel.
struct Line {
  Channel *channel;
  bool sends;
  int peer;
  int64_t issued = 0;
};

/// Progress of a channel or a group, for observers: the work that was put on
/// the stream, and how much of it was seen to be done.
struct Progress {
  std::atomic<int64_t> begun{0}, done{0};
};

class Transfers final : public Transport {
public:
  Transfers(const Nccl &nccl, const Job &job, double seconds)
      : job(job), seconds(seconds), nccl(nccl), communicator(nccl) {}

  Error open(Endpoints &endpoints, const std::vector<AllReduce *> &sums,
             const Positions &positions, bool isOversubscribed) override;
  Address allocate(uint64_t bytes) override;
  bool release(Address memory) override;
  bool connects() const override { return true; }
  Error invite(std::string &invitation) override;
  Error connect(DeviceMemory &memory, std::string_view invitation,
                const std::function<bool(bool)> &haveAll) override;
  void begin() override;
  void posted(Channel &channel) override;
  void posted(AllReduce &sum) override;
  bool progress() override { return false; }
  void poll() override;
  Error end() override;
  void leave() noexcept override;
  void abort() noexcept override { communicator.abort(); }
  std::vector<TransferCount> count() const override;
  uint64_t getBytes() const override;

private:
  void check(const Error &error) const;
  void check(int status, const char *call) const;
  void follow(const std::unique_ptr<Marker> &marker);
  Event takeEvent();
  void beginTransfer(uint32_t index, int64_t n);
  void endTransfer();
  std::vector<int> listPeers() const;
  Error openRoom(size_t peers);
  bool registerMemory();

  const Job job;
  const double seconds; // that connecting may take
  const Nccl &nccl;
  Communicator communicator;
  /// Memory that NCCL has allocated, with its bytes; complete if that is all
  /// that messages use.
  std::map<Address, uint64_t> blocks;
  bool isComplete = true;
  CudaDevice *device = nullptr; // of this process, once all are open
  const Driver *driver = nullptr;
  Stream stream = nullptr;
  const Positions *positions = nullptr;

  std::vector<Line> lines;
  std::vector<uint32_t> lineOf; // by channel
  std::vector<std::pair<AllReduce *, std::unique_ptr<NcclSum>>> sums;
  std::vector<int64_t> sumsIssued;
  SumKernels kernels;
  /// Rows of sums, and behind them words for the first transfers.
  uint64_t room = 0;
  std::vector<uint32_t> ids; // of lines, then of sums
  std::unique_ptr<Progress[]> counts;
  /// Transfers on the stream, in order, between two events each. The host may
  /// be many messages ahead, so that those of a channel are of later ones.
  struct Transfer {
    uint32_t index; // of its counts
    int64_t number;
    Event began, ended;
  };
  std::mutex queueLock;
  std::deque<Transfer> queue;
  std::vector<Event> idleEvents;
  /// The one that the thread of the device is putting on the stream.
  Transfer issued = {};
  /// The first of the queue, if it has begun here; or kNone.
  static constexpr uint32_t kNone = UINT32_MAX;
  std::atomic<uint32_t> next{kNone};
};

Event getEvent(Marker &marker) {
  return static_cast<Event>(marker.getNative(&penstock_cuda));
}

void Transfers::check(const Error &error) const {
  if (error)
    fail(*positions, error.code, "device %u: %s", device->index,
         error.text.c_str());
}

void Transfers::check(int status, const char *call) const {
  if (status)
    check(describeFailure(*driver, status, call));
}

Error Transfers::open(Endpoints &endpoints, const std::vector<AllReduce *> &all,
                      const Positions &where, bool) {
  positions = &where;
  lineOf.resize(endpoints.size());
  for (Endpoint &endpoint : endpoints) {
    if (!endpoint.isFar)
      continue;
    Channel &channel = *endpoint.channel;
    bool sends = channel.from;
    const penstock_channel &description = channel.description;
    lineOf[channel.index] = uint32_t(lines.size());
    ids.push_back(channel.index);
    lines.push_back(
        {&channel, sends,
         job.rankOfDevice[sends ? description.receiver : description.sender]});
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i]->isFar()) {
      ids.push_back(uint32_t(endpoints.size() + i));
      sums.emplace_back(all[i], std::make_unique<NcclSum>(*all[i], job));
    }
  sumsIssued.resize(sums.size());
  counts = std::make_unique<Progress[]>(ids.size());
  return {};
}

Address Transfers::allocate(uint64_t bytes) {
  void *memory = nullptr;
  if (nccl.ncclMemAlloc(&memory, bytes)) {
    isComplete = false;
    return 0;
  }
  auto address = reinterpret_cast<Address>(memory);
  blocks[address] = bytes;
  return address;
}

bool Transfers::release(Address memory) {
  if (!blocks.erase(memory))
    return false;
  (void)nccl.ncclMemFree(reinterpret_cast<void *>(memory));
  return true;
}

Error Transfers::invite(std::string &invitation) {
  UniqueId id = {};
  Error error = communicator.invite(id);
  invitation.assign(id.bytes, sizeof(id.bytes));
  return error;
}

/// All that this process ever exchanges something with.
std::vector<int> Transfers::listPeers() const {
  std::set<int> peers;
  for (const Line &line : lines)
    peers.insert(line.peer);
  for (const auto &[sum, part] : sums)
    peers.insert(part->getPeers().begin(), part->getPeers().end());
  return {peers.begin(), peers.end()};
}

/// Allocates what messages use besides the arena.
Error Transfers::openRoom(size_t peers) {
  uint64_t words = 8 * std::max<uint64_t>(peers, 1);
  uint64_t bytes = getBytes() + words;
  room = allocate(bytes);
  int status = room ? CUDA_SUCCESS : driver->cuMemAlloc(&room, bytes);
  if (status == CUDA_ERROR_OUT_OF_MEMORY)
    return doesNotFit("messages and sums over processes need %llu bytes "
                      "besides the arena",
                      (unsigned long long)bytes);
  if (!status)
    status = driver->cuMemsetD8Async(room + getBytes(), 0, words, stream);
  if (status)
    return describeFailure(*driver, status, "cuMemAlloc");
  uint64_t rows = room;
  for (auto &[sum, part] : sums) {
    part->open(rows);
    rows += part->getBytes();
  }
  return {};
}

/// Registers all memory that messages use; false where NCCL cannot.
bool Transfers::registerMemory() {
  return isComplete && std::ranges::all_of(blocks, [&](const auto &block) {
           return communicator.registerMemory(block.first, block.second);
         });
}

Error Transfers::connect(DeviceMemory &memory, std::string_view invitation,
                         const std::function<bool(bool)> &haveAll) {
  device = static_cast<CudaDevice *>(&memory);
  const Gpu &gpu = device->getGpu();
  driver = &gpu.driver;
  stream = device->getTransferStream();
  Gpu::Visit visit(gpu);

  // 1. All of this process.
  UniqueId id;
  if (invitation.size() != sizeof(id.bytes))
    return {PENSTOCK_PEER_FAILED, "rank 0 could not start NCCL"};
  std::memcpy(id.bytes, invitation.data(), sizeof(id.bytes));
  std::vector<int> peers = listPeers();
  if (Error error = openRoom(peers.size()))
    return error;
  if (!sums.empty())
    if (Error error = kernels.open(*driver))
      return error;

  // 2. All processes.
  if (Error error = communicator.open(id, job.rank, job.size, seconds))
    return error;
  // No transfer may have memory that is registered on one side only.
  if (!haveAll(registerMemory()))
    communicator.deregisterMemory();
  return communicator.warmUp(*driver, peers, room + getBytes(), stream,
                             seconds);
}

void Transfers::begin() {
  for (Line &line : lines)
    line.issued = 0;
  std::fill(sumsIssued.begin(), sumsIssued.end(), 0);
  for (size_t i = 0; i < ids.size(); ++i)
    counts[i].begun = counts[i].done = 0;
  std::lock_guard<std::mutex> lock(queueLock);
  for (const Transfer &one : queue)
    idleEvents.insert(idleEvents.end(), {one.began, one.ended});
  queue.clear();
  next = kNone;
}

Event Transfers::takeEvent() {
  Event event = nullptr;
  std::lock_guard<std::mutex> lock(queueLock);
  if (idleEvents.empty()) {
    check(driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING),
          "cuEventCreate");
    return event;
  }
  event = idleEvents.back();
  idleEvents.pop_back();
  return event;
}

/// Message or sum n comes next on the stream, all that it waits for before it.
void Transfers::beginTransfer(uint32_t index, int64_t n) {
  Transfer transfer = {index, n, takeEvent(), takeEvent()};
  check(driver->cuEventRecord(transfer.began, stream), "cuEventRecord");
  issued = transfer;
}

void Transfers::endTransfer() {
  check(driver->cuEventRecord(issued.ended, stream), "cuEventRecord");
  std::lock_guard<std::mutex> lock(queueLock);
  queue.push_back(issued);
  counts[issued.index].begun.store(issued.number + 1,
                                   std::memory_order_release);
}

/// Makes the stream's work from now on wait for a point in the work of the
/// device.
void Transfers::follow(const std::unique_ptr<Marker> &marker) {
  check(driver->cuStreamWaitEvent(stream, getEvent(*marker), 0),
        "cuStreamWaitEvent");
}

void Transfers::posted(Channel &channel) {
  uint32_t index = lineOf[channel.index];
  Line &line = lines[index];
  int64_t n;
  Address at;
  // Nobody else takes what this device has just posted.
  bool isTaken = line.sends ? channel.takeSend(line.issued, n, at)
                            : channel.claim(line.issued, n, at);
  if (!isTaken)
    check(defect("message %lld of channel '%s' was not posted",
                 (long long)line.issued, channel.description.name));
  const Handover &order = channel.order(line.issued);
  uint64_t bytes = channel.description.type.bytes;
  follow(line.sends ? order.ready : order.free);
  beginTransfer(index, line.issued);
  check(line.sends ? communicator.send(at, bytes, line.peer, stream)
                   : communicator.receive(at, bytes, line.peer, stream));
  check(driver->cuEventRecord(getEvent(*order.done), stream), "cuEventRecord");
  endTransfer();
  channel.finish(line.issued++);
}

void Transfers::posted(AllReduce &sum) {
  size_t i = 0;
  while (sums[i].first != &sum)
    ++i;
  AllReduce::Side &side = *sum.find(device->index);
  check(driver->cuStreamWaitEvent(stream, getEvent(*side.ready), 0),
        "cuStreamWaitEvent");
  beginTransfer(uint32_t(lines.size() + i), sumsIssued[i]++);
  check(sums[i].second->issue(*driver, communicator, kernels, stream));
  check(driver->cuEventRecord(getEvent(*side.done), stream), "cuEventRecord");
  endTransfer();
  sum.finish();
}

/// Learns of errors of NCCL, and of what has begun and ended on the stream.
void Transfers::poll() {
  check(communicator.check());
  Gpu::Visit visit(device->getGpu());
  auto isReached = [&](Event event) {
    int status = driver->cuEventQuery(event);
    if (status != CUDA_ERROR_NOT_READY)
      check(status, "cuEventQuery");
    return status == CUDA_SUCCESS;
  };
  std::lock_guard<std::mutex> lock(queueLock);
  while (!queue.empty() && isReached(queue.front().ended)) {
    const Transfer &first = queue.front();
    counts[first.index].done.store(first.number + 1, std::memory_order_release);
    idleEvents.insert(idleEvents.end(), {first.began, first.ended});
    queue.pop_front();
  }
  bool hasBegun = !queue.empty() && isReached(queue.front().began);
  next = hasBegun ? queue.front().index : kNone;
}

Error Transfers::end() {
  // The device is done with all that was on its streams.
  for (size_t i = 0; i < ids.size(); ++i)
    counts[i].done.store(counts[i].begun.load());
  return communicator.check();
}

void Transfers::leave() noexcept {
  if (!driver)
    return;
  Gpu::Visit visit(device->getGpu());
  communicator.close();
  begin();
  for (Event event : idleEvents)
    (void)driver->cuEventDestroy(event);
  idleEvents.clear();
  kernels.close(*driver);
  if (room && !release(room))
    (void)driver->cuMemFree(room);
  room = 0;
}

std::vector<TransferCount> Transfers::count() const {
  std::vector<TransferCount> result;
  for (size_t i = 0; i < ids.size(); ++i) {
    // In this order, so that nothing seems to be done before it begins.
    int64_t done = counts[i].done.load(std::memory_order_acquire);
    result.push_back({ids[i], i == next, counts[i].begun.load(), done});
  }
  return result;
}

uint64_t Transfers::getBytes() const {
  uint64_t bytes = 0;
  for (const auto &[sum, part] : sums)
    bytes += part->getBytes();
  return bytes;
}

//===----------------------------------------------------------------------===//
// What the kind has
//===----------------------------------------------------------------------===//

/// "GPU-0e4f..": what tells this GPU from all others.
Error listGpus(std::span<const int> chosen, std::vector<std::string> &names) {
  const Driver *driver = nullptr;
  if (Error error = loadDriver(driver))
    return error;
  int count = 0;
  if (int status = driver->cuDeviceGetCount(&count))
    return describeFailure(*driver, status, "cuDeviceGetCount");
  if (count < 1)
    return userError("this program needs an NVIDIA GPU: the driver finds none");
  size_t turns = chosen.empty() ? size_t(count) : chosen.size();
  for (size_t turn = 0; turn < turns; ++turn) {
    int ordinal = placeDevice(uint32_t(turn), count, chosen), gpu = 0;
    if (ordinal >= count)
      return userError("--gpus: there is no GPU %d; the driver finds %d",
                       ordinal, count);
    unsigned char uuid[16];
    int status = driver->cuDeviceGet(&gpu, ordinal);
    if (!status)
      status = driver->cuDeviceGetUuid(uuid, gpu);
    if (status)
      return describeFailure(*driver, status, "cuDeviceGetUuid");
    std::string name = "GPU-";
    for (unsigned char byte : uuid)
      name += format("%02x", byte);
    names.push_back(std::move(name));
  }
  return {};
}

Error describeLibrary(std::string &name) {
  const Nccl *nccl = nullptr;
  return loadNccl(nccl, name);
}

std::unique_ptr<Transport> createTransfers(const Job &job, double seconds) {
  const Nccl *nccl = nullptr;
  std::string name;
  if (loadNccl(nccl, name))
    return createThreads(); // nobody gets so far
  return std::make_unique<Transfers>(*nccl, job, seconds);
}

} // namespace

const PeerTransport cuda::peerTransport = {"nccl", listGpus, describeLibrary,
                                           createTransfers};
