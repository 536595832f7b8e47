//===- Peers.h - The processes of a run -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What processes do together: begin, agree on how it ended, and tell rank 0
// what only it prints and writes. A run of one process is alone, and none of it
// does anything then.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_PEERS_H
#define PENSTOCK_RUNTIME_RUN_PEERS_H

#include "runtime/io/ModelWriter.h"
#include "runtime/job/Clock.h"
#include "runtime/job/Handshake.h"
#include "runtime/job/Stream.h"
#include "runtime/observe/Failure.h"
#include "runtime/observe/FlightRecord.h"
#include "runtime/run/JobWatchdog.h"
#include "runtime/run/Options.h"
#include "runtime/transport/Transport.h"
#include "runtime/transport/mpi/Library.h"

#include <functional>

namespace penstock::runtime {

class Instance;
struct PeerTransport;

class Peers final : public ControlListener, public FailureHandler {
public:
  /// A run of one process.
  explicit Peers(const penstock_program &program);
  ~Peers() override;

  /// Finds the other processes, if the environment says that there are any.
  /// Where it fails, the text is empty in processes that need not say it.
  Error join(const Options &options);

  const Job &getJob() const { return job; }
  bool isAlone() const { return job.isAlone(); }
  /// This process prints and writes.
  bool isRoot() const { return job.rank == 0; }
  std::vector<bool> listLocal() const;
  /// Loads what the transport needs, for devices on these GPUs.
  Error loadTransport(const std::vector<int> &gpus);
  std::unique_ptr<Transport> createTransport() const;
  /// Where the devices of this process are, of those that were asked for.
  std::vector<int> chooseGpus(const std::vector<int> &gpus) const;

  /// Adds what all have to know of the transport.
  void describeTransport(Record &own) const;
  /// All say what they are. Fails in all of them, for the same reason, where
  /// they cannot begin.
  Error meet(Record own);
  /// How many samples a set has for those that open none of its files: -1 where
  /// nobody knows. `flag` begins the names of its inputs.
  int64_t findSamples(const char *flag) const;
  /// Keeps this process on its share of the cores that those of its host have
  /// in common; true if they have more threads than cores.
  bool divideCores();

  /// All come to the same end: the first error of any, whose text only rank 0
  /// has. What follows is known to all.
  Error agree(Error error);

  /// Returns true in all processes if each of them passes true.
  bool haveAll(bool own);

  // What rank 0 gets from all, and gives to all; by rank.
  std::vector<std::string> gather(std::string own);
  std::string broadcast(std::string fromRoot);

  /// Values of sinks go to rank 0, in order; false: not now, too much is on its
  /// way.
  bool canSendSinks();
  void sendSinks(std::string bytes);
  /// On rank 0: what has come, or nothing.
  std::optional<std::string> takeSinks();

  /// Why training ends before its last update; 0 and false: it does not.
  struct Ending {
    int32_t signal = 0;
    uint32_t isNotFinite = 0;
    explicit operator bool() const { return signal || isNotFinite; }
  };
  /// All go by what rank 0 says. Others tell it of their signal, once.
  Ending decide(Ending own);
  /// On rank 0: the signal that another process has, or 0.
  int takeSignal();
  void sendSignal(int signal);
  /// All have ended a segment. Calls `observe` until all values have come, and
  /// while it `isBusy`. What comes then is what rank 0 says.
  Ending finishSegment(const std::function<void()> &observe,
                       const std::function<bool()> &isBusy = nullptr,
                       const std::function<Ending()> &ending = nullptr);

  // Other messages between rank 0 and others: what each is for says who uses
  // it.
  // A stream has the tag after its own, too.
  enum : uint16_t {
    kAskBegun = 64,
    kHasBegun,
    kHold,
    kHeld,
    kRelease,
    kWantCheckpoint,
    kFolder,
    kFiles,
    kFilesTaken
  };
  void tell(int rank, uint16_t tag, const std::string &bytes);
  void tellAll(uint16_t tag, const std::string &bytes);
  std::optional<std::string> hear(int rank, uint16_t tag);
  /// Waits for it; nothing where the processes end instead.
  std::optional<std::string> await(int rank, uint16_t tag);

  // On rank 0: what only another process has. That process is in serve().
  Error readVariable(const Instance &instance,
                     const penstock_variable &variable, int64_t updates,
                     uint32_t copy, bool inOrderOfFile, const TakePiece &take);
  /// Reads `size` bytes that another process writes in its turn.
  StreamReader startReading(int rank);
  StreamWriter startWriting();
  // The same beside those, by any thread.
  StreamReader startReading(int rank, uint16_t tag);
  StreamWriter startWriting(uint16_t tag);
  /// Lets another process begin to write, which waits for its turn.
  void giveTurn(int rank);
  void waitForTurn();
  void endServing();
  void serve(const Instance &instance, int64_t updates);

  /// "rank 2 (node7)".
  std::string getName(int rank) const;
  /// The same in all processes of this run, and in no other.
  const Token &getToken() const { return token; }
  const ClockOffset &getClock() const { return firstClock; }
  /// Learns of the end of this process, if it is known. Its folder is named.
  void setFlightRecord(FlightRecord *record, const std::string &folder);
  /// Beats tell where the devices of an instance are. Null: none is.
  void follow(const Instance *instance);
  /// On rank 0: where all are, by rank; `isFresh` if that is of the last
  /// second.
  std::vector<ProcessState> getStates(bool &isFresh) const;
  /// On rank 0: nanoseconds since a sign of life of a rank.
  int64_t getSilence(int rank) const { return control->getSilence(rank); }
  /// Returns the time of an event here by the clock of rank 0.
  int64_t toRootTime(int64_t time) const;
  void measureClockAgain();
  int64_t getClockError() const {
    return std::max(firstClock.error, lastClock.error);
  }

  bool hasAgreedOnEnd() const { return hasAgreed; }
  /// All know of the error that this one ends with.
  void setAgreed() { hasAgreed = true; }
  /// The end: waits for all where they agree on it, else ends all at once.
  /// After an error a process is to exit then, without taking anything apart.
  void leave(const Error &error);

private:
  std::string makeBeat() override;
  void report(const Failure &failure,
              const std::vector<std::string> &beats) override;
  void end(int code, bool isOwn) override;
  void fail(int code, const char *sentence) override;

  Error chooseTransport(const Options &options, const LaunchFacts &facts);
  Error joinByMpi(const LaunchFacts &facts, double seconds);
  Error joinByControl(const LaunchFacts &facts, double seconds);
  Error connect(const Meeting &meeting, Entrance &entrance, double seconds);

  const penstock_program &program;
  Job job;
  MpiLibrary mpi;
  /// That of the devices, if it is used; and its places and library.
  const PeerTransport *peerTransport = nullptr;
  std::vector<std::string> places;
  std::string peerLibrary;
  double startSeconds = 60;
  Control::Times times;
  std::unique_ptr<Control> control;
  std::vector<Record> records;
  std::mutex hostsMutex; // reports may come at any time
  ClockOffset firstClock, lastClock;
  std::atomic<const Instance *> followed{nullptr};
  Token token{};
  std::atomic<FlightRecord *> flightRecord{nullptr};
  std::string flightFolder;
  bool hasAgreed = false; // on the last error
  int64_t sinksUnderWay = 0;
  int sentSignal = 0, takenSignal = 0;
};

/// Describes this process, but for its files and what follows from flags.
void describeMachine(Record &record, bool comparesCpus);
/// The flags that are a part of what a run computes.
void describeFlags(Record &record, const Options &options);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_PEERS_H
