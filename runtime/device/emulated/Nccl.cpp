//===- Nccl.cpp - The NCCL of the emulated GPU ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A socket for every two processes, and a thread per communicator that serves
// them. The lock of the emulated driver guards all else. Where another process
// waits and nobody here does, the thread lets the streams go on, as a GPU
// would.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Nccl.h"

#include "runtime/device/emulated/Enqueue.h"
#include "runtime/support/Wait.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;
using namespace penstock::runtime::emulated;

namespace {

/// The kinds of messages between processes.
enum class Kind : uint64_t {
  Hello,        // bytes: its GPU
  Connect,      // sequence: 1 to send, 0 to receive
  SendReady,    // a send heads its stream
  ReceiveReady, // a receive does
  Data,         // and its bytes
  Received,
  Bye,
};

struct Header {
  Kind kind;
  uint64_t sequence, bytes;
  uint64_t isRegistered = 0;
};

/// A send or a receive, as the `sequence`th of its direction between the two.
struct Operation {
  bool sends;
  int peer;
  uint64_t sequence, bytes;
  char *memory;
  bool isRegistered;
  bool isDone = false;
};

/// Operations of one call or group.
struct Transfer {
  Stream stream;
  std::vector<Operation> operations;
  bool hasStarted = false, isDone = false;
};

struct Peer {
  int socket = -1;
  std::string input, output;
  /// States by direction, from here: 1 to send, 0 to receive.
  bool isConnecting[2] = {}, isConnected[2] = {};
  uint64_t issued[2] = {};
  /// Which of its sends (1) and receives (0) head its streams, and what it says
  /// of them.
  std::map<uint64_t, Header> ready[2];
  bool hasLeft = false;
};

/// An operation of a group that has not ended.
struct Pending {
  NcclComm communicator;
  Stream stream;
  Operation operation;
};
thread_local int groupDepth = 0;
thread_local std::vector<Pending> group;

} // namespace

struct cuda::NcclCommState : std::enable_shared_from_this<cuda::NcclCommState> {
  int rank = 0, size = 1, gpu = 0;
  std::string name; // of the run
  int status = ncclInProgress;
  std::string lastError;
  std::vector<Peer> peers;                         // by rank
  std::deque<std::shared_ptr<Transfer>> transfers; // in the order of calls
  /// Transfers that wait for processes that are not connected.
  std::vector<std::shared_ptr<Transfer>> launching;
  /// The number of transfers so far, and one that comes after the next.
  uint64_t submitted = 0;
  std::shared_ptr<Transfer> heldBack;
  /// Memory that is registered, by handle.
  struct Registration {
    uint64_t allocation, begin, bytes;
  };
  std::map<uint64_t, Registration> registered;
  uint64_t registrations = 0;
  bool isFinal = false, isAborted = false;
  std::atomic<bool> isStopping{false};
  int wakeUp = -1;
  std::thread thread;

  void wake() const {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t done = ::write(wakeUp, &one, sizeof(one));
  }
  void fail(int with, std::string text) {
    if (status == ncclSuccess || status == ncclInProgress) {
      status = with;
      lastError = std::move(text);
    }
  }
  void say(int peer, Header header, const char *bytes = nullptr) {
    std::string &output = peers[peer].output;
    output.append(reinterpret_cast<const char *>(&header), sizeof(header));
    if (bytes)
      output.append(bytes, header.bytes);
    wake();
  }

  void run();
  bool meet();
  bool introduce(int socket, int expected);
  void serve();
  void handle(int from, const Header &header, const char *bytes);
  void launchConnected();
  bool advance(Transfer &transfer);
  void sendIfReady(Operation &operation);
  void checkMatch(const Operation &operation, const Header &theirs);
  bool isRegistered(uint64_t memory, uint64_t bytes) const;
  Operation *find(bool sends, int peer, uint64_t sequence);
  void endOperation(Operation &operation);
  void finalizeIfQuiet();
};

using Communicator = cuda::NcclCommState;

namespace {

/// All that are open. Guarded by the lock.
std::map<NcclComm, std::shared_ptr<Communicator>> &getOpen() {
  static auto *const open =
      new std::map<NcclComm, std::shared_ptr<Communicator>>;
  return *open;
}

sockaddr_un addressOf(const std::string &name, int rank, socklen_t &length) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Abstract: nothing is left of it.
  std::string text = format("%s-%d", name.c_str(), rank);
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

} // namespace

//===----------------------------------------------------------------------===//
// Processes meet
//===----------------------------------------------------------------------===//

/// Both say who they are. Returns false if they may not go on.
bool Communicator::introduce(int socket, int expected) {
  int64_t words[3] = {rank, size, gpu}, theirs[3] = {-1, 0, 0};
  size_t sent = 0, received = 0;
  while (sent < sizeof(words) || received < sizeof(theirs)) {
    pollfd poll = {socket, short(POLLIN | (sent < sizeof(words) ? POLLOUT : 0)),
                   0};
    ::poll(&poll, 1, 10);
    if (isStopping)
      return false;
    if (poll.revents & POLLOUT) {
      ssize_t done = ::send(socket, reinterpret_cast<char *>(words) + sent,
                            sizeof(words) - sent, MSG_NOSIGNAL);
      sent += done > 0 ? size_t(done) : 0;
    }
    if (poll.revents & POLLIN) {
      ssize_t done = ::recv(socket, reinterpret_cast<char *>(theirs) + received,
                            sizeof(theirs) - received, 0);
      if (done <= 0 && errno != EAGAIN)
        return false;
      received += done > 0 ? size_t(done) : 0;
    }
  }
  int other = int(theirs[0]);
  std::lock_guard<std::mutex> lock(getLock());
  if (other < 0 || other >= size || (expected >= 0 && other != expected) ||
      theirs[1] != size) {
    fail(ncclInvalidUsage, "processes of other communicators have come");
    return false;
  }
  peers[other].socket = socket;
  if (theirs[2] == gpu)
    fail(ncclInvalidUsage,
         format("Duplicate GPU detected : rank %d and rank %d both on CUDA "
                "device %d",
                std::min(rank, other), std::max(rank, other), gpu));
  return true;
}

/// Connects to those before this one and waits for those behind it.
bool Communicator::meet() {
  constexpr int kType = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  socklen_t length;
  int entrance = ::socket(AF_UNIX, kType, 0);
  sockaddr_un own = addressOf(name, rank, length);
  bool isGood = !::bind(entrance, reinterpret_cast<sockaddr *>(&own), length) &&
                !::listen(entrance, 64);
  for (int other = 0; other < rank && isGood; ++other) {
    sockaddr_un address = addressOf(name, other, length);
    int socket = ::socket(AF_UNIX, kType, 0);
    while (!isStopping &&
           ::connect(socket, reinterpret_cast<sockaddr *>(&address), length))
      usleep(2000);
    isGood = !isStopping && introduce(socket, other);
  }
  for (int left = size - 1 - rank; left > 0 && isGood; --left) {
    int socket = -1;
    while (!isStopping &&
           (socket = ::accept4(entrance, nullptr, nullptr,
                               SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0) {
      pollfd poll = {entrance, POLLIN, 0};
      ::poll(&poll, 1, 10);
    }
    isGood = !isStopping && introduce(socket, -1);
  }
  ::close(entrance);
  return isGood;
}

//===----------------------------------------------------------------------===//
// Transfers. With the lock.
//===----------------------------------------------------------------------===//

/// A transfer that heads its stream; called again until it returns true.
bool Communicator::advance(Transfer &transfer) {
  if (transfer.isDone || isAborted)
    return true;
  if (transfers.empty() || transfers.front().get() != &transfer)
    return false;
  if (transfer.hasStarted)
    return false;
  transfer.hasStarted = true;
  for (Operation &operation : transfer.operations) {
    say(operation.peer,
        {operation.sends ? Kind::SendReady : Kind::ReceiveReady,
         operation.sequence, operation.bytes, operation.isRegistered});
    Peer &peer = peers[operation.peer];
    auto found = peer.ready[!operation.sends].find(operation.sequence);
    if (found != peer.ready[!operation.sends].end())
      checkMatch(operation, found->second);
    sendIfReady(operation);
  }
  return false;
}

void Communicator::checkMatch(const Operation &operation,
                              const Header &theirs) {
  std::string message =
      format("message %llu between rank %d and rank %d: ",
             (unsigned long long)operation.sequence, rank, operation.peer);
  if (operation.bytes != theirs.bytes)
    fail(ncclInvalidUsage,
         message +
             format("%s %llu bytes, and the other one %s %llu",
                    operation.sends ? "this one sends" : "this one receives",
                    (unsigned long long)operation.bytes,
                    operation.sends ? "receives" : "sends",
                    (unsigned long long)theirs.bytes));
  if (operation.isRegistered != bool(theirs.isRegistered))
    fail(ncclInvalidUsage,
         message +
             format("only %s has registered its memory",
                    operation.isRegistered ? "this one" : "the other one"));
}

bool Communicator::isRegistered(uint64_t memory, uint64_t bytes) const {
  return std::any_of(registered.begin(), registered.end(), [&](auto &entry) {
    const auto &[allocation, begin, size] = entry.second;
    return memory >= begin && memory + bytes <= begin + size;
  });
}

/// Sends what the other one has room for.
void Communicator::sendIfReady(Operation &operation) {
  Peer &peer = peers[operation.peer];
  auto found = peer.ready[0].find(operation.sequence);
  if (!operation.sends || found == peer.ready[0].end() ||
      found->second.bytes != operation.bytes)
    return;
  peer.ready[0].erase(found);
  say(operation.peer, {Kind::Data, operation.sequence, operation.bytes},
      operation.memory);
}

/// Returns an operation that has started, or null.
Operation *Communicator::find(bool sends, int peer, uint64_t sequence) {
  if (transfers.empty() || !transfers.front()->hasStarted)
    return nullptr;
  for (Operation &operation : transfers.front()->operations)
    if (operation.sends == sends && operation.peer == peer &&
        operation.sequence == sequence)
      return &operation;
  return nullptr;
}

void Communicator::endOperation(Operation &operation) {
  operation.isDone = true;
  auto &operations = transfers.front()->operations;
  if (!std::all_of(operations.begin(), operations.end(),
                   [](auto &one) { return one.isDone; }))
    return;
  transfers.front()->isDone = true;
  transfers.pop_front();
  notifyWaiting();
  finalizeIfQuiet();
}

/// Puts on their streams those transfers all of whose processes have come.
void Communicator::launchConnected() {
  auto isConnected = [&](const Operation &operation) {
    const Peer &peer = peers[operation.peer];
    return peer.isConnecting[operation.sends] &&
           peer.isConnected[operation.sends];
  };
  for (auto &transfer : launching)
    if (!std::all_of(transfer->operations.begin(), transfer->operations.end(),
                     isConnected))
      return;
  for (auto &transfer : launching) {
    transfers.push_back(transfer);
    enqueueRemote(transfer->stream, [self = shared_from_this(), transfer] {
      return self->advance(*transfer);
    });
  }
  launching.clear();
  if (status == ncclInProgress && !isFinal)
    status = ncclSuccess;
}

/// All have been heard, and nothing is left.
void Communicator::finalizeIfQuiet() {
  if (!isFinal || !transfers.empty())
    return;
  Peer &self = peers[rank];
  if (!self.hasLeft)
    for (int other = 0; other < size; ++other)
      if (other != rank)
        say(other, {Kind::Bye, 0, 0});
  self.hasLeft = true;
  if (status == ncclInProgress &&
      std::all_of(peers.begin(), peers.end(),
                  [](const Peer &peer) { return peer.hasLeft; }))
    status = ncclSuccess;
}

void Communicator::handle(int from, const Header &header, const char *bytes) {
  Peer &peer = peers[from];
  switch (header.kind) {
  case Kind::Hello:
    break;
  case Kind::Connect:
    peer.isConnected[!header.sequence] = true;
    launchConnected();
    break;
  case Kind::SendReady:
    peer.ready[1][header.sequence] = header;
    if (Operation *operation = find(/*sends=*/false, from, header.sequence))
      checkMatch(*operation, header);
    break;
  case Kind::ReceiveReady:
    peer.ready[0][header.sequence] = header;
    if (Operation *operation = find(/*sends=*/true, from, header.sequence)) {
      checkMatch(*operation, header);
      sendIfReady(*operation);
    }
    break;
  case Kind::Data:
    peer.ready[1].erase(header.sequence);
    if (Operation *operation = find(/*sends=*/false, from, header.sequence)) {
      std::memcpy(operation->memory, bytes, header.bytes);
      say(from, {Kind::Received, header.sequence, 0});
      endOperation(*operation);
    }
    break;
  case Kind::Received:
    if (Operation *operation = find(/*sends=*/true, from, header.sequence))
      endOperation(*operation);
    break;
  case Kind::Bye:
    peer.hasLeft = true;
    finalizeIfQuiet();
    break;
  }
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void Communicator::serve() {
  // How long other processes may wait for what nobody here waits for.
  constexpr int kPatience = 10;
  while (!isStopping) {
    std::vector<pollfd> polls = {{wakeUp, POLLIN, 0}};
    {
      std::lock_guard<std::mutex> lock(getLock());
      for (const Peer &peer : peers)
        polls.push_back({peer.socket,
                         short(POLLIN | (peer.output.empty() ? 0 : POLLOUT)),
                         0});
    }
    int events = ::poll(polls.data(), polls.size(), kPatience);
    if (polls[0].revents) {
      uint64_t count;
      [[maybe_unused]] ssize_t done = ::read(wakeUp, &count, sizeof(count));
    }
    std::lock_guard<std::mutex> lock(getLock());
    for (int other = 0; other < size; ++other) {
      Peer &peer = peers[other];
      if (peer.socket < 0)
        continue;
      while (!peer.output.empty()) {
        ssize_t done = ::send(peer.socket, peer.output.data(),
                              peer.output.size(), MSG_NOSIGNAL);
        if (done <= 0)
          break;
        peer.output.erase(0, size_t(done));
      }
      char bytes[1 << 16];
      ssize_t done;
      while ((done = ::recv(peer.socket, bytes, sizeof(bytes), 0)) > 0)
        peer.input.append(bytes, size_t(done));
      if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR)) {
        // Nobody is told that a process of this host has gone.
        ::close(peer.socket);
        peer.socket = -1;
      }
      size_t at = 0;
      while (peer.input.size() - at >= sizeof(Header)) {
        Header header;
        std::memcpy(&header, peer.input.data() + at, sizeof(header));
        size_t payload = header.kind == Kind::Data ? header.bytes : 0;
        if (peer.input.size() - at - sizeof(header) < payload)
          break;
        handle(other, header, peer.input.data() + at + sizeof(header));
        at += sizeof(header) + payload;
      }
      peer.input.erase(0, at);
    }
    bool isAwaited = std::any_of(peers.begin(), peers.end(), [](Peer &peer) {
      return !peer.ready[0].empty() || !peer.ready[1].empty();
    });
    if (isAwaited || (events == 0 && !transfers.empty()))
      for (int i = 0; i < 4 && stepStreams(); ++i)
        ;
  }
}

void Communicator::run() {
  bool isGood = meet();
  {
    std::lock_guard<std::mutex> lock(getLock());
    if (!isGood)
      fail(ncclSystemError, "the processes could not connect");
    else if (status == ncclInProgress)
      status = ncclSuccess;
  }
  if (isGood)
    serve();
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

namespace {

int ncclGetVersion(int *version) {
  const char *text = std::getenv("PENSTOCK_EMULATED_NCCL_VERSION");
  *version = text ? std::atoi(text) : 22809;
  return ncclSuccess;
}

const char *ncclGetErrorString(int status) {
  static const char *const kTexts[] = {
      "no error",
      "unhandled cuda error",
      "unhandled system error",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "NCCL operation in progress"};
  return status >= 0 && status <= ncclInProgress ? kTexts[status]
                                                 : "unknown result code";
}

/// The text lives until this thread asks again.
const char *ncclGetLastError(NcclComm communicator) {
  thread_local std::string text;
  std::lock_guard<std::mutex> lock(getLock());
  auto found = getOpen().find(communicator);
  text = found == getOpen().end() ? "" : found->second->lastError;
  return text.c_str();
}

int ncclGetUniqueId(UniqueId *id) {
  uint64_t chance = 0;
  if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
    return ncclSystemError;
  *id = {};
  std::snprintf(id->bytes, sizeof(id->bytes), "penstock-nccl-%d-%016llx",
                getpid(), (unsigned long long)chance);
  return ncclSuccess;
}

int ncclCommInitRankConfig(NcclComm *result, int size, UniqueId id, int rank,
                           NcclConfig *config) {
  *result = nullptr;
  // Only what is asked for here: calls that do not block.
  if (size < 1 || rank < 0 || rank >= size || !config ||
      config->magic != NcclConfig().magic || config->blocking != 0 ||
      config->size < sizeof(NcclConfig) ||
      !std::memchr(id.bytes, 0, sizeof(id.bytes)))
    return ncclInvalidArgument;
  int gpu = getCurrentGpu();
  if (gpu < 0)
    return ncclUnhandledCudaError;
  auto state = std::make_shared<Communicator>();
  state->rank = rank;
  state->size = size;
  state->gpu = gpu;
  state->name = id.bytes;
  state->peers.resize(size);
  state->wakeUp = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::lock_guard<std::mutex> lock(getLock());
  getOpen()[state.get()] = state;
  *result = state.get();
  state->thread = std::thread([raw = state.get()] { raw->run(); });
  return ncclInProgress;
}

int ncclCommGetAsyncError(NcclComm communicator, int *status) {
  std::lock_guard<std::mutex> lock(getLock());
  if (!getOpen().contains(communicator))
    return ncclInvalidArgument;
  *status = communicator->status;
  return ncclSuccess;
}

int ncclCommFinalize(NcclComm communicator) {
  std::lock_guard<std::mutex> lock(getLock());
  if (!getOpen().contains(communicator))
    return ncclInvalidArgument;
  if (communicator->status != ncclSuccess || communicator->isFinal)
    return ncclInvalidUsage;
  communicator->isFinal = true;
  communicator->status = ncclInProgress;
  communicator->finalizeIfQuiet();
  return communicator->status;
}

/// Returns true if the environment says so of the memory of this process.
bool isMemory(const char *what) {
  const char *setting = std::getenv("PENSTOCK_EMULATED_NCCL_MEMORY");
  return setting && !std::strcmp(setting, what);
}

int ncclMemAlloc(void **memory, size_t bytes) {
  uint64_t address = 0;
  if (isMemory("none") || allocateMapped(&address, bytes))
    return ncclUnhandledCudaError;
  *memory = reinterpret_cast<void *>(address);
  return ncclSuccess;
}

int ncclMemFree(void *memory) {
  auto address = reinterpret_cast<uint64_t>(memory);
  {
    std::lock_guard<std::mutex> lock(getLock());
    for (const auto &[communicator, state] : getOpen())
      for (const auto &[handle, registration] : state->registered)
        if (registration.allocation == address)
          return ncclInvalidUsage;
  }
  return freeMapped(address) ? ncclUnhandledCudaError : ncclSuccess;
}

int ncclCommRegister(NcclComm communicator, void *memory, size_t bytes,
                     void **handle) {
  std::lock_guard<std::mutex> lock(getLock());
  uint64_t allocation = findMapped(memory, bytes);
  if (!getOpen().contains(communicator) || !allocation || bytes == 0 ||
      communicator->status != ncclSuccess || isMemory("unregistered"))
    return ncclInvalidArgument;
  uint64_t number = ++communicator->registrations;
  communicator->registered[number] = {
      allocation, reinterpret_cast<uint64_t>(memory), bytes};
  *handle = reinterpret_cast<void *>(number);
  return ncclSuccess;
}

int ncclCommDeregister(NcclComm communicator, void *handle) {
  std::lock_guard<std::mutex> lock(getLock());
  if (!getOpen().contains(communicator))
    return ncclInvalidArgument;
  return communicator->registered.erase(reinterpret_cast<uint64_t>(handle))
             ? ncclSuccess
             : ncclInvalidUsage;
}

/// Forgets a communicator.
int close(NcclComm communicator) {
  std::shared_ptr<Communicator> state;
  {
    std::lock_guard<std::mutex> lock(getLock());
    auto found = getOpen().find(communicator);
    if (found == getOpen().end())
      return ncclInvalidArgument;
    state = found->second;
    getOpen().erase(found);
    state->isAborted = true;
    notifyWaiting();
  }
  state->isStopping = true;
  state->wake();
  state->thread.join();
  for (Peer &peer : state->peers)
    if (peer.socket >= 0)
      ::close(peer.socket);
  ::close(state->wakeUp);
  return ncclSuccess;
}

/// Destroys a communicator that is final: as in NCCL, one that is not would
/// have to wait. Its memory is deregistered before.
int ncclCommDestroy(NcclComm communicator) {
  {
    std::lock_guard<std::mutex> lock(getLock());
    if (getOpen().contains(communicator) &&
        (!communicator->isFinal || !communicator->registered.empty()))
      return ncclInvalidUsage;
  }
  return close(communicator);
}

int ncclCommAbort(NcclComm communicator) {
  const char *setting = std::getenv("PENSTOCK_EMULATED_NCCL_ABORT");
  while (setting && !std::strcmp(setting, "hang"))
    pause();
  return close(communicator);
}

/// Returns whether the transfer is to come after the next one.
bool isHeldBack(Communicator &state) {
  uint64_t number = state.submitted++;
  const char *setting = std::getenv("PENSTOCK_EMULATED_NCCL_SWAP");
  int rank = -1;
  unsigned long long first = 0;
  return setting && std::sscanf(setting, "%d:%llu", &rank, &first) == 2 &&
         rank == state.rank && number == first;
}

/// Makes a transfer of all that was called on one stream.
int submit(Communicator &state, std::shared_ptr<Transfer> transfer) {
  if (isHeldBack(state)) {
    state.heldBack = std::move(transfer);
    return state.status;
  }
  for (Operation &operation : transfer->operations) {
    Peer &peer = state.peers[operation.peer];
    operation.sequence = peer.issued[operation.sends]++;
    if (peer.isConnecting[operation.sends])
      continue;
    peer.isConnecting[operation.sends] = true;
    state.say(operation.peer, {Kind::Connect, uint64_t(operation.sends), 0});
  }
  state.launching.push_back(std::move(transfer));
  state.status = ncclInProgress;
  if (state.heldBack)
    return submit(state, std::exchange(state.heldBack, nullptr));
  state.launchConnected();
  return state.status;
}

int ncclGroupStart() {
  ++groupDepth;
  return ncclSuccess;
}

int ncclGroupEnd() {
  if (groupDepth == 0)
    return ncclInvalidUsage;
  if (--groupDepth > 0 || group.empty())
    return ncclSuccess;
  std::vector<Pending> pending;
  pending.swap(group);
  std::lock_guard<std::mutex> lock(getLock());
  // One communicator and one stream is all that is asked for.
  for (const Pending &one : pending)
    if (one.communicator != pending[0].communicator ||
        one.stream != pending[0].stream)
      return ncclInvalidUsage;
  if (!getOpen().contains(pending[0].communicator))
    return ncclInvalidArgument;
  Communicator &state = *pending[0].communicator;
  if (state.status != ncclSuccess || state.isFinal)
    return ncclInvalidArgument;
  auto transfer = std::make_shared<Transfer>();
  transfer->stream = pending[0].stream;
  for (Pending &one : pending)
    transfer->operations.push_back(one.operation);
  return submit(state, std::move(transfer));
}

int add(bool sends, const void *memory, size_t count, int type, int peer,
        NcclComm communicator, Stream stream) {
  {
    std::lock_guard<std::mutex> lock(getLock());
    if (!getOpen().contains(communicator) || type != ncclUint8 || peer < 0 ||
        peer >= communicator->size || peer == communicator->rank ||
        !isOnDevice(memory, count) || !takesRemote(stream))
      return ncclInvalidArgument;
    // A call that has not ended comes first.
    if (communicator->status != ncclSuccess)
      return ncclInvalidArgument;
    bool isRegistered =
        communicator->isRegistered(reinterpret_cast<uint64_t>(memory), count);
    if (!isRegistered && isMemory("registered"))
      return ncclInvalidUsage;
    auto bytes = const_cast<char *>(static_cast<const char *>(memory));
    group.push_back({communicator,
                     stream,
                     {sends, peer, 0, count, atAddress(bytes), isRegistered}});
  }
  if (groupDepth > 0)
    return ncclSuccess;
  ++groupDepth;
  return ncclGroupEnd();
}

int ncclSend(const void *from, size_t count, int type, int peer,
             NcclComm communicator, Stream stream) {
  return add(/*sends=*/true, from, count, type, peer, communicator, stream);
}

int ncclRecv(void *to, size_t count, int type, int peer, NcclComm communicator,
             Stream stream) {
  return add(/*sends=*/false, to, count, type, peer, communicator, stream);
}

} // namespace

const Nccl emulated::nccl = {
#define PENSTOCK_FUNCTION(name, result, parameters) name,
#include "runtime/transport/nccl/Nccl.def"
};
