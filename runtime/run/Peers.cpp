//===- Peers.cpp - The processes of a run ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tags of messages, and what is said with them.
//===----------------------------------------------------------------------===//

#include "runtime/run/Peers.h"

#include "penstock/checksum.h"
#include "penstock/one_line.h"
#include "penstock/severity.h"
#include "runtime/device/Kinds.h"
#include "runtime/job/Bytes.h"
#include "runtime/job/Plugins.h"
#include "runtime/run/Instance.h"
#include "runtime/transport/mpi/Engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

using namespace penstock::runtime;

namespace {

// A stream has the tag after its own, too.
enum Tag : uint16_t {
  kAgree = 16,
  kGather,
  kBroadcast,
  kSinks,
  kSinksTaken,
  kMark,
  kSegment,
  kSignal,
  kAsk,
  kBytes,
  kBytesTaken
};

/// The microseconds that a process which ends in silence leaves to the one of
/// its host that speaks.
constexpr unsigned kTimeToSpeak = 1000000;

/// The most bytes of values that rank 0 has not taken.
constexpr int64_t kMostSinkBytes = 1 << 20;

/// A request of rank 0 to a process that serves.
struct Ask {
  uint32_t variable, copy, inOrderOfFile, isEnd;
};

/// Ends this process after so many seconds, whatever it does then.
class Limit {
public:
  Limit(double seconds, int code, std::string text)
      : thread([this, seconds, code, text = std::move(text)] {
          std::unique_lock<std::mutex> lock(mutex);
          if (changed.wait_for(lock, std::chrono::duration<double>(seconds),
                               [&] { return isOver; }))
            return;
          if (!text.empty())
            std::fprintf(stderr, "%s%s\n",
                         penstock::getSeverityText(penstock::Severity::Error),
                         text.c_str());
          _exit(code);
        }) {}
  ~Limit() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isOver = true;
    }
    changed.notify_all();
    thread.join();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
  std::thread thread;
};

/// Reads the state in a beat; nothing if it is none.
ProcessState readBeat(const std::string &beat) {
  ByteReader reader(beat);
  ProcessState state;
  state.positions.resize(reader.takeCount(sizeof(PositionRecord)));
  for (PositionRecord &position : state.positions)
    position = reader.take<PositionRecord>();
  state.counts.resize(reader.takeCount(sizeof(TransferCount)));
  for (TransferCount &count : state.counts)
    count = reader.take<TransferCount>();
  return reader.isComplete() ? state : ProcessState();
}

} // namespace

Peers::Peers(const penstock_program &program) : program(program) {
  job.place(program.device_count);
  // That of a run of one process; others get one from rank 0.
  (void)makeToken(token);
}

Peers::~Peers() {
  setFailureHandler(nullptr);
  control.reset();
}

//===----------------------------------------------------------------------===//
// The beginning.
//===----------------------------------------------------------------------===//

/// How the devices of a program exchange messages by themselves; null where
/// they cannot, or not all of them can.
static const PeerTransport *findPeerTransport(const penstock_program &program) {
  const char *name = program.devices[0].kind;
  if (countDevices(program, name, program.device_count) != program.device_count)
    return nullptr;
  const DeviceKind *kind = findDeviceKind(name);
  return kind ? kind->peerTransport : nullptr;
}

/// Returns true if devices exchange messages that wait for no others.
static bool hasOwnQueues(const penstock_program &program) {
  return std::any_of(
      program.channels, program.channels + program.channel_count,
      [](const penstock_channel &channel) { return channel.own_queue != 0; });
}

Error Peers::chooseTransport(const Options &options, const LaunchFacts &facts) {
  const PeerTransport *ofDevices = findPeerTransport(program);
  const std::string &name = options.transport;
  uint32_t devices = program.device_count;
  if (name == "threads")
    return userError("%d processes were started, and each would train alone; "
                     "leave --transport out, or say --alone",
                     facts.size);
  if (name == "nccl" && !ofDevices)
    return userError("--transport=nccl moves messages between GPUs, and not "
                     "all devices of this program are on one; use "
                     "--transport=mpi");
  if (ofDevices && hasOwnQueues(program)) {
    if (name == ofDevices->name || facts.launcher == Launcher::Torchrun)
      return userError("--transport=%s moves all messages in one order, and "
                       "waves of virtual workers wait for no others; start "
                       "with mpirun, and use --transport=mpi",
                       ofDevices->name);
    ofDevices = nullptr;
  }
  if (ofDevices && (name == "auto" || name == ofDevices->name)) {
    peerTransport = ofDevices;
    if (uint32_t(facts.size) == devices)
      return {};
    return userError("this program has %u device%s, and --transport=%s needs a "
                     "process for each, but %d %s started: use -n %u",
                     devices, devices == 1 ? "" : "s", ofDevices->name,
                     facts.size, facts.size == 1 ? "was" : "were", devices);
  }
  if (name == "auto" && facts.launcher == Launcher::Torchrun)
    return userError("%d processes were started by torchrun, which starts "
                     "programs of GPUs; start this one with mpirun -n %d",
                     facts.size, facts.size);
  if (uint32_t(facts.size) > devices)
    return userError("this program has %u device%s, but %d processes were "
                     "started: use -n 1%s",
                     devices, devices == 1 ? "" : "s", facts.size,
                     devices == 1 ? "" : format(" to %u", devices).c_str());
  return {};
}

Error Peers::join(const Options &options) {
  // 1. Who else is there.
  LaunchFacts facts;
  bool isControl = options.transport == "control";
  Error error = isControl ? readTorchrun(facts, ::getenv)
                          : readEnvironment(facts, ::getenv);
  if (!error && options.isAlone)
    return {};
  // One device has nobody to send to.
  bool isAsked = options.transport == "nccl" && program.device_count > 1;
  if (!error && facts.size == 1 && !isControl && !isAsked)
    return {};
  if (!error)
    error = chooseTransport(options, facts);

  // 2. Meet. Where the variables of torchrun say how, no MPI is needed.
  double seconds = options.startTimeout.value_or(60);
  startSeconds = seconds;
  isControl |= peerTransport &&
               (facts.launcher == Launcher::Torchrun ||
                (std::getenv("MASTER_ADDR") && std::getenv("MASTER_PORT")));
  if (options.peerTimeout)
    times.silence = int64_t(*options.peerTimeout * 1e9);
  if (!error) {
    job.rank = facts.rank;
    job.size = facts.size;
    job.hosts.assign(facts.size, "");
    job.place(program.device_count);
    error =
        isControl ? joinByControl(facts, seconds) : joinByMpi(facts, seconds);
  }
  if (!error) {
    setFailureHandler(this);
    firstClock = lastClock = measureClock(job, *control);
    return {};
  }

  // 3. What all find out for themselves is said once on every host.
  mpi.finalize();
  job = {};
  job.place(program.device_count);
  if (facts.rank > 0 && facts.localRank != 0) {
    error.text.clear();
    // The launcher may end who says it as soon as another one ends.
    usleep(kTimeToSpeak);
  } else if (facts.rank > 0) {
    error.text = format("[rank %d %s] %s", facts.rank, getHostName().c_str(),
                        error.text.c_str());
  }
  return error;
}

Error Peers::connect(const Meeting &meeting, Entrance &entrance,
                     double seconds) {
  token = meeting.token;
  std::vector<Socket> sockets(1);
  Error error = job.rank == 0
                    ? entrance.admit(meeting.token, job.size, seconds, sockets)
                    : visit(meeting, job.rank, job.size, seconds, sockets[0]);
  if (error)
    return error;
  control = std::make_unique<Control>(job, std::move(sockets), times, *this);
  return {};
}

Error Peers::joinByMpi(const LaunchFacts &facts, double seconds) {
  if (Error error = mpi.load(facts)) {
    if (peerTransport)
      error.text += "; no MPI is needed where MASTER_ADDR and MASTER_PORT say "
                    "where rank 0 is";
    return error;
  }

  // 1. MPI waits for all, and says nothing of those that do not come.
  Meeting meeting;
  Entrance entrance;
  bool isLocal = facts.localSize == facts.size;
  std::string text;
  if (facts.rank == 0)
    text = format("MPI did not start all of %d processes within %g s "
                  "(--start-timeout)",
                  facts.size, seconds);
  Limit limit(seconds, PENSTOCK_PEER_FAILED, text);
  if (Error error = mpi.start(facts))
    return error;

  // 2. Rank 0 says where it is.
  Error error;
  ByteWriter words;
  if (job.rank == 0) {
    error = makeToken(meeting.token);
    if (!error)
      error = entrance.open(0, isLocal);
    if (!error)
      error = entrance.findAddresses(meeting.addresses);
    words.add(uint32_t(error.code)).add(meeting.token).add(entrance.getPort());
    words.addText(getHostName()).add(uint32_t(meeting.addresses.size()));
    for (const std::string &address : meeting.addresses)
      words.addText(address);
  }
  uint64_t size = words.bytes.size();
  int code = mpi.getFunctions().broadcast(&size, sizeof(size));
  words.bytes.resize(std::min<uint64_t>(size, 1 << 20));
  if (code == 0)
    code = mpi.getFunctions().broadcast(words.bytes.data(), words.bytes.size());
  if (code != 0)
    return mpi.failed(code);
  if (error)
    return error;
  ByteReader reader(words.bytes);
  auto rootCode = reader.take<uint32_t>();
  meeting.token = reader.take<Token>();
  meeting.port = reader.take<uint16_t>();
  meeting.host = reader.takeText();
  meeting.addresses.resize(reader.takeCount(4));
  for (std::string &address : meeting.addresses)
    address = reader.takeText();
  if (rootCode != PENSTOCK_DONE || !reader.isComplete())
    return {PENSTOCK_USER_ERROR, ""}; // rank 0 says why
  return connect(meeting, entrance, seconds);
}

Error Peers::joinByControl(const LaunchFacts &facts, double seconds) {
  const char *address = std::getenv("MASTER_ADDR");
  const char *portText = std::getenv("MASTER_PORT");
  const char *agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const char *own = std::getenv("PENSTOCK_PORT");
  const char *id = std::getenv("TORCHELASTIC_RUN_ID");
  if (!address || !*address)
    return userError("MASTER_ADDR is not set: the address of rank 0");
  if (!own && !portText)
    return userError("MASTER_PORT is not set: a free port of rank 0");
  char *end = nullptr;
  long port = std::strtol(own ? own : portText, &end, 10);
  // The agent of torchrun holds the port itself.
  if (!own && agent && !std::strcmp(agent, "True"))
    ++port;
  if (*end || port < 1 || port > 65535)
    return userError("%s is '%s', which is no port",
                     own ? "PENSTOCK_PORT" : "MASTER_PORT",
                     own ? own : portText);

  Meeting meeting;
  meeting.addresses = {address};
  meeting.port = uint16_t(port);
  std::string secret = std::string(id ? id : "") + '\n';
  if (program.file_count)
    secret.append(reinterpret_cast<const char *>(program.files[0].digest), 32);
  meeting.token = getChecksum(secret.data(), secret.size());
  Entrance entrance;
  bool isLocal = facts.localSize == facts.size ||
                 !std::strncmp(address, "127.", 4) ||
                 !std::strcmp(address, "localhost");
  if (job.rank == 0)
    if (Error error = entrance.open(meeting.port, isLocal))
      return error;
  return connect(meeting, entrance, seconds);
}

std::vector<bool> Peers::listLocal() const {
  std::vector<bool> isLocal;
  for (int rank : job.rankOfDevice)
    isLocal.push_back(rank == job.rank);
  return isLocal;
}

Error Peers::loadTransport(const std::vector<int> &gpus) {
  if (!peerTransport)
    return {};
  if (Error error = peerTransport->listPlaces(gpus, places))
    return error;
  return peerTransport->load(peerLibrary);
}

std::vector<int> Peers::chooseGpus(const std::vector<int> &gpus) const {
  if (!peerTransport)
    return gpus;
  int turn = job.localRank % int(places.size());
  return {gpus.empty() ? turn : gpus[turn]};
}

void Peers::describeTransport(Record &own) const {
  own.facts.push_back({Fact::Property, "MPI library", mpi.getName()});
  own.facts.push_back({Fact::Property, "transport library", peerLibrary});
  own.places = places;
}

std::unique_ptr<Transport> Peers::createTransport() const {
  if (peerTransport)
    return peerTransport->create(job, startSeconds);
  return mpi.isStarted()
             ? createMpi(mpi.getFunctions(), mpi.getLargestTag(), job)
             : createThreads();
}

Error Peers::meet(Record own) {
  if (isAlone())
    return {own.code, own.sentence};
  for (uint32_t device = 0; device < program.device_count; ++device)
    if (job.has(device))
      own.threads += std::max(program.devices[device].threads, 1u);
  if (Error error = exchange(job, *control, own, records))
    return error;
  {
    std::lock_guard<std::mutex> lock(hostsMutex);
    findNeighbors(records, job);
  }
  for (int rank = 0; rank < job.size; ++rank)
    if (rank != job.rank && records[rank].host == records[job.rank].host)
      control->setProcess(rank, records[rank].pid);
  control->setSpeaker(job.rank <= 1 || job.localRank == 0);
  Error error = compare(records);
  hasAgreed = bool(error);
  if (!isRoot())
    error.text.clear();
  return error;
}

int64_t Peers::findSamples(const char *flag) const {
  for (const Record &record : records)
    for (const FileFact &file : record.files)
      if (file.input.rfind(flag, 0) == 0)
        return file.samples;
  return -1;
}

bool Peers::divideCores() {
  if (isAlone())
    return false;
  // 1. All of this host, and whether two of them have a core in common.
  const std::string &host = records[job.rank].host;
  std::vector<int32_t> all;
  size_t sum = 0;
  uint64_t threads = 0, before = 0;
  for (int rank = 0; rank < job.size; ++rank) {
    const Record &record = records[rank];
    if (record.host != host)
      continue;
    all.insert(all.end(), record.cores.begin(), record.cores.end());
    sum += record.cores.size();
    threads += record.threads;
    before += rank < job.rank ? record.threads : 0;
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  orderCores(all);
  if (threads > all.size())
    return true;
  if (all.size() == sum)
    return records[job.rank].threads > records[job.rank].cores.size();

  // 2. In the order of ranks, by threads.
  cpu_set_t share;
  CPU_ZERO(&share);
  uint64_t begin = before * all.size() / threads;
  uint64_t end = (before + records[job.rank].threads) * all.size() / threads;
  for (uint64_t i = begin; i < end; ++i)
    CPU_SET(all[i], &share);
  sched_setaffinity(0, sizeof(share), &share);
  return false;
}

//===----------------------------------------------------------------------===//
// The middle.
//===----------------------------------------------------------------------===//

std::vector<std::string> Peers::gather(std::string own) {
  std::vector<std::string> all(job.size);
  if (!isRoot()) {
    control->send(0, kGather, own);
    return all;
  }
  all[0] = std::move(own);
  for (int rank = 1; rank < job.size; ++rank)
    all[rank] = control->receive(rank, kGather).value_or("");
  return all;
}

std::string Peers::broadcast(std::string fromRoot) {
  if (!isRoot())
    return control->receive(0, kBroadcast).value_or("");
  for (int rank = 1; rank < job.size; ++rank)
    control->send(rank, kBroadcast, fromRoot);
  return fromRoot;
}

Error Peers::agree(Error error) {
  if (isAlone())
    return error;
  // 1. The first error, by rank.
  ByteWriter own;
  own.add(int32_t(error.code)).addText(error.text);
  std::vector<std::string> all = gather(std::move(own.bytes));
  Error first;
  // That of rank 0 may have further lines.
  if (isRoot())
    first = std::move(error);
  for (int rank = 1; isRoot() && rank < job.size && !first; ++rank) {
    ByteReader reader(all[rank]);
    first.code = reader.take<int32_t>();
    first.text = reader.takeText();
    if (first && !first.text.empty())
      first.text = getName(rank) + ": " + first.text;
  }

  // 2. All know it.
  ByteWriter decision;
  decision.add(int32_t(first.code));
  std::string bytes = broadcast(std::move(decision.bytes));
  if (!isRoot())
    first = {ByteReader(bytes).take<int32_t>(), ""};
  hasAgreed = bool(first);
  return first;
}

bool Peers::haveAll(bool own) {
  std::vector<std::string> all = gather(own ? "yes" : "no");
  bool isForAll = std::ranges::all_of(
      all, [](const std::string &each) { return each == "yes"; });
  return broadcast(isForAll ? "yes" : "no") == "yes";
}

bool Peers::canSendSinks() {
  while (auto taken = control->take(0, kSinksTaken))
    sinksUnderWay -= ByteReader(*taken).take<int64_t>();
  return sinksUnderWay < kMostSinkBytes;
}

void Peers::sendSinks(std::string bytes) {
  sinksUnderWay += int64_t(bytes.size());
  control->send(0, kSinks, bytes);
}

std::optional<std::string> Peers::takeSinks() {
  for (int rank = 1; rank < job.size; ++rank)
    if (auto bytes = control->take(rank, kSinks)) {
      ByteWriter taken;
      control->send(rank, kSinksTaken, taken.add(int64_t(bytes->size())).bytes);
      return bytes;
    }
  return std::nullopt;
}

void Peers::tell(int rank, uint16_t tag, const std::string &bytes) {
  control->send(rank, tag, bytes);
}

void Peers::tellAll(uint16_t tag, const std::string &bytes) {
  for (int rank = 1; rank < job.size; ++rank)
    control->send(rank, tag, bytes);
}

std::optional<std::string> Peers::hear(int rank, uint16_t tag) {
  return control->take(rank, tag);
}

std::optional<std::string> Peers::await(int rank, uint16_t tag) {
  return control->receive(rank, tag);
}

void Peers::sendSignal(int signal) {
  if (isAlone() || isRoot() || !signal || sentSignal)
    return;
  sentSignal = signal;
  control->send(0, kSignal, ByteWriter().add(int32_t(signal)).bytes);
}

int Peers::takeSignal() {
  for (int rank = 1; rank < job.size; ++rank)
    if (auto signal = control->take(rank, kSignal); signal && !takenSignal)
      takenSignal = ByteReader(*signal).take<int32_t>();
  return takenSignal;
}

Peers::Ending Peers::decide(Ending own) {
  if (isAlone())
    return own;
  sendSignal(own.signal);
  std::string bytes = broadcast(ByteWriter().add(own).bytes);
  return ByteReader(bytes).take<Ending>();
}

Peers::Ending Peers::finishSegment(const std::function<void()> &observe,
                                   const std::function<bool()> &isBusy,
                                   const std::function<Ending()> &ending) {
  if (isAlone())
    return ending ? ending() : Ending();
  if (!isRoot()) {
    // What the sinks still have goes first.
    while (!canSendSinks())
      control->wait(1000000);
    observe();
    control->send(0, kMark, "");
    while (true) {
      if (auto bytes = control->take(0, kSegment))
        return ByteReader(*bytes).take<Ending>();
      observe();
      control->wait(1000000);
    }
  }
  // A mark stands behind the values of its process.
  std::vector<bool> isThere(job.size);
  int missing = job.size - 1;
  while (missing > 0 || (isBusy && isBusy())) {
    for (int rank = 1; rank < job.size; ++rank)
      if (!isThere[rank] && control->take(rank, kMark)) {
        isThere[rank] = true;
        --missing;
      }
    observe();
    if (missing > 0 || (isBusy && isBusy()))
      control->wait(1000000);
  }
  Ending result = ending ? ending() : Ending();
  tellAll(kSegment, ByteWriter().add(result).bytes);
  return result;
}

StreamReader Peers::startReading(int rank) {
  return StreamReader(*control, rank, kBytes);
}

StreamWriter Peers::startWriting() { return StreamWriter(*control, 0, kBytes); }

StreamReader Peers::startReading(int rank, uint16_t tag) {
  return StreamReader(*control, rank, tag);
}

StreamWriter Peers::startWriting(uint16_t tag) {
  return StreamWriter(*control, 0, tag);
}

void Peers::giveTurn(int rank) { control->send(rank, kAsk, ""); }

void Peers::waitForTurn() { control->receive(0, kAsk); }

Error Peers::readVariable(const Instance &instance,
                          const penstock_variable &variable, int64_t updates,
                          uint32_t copy, bool inOrderOfFile,
                          const TakePiece &take) {
  int rank = job.rankOfDevice[variable.placements[copy].device];
  if (rank == job.rank)
    return instance.readPieces(variable, updates, copy, inOrderOfFile, take);
  Ask ask = {uint32_t(&variable - program.variables), copy, inOrderOfFile, 0};
  control->send(rank, kAsk, ByteWriter().add(ask).bytes);
  StreamReader reader = startReading(rank);
  std::vector<char> piece(std::min<uint64_t>(variable.type.bytes, 1 << 20));
  Error error;
  for (uint64_t left = variable.type.bytes; left;) {
    uint64_t size = std::min<uint64_t>(left, piece.size());
    if (!reader.read(piece.data(), size))
      return {PENSTOCK_PEER_FAILED, "the other processes have ended"};
    // What has been asked for comes, whatever happened to the first pieces.
    if (!error)
      error = take(piece.data(), size);
    left -= size;
  }
  return error;
}

void Peers::endServing() {
  for (int rank = 1; rank < job.size; ++rank)
    control->send(rank, kAsk, ByteWriter().add(Ask{0, 0, 0, 1}).bytes);
}

void Peers::serve(const Instance &instance, int64_t updates) {
  while (auto bytes = control->receive(0, kAsk)) {
    Ask ask = ByteReader(*bytes).take<Ask>();
    if (ask.isEnd || ask.variable >= program.variable_count)
      return;
    StreamWriter writer = startWriting();
    (void)instance.readPieces(program.variables[ask.variable], updates,
                              ask.copy, ask.inOrderOfFile,
                              [&](const char *piece, uint64_t size) {
                                writer.write(piece, size);
                                return Error();
                              });
    writer.finish();
  }
}

//===----------------------------------------------------------------------===//
// Life and death.
//===----------------------------------------------------------------------===//

void Peers::follow(const Instance *instance) {
  followed.store(instance);
  if (control)
    control->beatNow();
}

std::string Peers::makeBeat() {
  const Instance *here = followed.load();
  if (!here)
    return "";
  ByteWriter beat;
  std::vector<PositionRecord> positions = record(here->positions());
  beat.add(uint32_t(positions.size()));
  for (const PositionRecord &position : positions)
    beat.add(position);
  std::vector<TransferCount> counts = here->countTransfers();
  beat.add(uint32_t(counts.size()));
  for (const TransferCount &count : counts)
    beat.add(count);
  return std::move(beat.bytes);
}

std::vector<ProcessState> Peers::getStates(bool &isFresh) const {
  std::vector<ProcessState> states(job.size);
  isFresh = true;
  if (const Instance *here = followed.load())
    states[0] = {record(here->positions()), here->countTransfers()};
  for (int rank = 1; rank < job.size; ++rank) {
    states[rank] = readBeat(control->getBeat(rank));
    isFresh &= control->getSilence(rank) < 1000000000;
  }
  return states;
}

int64_t Peers::toRootTime(int64_t time) const {
  return penstock::runtime::toRootTime(time, firstClock, lastClock);
}

void Peers::measureClockAgain() {
  if (!isAlone())
    lastClock = measureClock(job, *control);
}

std::string Peers::getName(int rank) const {
  const std::string &host = job.hosts[rank];
  return format(host.empty() ? "rank %d" : "rank %d (%s)", rank, host.c_str());
}

void Peers::report(const Failure &failure,
                   const std::vector<std::string> &beats) {
  if (FlightRecord *open = flightRecord.load(); open && failure.isLost)
    open->setLost(failure.rank);
  std::lock_guard<std::mutex> lock(hostsMutex);
  // 1. Where all are, as far as this process has heard.
  std::vector<std::vector<PositionRecord>> places(job.size);
  for (int rank = 0; rank < job.size; ++rank)
    places[rank] =
        readBeat(rank == job.rank ? makeBeat() : beats[rank]).positions;
  const penstock_schedule *train =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN);

  // 2. The sentence: of one that is lost, where it was.
  std::string text =
      penstock::getSeverityText(penstock::Severity::Error) +
      (job.rank == 0 ? std::string() : format("[rank %d] ", job.rank));
  if (!failure.isLost) {
    text += getName(failure.rank) + ": " + failure.sentence;
  } else {
    std::vector<std::string> where;
    if (const std::string &host = job.hosts[failure.rank]; !host.empty())
      where.push_back(host);
    const PositionRecord *shown = nullptr;
    // A device that works says more than one that waits.
    for (const PositionRecord &one : places[failure.rank])
      if (!shown ||
          (shown->waitChannel != UINT32_MAX && one.waitChannel == UINT32_MAX))
        shown = &one;
    bool isKnown = shown && shown->task < program.task_count;
    if (shown)
      where.push_back(format("device %u", shown->device));
    if (isKnown)
      where.push_back(format("stage %u", program.tasks[shown->task].stage));
    text += format("rank %d", failure.rank);
    for (size_t i = 0; i < where.size(); ++i)
      text += (i == 0 ? " (" : ", ") + where[i];
    text += where.empty() ? " was lost" : ") was lost";
    if (isKnown) {
      const penstock_task &task = program.tasks[shown->task];
      text += format(" %s %c%lld", shown->isRunning ? "at" : "after",
                     char(task.letter), (long long)shown->taskNumber);
      if (train && std::strchr("FBIW", char(task.letter)))
        text +=
            format(" (update %lld)",
                   (long long)(shown->taskNumber / train->microbatches) + 1);
      if (shown->waitChannel < program.channel_count)
        text += format(" while waiting for message %lld of channel '%s'",
                       (long long)shown->waitNumber,
                       program.channels[shown->waitChannel].name);
    }
    text += ": " + failure.sentence;
  }
  text = penstock::toOneLine(text) + "\n";
  for (int rank = 0; rank < job.size; ++rank)
    for (const PositionRecord &one : places[rank])
      text += format("  %s, device %u: %s\n", getName(rank).c_str(), one.device,
                     describe(program, one).c_str());

  if (flightRecord.load())
    text += format("  penstock-doctor %s says more\n", flightFolder.c_str());

  // 3. Nobody may be reading.
  std::thread([code = failure.code] {
    sleep(2);
    _exit(code);
  }).detach();
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, text.data(), text.size());
}

void Peers::setFlightRecord(FlightRecord *next, const std::string &folder) {
  flightFolder = folder;
  flightRecord.store(next);
}

void Peers::end(int code, bool isOwn) {
  // The watchdog speaks of others.
  bool isOrigin = isOwn && code != PENSTOCK_WATCHDOG;
  if (FlightRecord *open = flightRecord.load())
    open->setEnd(isOrigin ? FlightEnd::Origin : FlightEnd::Failed);
  // What processes have under way between them is stopped, if that does not
  // take long: it has been seen to hang.
  const Instance *here = followed.load();
  if (here && here->connects()) {
    constexpr auto kPatience = std::chrono::seconds(1);
    static std::mutex mutex;
    static std::condition_variable changed;
    static bool isStopped = false;
    std::thread([here] {
      here->abort();
      std::lock_guard<std::mutex> lock(mutex);
      isStopped = true;
      changed.notify_all();
    }).detach();
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, kPatience, [] { return isStopped; });
  }
  _exit(code);
}

void Peers::fail(int code, const char *sentence) {
  control->fail({job.rank, code, /*isLost=*/false, sentence});
}

void Peers::leave(const Error &error) {
  if (isAlone())
    return;
  if (error && !hasAgreed)
    control->fail({job.rank, error.code, /*isLost=*/false, error.text});
  // All are here, and none will be missed. What MPI does now may take long, or
  // for ever.
  control->leave();
  Limit limit(10, error.code, "");
  mpi.finalize();
  setFailureHandler(nullptr);
  // A launcher ends the others as soon as it sees one end with an error: rank
  // 0, which has something to say and a code to end with, is the first.
  if (error && !isRoot())
    control->waitForEnd(0);
  if (!error)
    control.reset();
}
