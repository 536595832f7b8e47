//===- Control.h - Life and death of processes ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A star of connections to rank 0, and a thread in every process that serves
// it: beats that say where a process stands, messages between the main threads,
// and the end of all when one is lost. Nothing of the training loop goes here,
// and the thread waits for nobody.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_CONTROL_H
#define PENSTOCK_RUNTIME_JOB_CONTROL_H

#include "runtime/job/Job.h"
#include "runtime/job/Meeting.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

namespace penstock::runtime {

/// Why all processes end before their time.
struct Failure {
  int rank = 0; // where it began
  int code = PENSTOCK_PEER_FAILED;
  /// That rank is gone, or gives no sign of life: the sentence says which.
  bool isLost = false;
  std::string sentence;
};

/// The questions of the thread to the process that it serves.
class ControlListener {
public:
  virtual ~ControlListener() = default;

  /// Returns what others shall know of this process, in few bytes.
  virtual std::string makeBeat() = 0;
  /// Prints a failure. Called where it shall be printed, once; `beats` are the
  /// last ones, by rank.
  virtual void report(const Failure &failure,
                      const std::vector<std::string> &beats) = 0;
  /// Ends this process with that exit code; returns in tests only. The end of
  /// all `isOwn` where it began here.
  virtual void end(int code, bool isOwn) = 0;
};

class Control {
public:
  struct Times {
    int64_t beat = 250000000;     // between two beats, in nanoseconds
    int64_t silence = 3000000000; // that is taken for death; 0: none is
  };

  /// `sockets` by rank: on rank 0 those of all others, elsewhere that of rank
  /// 0.
  Control(const Job &job, std::vector<Socket> sockets, Times times,
          ControlListener &listener);
  /// Closes the connections; a loss for those that still listen.
  ~Control();

  // Messages between main threads, in order by pair of ranks and tag. One of
  // the two ranks is 0.
  static constexpr uint64_t kLargest = 4 << 20;
  void send(int rank, uint16_t tag, std::string_view bytes);
  /// Waits for a message; nothing where the processes end instead.
  std::optional<std::string> receive(int rank, uint16_t tag);
  /// Takes a message if there is one.
  std::optional<std::string> take(int rank, uint16_t tag);

  /// Sleeps until a message has come, but not longer.
  void wait(int64_t nanoseconds);

  /// Sends a beat before its time.
  void beatNow();
  /// Rank `rank` is process `pid` of this host: a silence of one that can be
  /// seen to live, on a host with too much to do, is forgiven for longer.
  void setProcess(int rank, int pid);
  /// Returns the last beat of a rank; empty if there was none.
  std::string getBeat(int rank);
  /// Returns the nanoseconds since a sign of life of a rank.
  int64_t getSilence(int rank);

  /// This process fails: all others learn of it, and it ends. Does not return,
  /// but in tests.
  void fail(Failure failure);
  /// Waits until all processes are here; from then on none is missed.
  void leave();
  /// After that: waits until a process is gone, or has closed its connection.
  void waitForEnd(int rank);

  /// States if this process reports when rank 0 is lost: rank 1 does, and
  /// others that are told so.
  void setSpeaker(bool value) { isSpeaker = value; }

  /// A round trip to rank 0: when it left and came back by the clock of this
  /// process, and when it was there by that of rank 0.
  struct RoundTrip {
    int64_t left, there, back;
  };
  std::optional<RoundTrip> visitRoot();

private:
  enum Type : uint16_t { Beat, Data, Failed, End, Bye, Ping, Pong, kTypes };
  /// The tag of round trips, which are no messages of the main threads.
  static constexpr uint16_t kPongTag = UINT16_MAX;
  struct Header {
    uint32_t length;
    uint16_t type, tag;
  };
  struct Connection {
    Socket socket;
    int rank = 0;
    // What arrives.
    Header header;
    size_t filled = 0; // of header and payload together
    std::string payload;
    // What leaves.
    std::deque<std::string> output;
    size_t written = 0; // of the first
    int64_t heard = 0;
    bool hasLeft = false;
    std::string beat;
    int pid = 0; // of a process of this host
  };
  struct Message {
    int rank;
    uint16_t tag;
    std::string bytes;
  };

  void loop();
  void pollOnce();
  void read(Connection &connection);
  void write(Connection &connection);
  bool handle(Connection &connection);
  void lose(Connection &connection, std::string sentence);
  void endAll(Failure failure);
  void flush(int64_t nanoseconds);
  static std::string frame(Type type, uint16_t tag, std::string_view bytes);
  Connection *find(int rank);
  void enqueue(Connection &connection, std::string frame);
  void wake();

  const Job &job;
  const Times times;
  ControlListener &listener;

  std::mutex mutex; // of all below
  std::condition_variable changed;
  std::vector<std::unique_ptr<Connection>> connections;
  std::deque<Message> inbox;
  std::optional<Failure> own; // to be sent
  bool isStopping = false, isOver = false;
  std::atomic<bool> isSpeaker, wantsBeat{false};

  int64_t lastTick = 0, lastBeat = 0;
  /// How long this process stood still, just now.
  int64_t suspension = 0;
  int wakeUp = -1; // an eventfd
  std::thread thread;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_CONTROL_H
