//===- ControlTest.cpp - Life and death of processes ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several stars of one process, whose ends are recorded and not carried out.
// Also under the thread sanitizer.
//===----------------------------------------------------------------------===//

#include "runtime/job/Clock.h"
#include "runtime/job/Handshake.h"
#include "runtime/job/Stream.h"
#include "runtime/support/Wait.h"

#include <arpa/inet.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <net/if.h>
#include <random>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace penstock::runtime;

namespace {

class Listener : public ControlListener {
public:
  std::string makeBeat() override { return beat; }
  void report(const Failure &failure,
              const std::vector<std::string> &beats) override {
    std::lock_guard<std::mutex> lock(mutex);
    sentence = failure.sentence;
    rank = failure.rank;
    isLost = failure.isLost;
    lastBeats = beats;
  }
  void end(int value, bool own) override {
    isOwn = own;
    code.store(value);
  }

  bool awaitEnd() {
    for (int i = 0; i < 10000 && code.load() < 0; ++i)
      usleep(1000);
    return code.load() >= 0;
  }

  std::string beat;
  std::atomic<bool> isOwn{false};
  std::atomic<int> code{-1};
  std::mutex mutex;
  std::string sentence;
  int rank = -1;
  bool isLost = false;
  std::vector<std::string> lastBeats;
};

constexpr int64_t kMillisecond = 1000000;

/// So many processes, connected.
struct Star {
  explicit Star(int size, Control::Times times = {20 * kMillisecond, 0})
      : jobs(size), listeners(size) {
    std::vector<Socket> root(size);
    std::vector<std::vector<Socket>> sockets(size);
    for (int rank = 1; rank < size; ++rank) {
      int pair[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
      root[rank] = Socket(pair[0]);
      sockets[rank].push_back(Socket(pair[1]));
    }
    sockets[0] = std::move(root);
    for (int rank = 0; rank < size; ++rank) {
      jobs[rank].rank = rank;
      jobs[rank].size = size;
      listeners[rank].beat = "beat of " + std::to_string(rank);
      controls.push_back(std::make_unique<Control>(
          jobs[rank], std::move(sockets[rank]), times, listeners[rank]));
    }
  }

  std::vector<Job> jobs;
  std::vector<Listener> listeners;
  std::vector<std::unique_ptr<Control>> controls;
};

TEST(Control, CarriesMessagesInOrder) {
  Star star(3);
  for (int i = 0; i < 100; ++i) {
    star.controls[1]->send(0, 7, std::to_string(i));
    star.controls[1]->send(0, 8, "other");
    star.controls[0]->send(2, 7, std::string(i, 'x'));
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(star.controls[0]->receive(1, 7), std::to_string(i));
    EXPECT_EQ(star.controls[2]->receive(0, 7), std::string(i, 'x'));
  }
  EXPECT_EQ(star.controls[0]->take(1, 9), std::nullopt);
  EXPECT_EQ(star.controls[0]->take(1, 8), "other");
}

TEST(Control, TellsWhereOthersAre) {
  Star star(2);
  for (int i = 0; i < 1000 && star.controls[0]->getBeat(1).empty(); ++i)
    usleep(1000);
  EXPECT_EQ(star.controls[0]->getBeat(1), "beat of 1");
  EXPECT_LT(star.controls[0]->getSilence(1), int64_t(5000) * kMillisecond);
}

TEST(Control, StreamsMoreThanItHolds) {
  Star star(2);
  std::vector<char> bytes(9 << 20), again(bytes.size());
  std::mt19937 random(3);
  for (char &byte : bytes)
    byte = char(random());
  std::thread writer([&] {
    StreamWriter stream(*star.controls[1], 0, 20);
    for (size_t at = 0; at < bytes.size();) {
      size_t size = std::min<size_t>(bytes.size() - at, 700001);
      stream.write(&bytes[at], size);
      at += size;
    }
    stream.finish();
  });
  StreamReader reader(*star.controls[0], 1, 20);
  EXPECT_TRUE(reader.read(again.data(), 5));
  EXPECT_TRUE(reader.read(again.data() + 5, again.size() - 5));
  writer.join();
  EXPECT_TRUE(bytes == again);
}

TEST(Control, ExchangesRecords) {
  Star star(3);
  std::vector<std::vector<Record>> records(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      Record own;
      own.host = "host" + std::to_string(rank);
      EXPECT_FALSE(
          exchange(star.jobs[rank], *star.controls[rank], own, records[rank]));
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int rank = 0; rank < 3; ++rank)
    for (int other = 0; other < 3; ++other)
      EXPECT_EQ(records[rank][other].host, "host" + std::to_string(other));
}

TEST(Control, MeasuresClocks) {
  Star star(2);
  ClockOffset offset = measureClock(star.jobs[1], *star.controls[1]);
  // It is one clock.
  EXPECT_LE(std::abs(offset.offset), offset.error);
  EXPECT_GT(offset.error, 0);
  EXPECT_EQ(toRootTime(1000, {0, 10, 0}, {0, 10, 0}), 1010);
  EXPECT_EQ(toRootTime(1000, {0, 10, 0}, {2000, 30, 0}), 1020);
}

TEST(Control, LetsAllLeave) {
  Star star(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      usleep(1000 * (3 - rank));
      star.controls[rank]->leave();
      star.controls[rank].reset();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Listener &listener : star.listeners)
    EXPECT_EQ(listener.code, -1);
}

// Where the end of one makes a launcher end the others.
TEST(Control, LetsTheFirstGoFirst) {
  Star star(3);
  std::atomic<bool> isGone{false};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      star.controls[rank]->leave();
      if (rank == 0) {
        usleep(50000);
        isGone = true;
        star.controls[0].reset();
        return;
      }
      star.controls[rank]->waitForEnd(0);
      EXPECT_TRUE(isGone);
      star.controls[rank]->waitForEnd(0);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Listener &listener : star.listeners)
    EXPECT_EQ(listener.code, -1);
}

TEST(Control, EndsAllWhenOneIsLost) {
  Star star(4);
  while (star.controls[0]->getBeat(2).empty())
    usleep(1000);
  star.controls[2].reset();
  for (int rank : {0, 1, 3}) {
    ASSERT_TRUE(star.listeners[rank].awaitEnd()) << rank;
    EXPECT_EQ(star.listeners[rank].code, PENSTOCK_PEER_FAILED);
  }
  EXPECT_EQ(star.listeners[0].sentence, "connection closed");
  EXPECT_EQ(star.listeners[0].rank, 2);
  EXPECT_TRUE(star.listeners[0].isLost);
  EXPECT_EQ(star.listeners[0].lastBeats[2], "beat of 2");
  EXPECT_EQ(star.listeners[1].rank, -1) << "rank 0 has said it";
  EXPECT_EQ(star.controls[0]->receive(1, 7), std::nullopt);
}

TEST(Control, EndsAllWhenTheFirstIsLost) {
  Star star(3);
  star.controls[0].reset();
  for (int rank : {1, 2}) {
    ASSERT_TRUE(star.listeners[rank].awaitEnd()) << rank;
    EXPECT_EQ(star.listeners[rank].code, PENSTOCK_PEER_FAILED);
  }
  EXPECT_EQ(star.listeners[1].rank, 0);
  EXPECT_EQ(star.listeners[2].rank, -1) << "one of a host is enough";
}

TEST(Control, EndsAllWithTheCodeOfOneThatFails) {
  for (int failing : {0, 1, 2}) {
    Star star(3);
    star.controls[failing]->fail({0, PENSTOCK_DOES_NOT_FIT, false, "too big"});
    for (int rank : {0, 1, 2}) {
      ASSERT_TRUE(star.listeners[rank].awaitEnd()) << rank;
      EXPECT_EQ(star.listeners[rank].code, PENSTOCK_DOES_NOT_FIT);
    }
    EXPECT_EQ(star.listeners[0].sentence, "too big");
    EXPECT_EQ(star.listeners[0].rank, failing);
    EXPECT_FALSE(star.listeners[0].isLost);
    for (int rank : {0, 1, 2})
      EXPECT_EQ(star.listeners[rank].isOwn, rank == failing);
  }
}

/// Rank 0 of two, whose other end is the test.
struct Victim {
  explicit Victim(Control::Times times = {20 * kMillisecond, 0}) {
    job.size = 2;
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    std::vector<Socket> sockets(2);
    sockets[1] = Socket(pair[0]);
    peer = Socket(pair[1]);
    control =
        std::make_unique<Control>(job, std::move(sockets), times, listener);
  }
  void send(const std::string &bytes) {
    size_t at = 0;
    for (int i = 0; i < 1000 && at < bytes.size(); ++i) {
      ssize_t done = ::send(peer.get(), bytes.data() + at, bytes.size() - at,
                            MSG_NOSIGNAL);
      if (done < 0 && errno != EAGAIN)
        return;
      if (done < 0)
        usleep(1000);
      else
        at += done;
    }
  }

  Job job;
  Listener listener;
  Socket peer;
  std::unique_ptr<Control> control;
};

TEST(Control, TakesSilenceForDeath) {
  Victim victim({20 * kMillisecond, 300 * kMillisecond});
  ASSERT_TRUE(victim.listener.awaitEnd());
  EXPECT_EQ(victim.listener.code, PENSTOCK_PEER_FAILED);
  EXPECT_EQ(victim.listener.sentence.rfind("no sign of life for 0.", 0), 0u)
      << victim.listener.sentence;
}

// On a host with too much to do. This process lives, as anyone can see.
TEST(Control, ForgivesSilenceOfOneThatLives) {
  Victim victim({20 * kMillisecond, 200 * kMillisecond});
  victim.control->setProcess(1, getpid());
  usleep(600000);
  EXPECT_EQ(victim.listener.code, -1);
  victim.control->setProcess(1, 0x7ffffff0); // there is none of that number
  ASSERT_TRUE(victim.listener.awaitEnd());
  EXPECT_EQ(victim.listener.code, PENSTOCK_PEER_FAILED);
}

std::string makeHeader(uint32_t length, uint16_t type) {
  std::string header(8, '\0');
  std::memcpy(header.data(), &length, 4);
  std::memcpy(header.data() + 4, &type, 2);
  return header;
}

TEST(Control, RefusesWhatIsNoMessage) {
  const std::string forged[] = {
      makeHeader(0, 99),                      // a type that there is not
      makeHeader(Control::kLargest + 1, 1),   // too long
      makeHeader(3, 2) + "abc",               // a failure that is cut
      makeHeader(17, 3) + std::string(17, 0), // an end, which rank 0 announces
  };
  for (const std::string &bytes : forged) {
    Victim victim;
    victim.send(bytes);
    ASSERT_TRUE(victim.listener.awaitEnd());
    EXPECT_EQ(victim.listener.sentence, "it sent what is no message");
    EXPECT_EQ(victim.listener.rank, 1);
  }
}

static int64_t getPeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) << 10;
}

// It ends, and never takes more memory than one message. PENSTOCK_FUZZ_SECONDS
// asks for more of it.
TEST(Control, SurvivesRandomBytes) {
  const char *seconds = std::getenv("PENSTOCK_FUZZ_SECONDS");
  int64_t end =
      nanoseconds() + (seconds ? std::atoll(seconds) : 3) * 1000 * kMillisecond;
  std::mt19937 random(11);
  [[maybe_unused]] int64_t peak = getPeakBytes();
  for (int round = 0; round < 4 || nanoseconds() < end; ++round) {
    Victim victim;
    std::string noise(1 + random() % 100000, '\0');
    for (char &byte : noise)
      byte = char(random());
    // Half of them begin like a message, but for a farewell, after which nobody
    // is missed.
    if (round % 2)
      noise = makeHeader(random() % 2000, random() % 4) + noise;
    victim.send(noise);
    victim.peer.close();
    ASSERT_TRUE(victim.listener.awaitEnd());
  }
#if !__has_feature(address_sanitizer)
  // The sanitizer keeps what was freed.
  EXPECT_LT(getPeakBytes() - peak, int64_t(4 * Control::kLargest));
#endif
}

//===----------------------------------------------------------------------===//
// How they meet.
//===----------------------------------------------------------------------===//

TEST(Meeting, BringsAllTogether) {
  Meeting meeting;
  ASSERT_FALSE(makeToken(meeting.token));
  Entrance entrance;
  ASSERT_FALSE(entrance.open(0, /*isLocal=*/true));
  ASSERT_FALSE(entrance.findAddresses(meeting.addresses));
  meeting.port = entrance.getPort();
  std::vector<Socket> sockets, others(3);
  std::vector<std::thread> threads;
  for (int rank : {2, 1})
    threads.emplace_back([&, rank] {
      Error error = visit(meeting, rank, 3, 10, others[rank]);
      EXPECT_FALSE(error) << error.text;
    });
  Error error = entrance.admit(meeting.token, 3, 10, sockets);
  EXPECT_FALSE(error) << error.text;
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_FALSE(sockets[0].isOpen());
  EXPECT_TRUE(sockets[1].isOpen() && sockets[2].isOpen());
  EXPECT_EQ(entrance.strangers, 0u);
}

// Without the token, with half a greeting, with nothing.
TEST(Meeting, KeepsStrangersOut) {
  Meeting meeting;
  ASSERT_FALSE(makeToken(meeting.token));
  Entrance entrance;
  ASSERT_FALSE(entrance.open(0, /*isLocal=*/true));
  ASSERT_FALSE(entrance.findAddresses(meeting.addresses));
  meeting.port = entrance.getPort();
  std::vector<Socket> sockets, strangers;
  for (size_t length : {40, 7, 0}) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(meeting.port);
    Socket &stranger =
        strangers.emplace_back(Socket(socket(AF_INET, SOCK_STREAM, 0)));
    ASSERT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr *>(&address),
                      sizeof(address)),
              0);
    std::string greeting(length, 'P');
    ASSERT_EQ(send(stranger.get(), greeting.data(), length, 0),
              ssize_t(length));
  }
  std::thread thread([&] {
    Socket own;
    usleep(100000);
    EXPECT_FALSE(visit(meeting, 1, 2, 10, own));
  });
  EXPECT_FALSE(entrance.admit(meeting.token, 2, 10, sockets));
  thread.join();
  EXPECT_GE(entrance.strangers, 1u);
}

TEST(Meeting, SaysWhoIsMissing) {
  Token token{};
  Entrance entrance;
  ASSERT_FALSE(entrance.open(0, /*isLocal=*/true));
  std::vector<Socket> sockets;
  Error error = entrance.admit(token, 4, 0.2, sockets);
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  EXPECT_EQ(error.text.rfind("ranks 1, 2 and 3 did not come to port ", 0), 0u)
      << error.text;
  EXPECT_NE(error.text.find("within 0.2 s (--start-timeout)"),
            std::string::npos);

  // And nobody is there to be found.
  Meeting meeting;
  meeting.addresses = {"127.0.0.1"};
  meeting.port = entrance.getPort();
  entrance = Entrance();
  Socket socket;
  error = visit(meeting, 1, 2, 0.2, socket);
  EXPECT_EQ(error.text.rfind("rank 1 found no rank 0 at port ", 0), 0u)
      << error.text;
}

TEST(Meeting, RefusesTheSameRankTwice) {
  Meeting meeting;
  Entrance entrance;
  ASSERT_FALSE(entrance.open(0, /*isLocal=*/true));
  ASSERT_FALSE(entrance.findAddresses(meeting.addresses));
  meeting.port = entrance.getPort();
  std::vector<std::thread> threads;
  std::vector<Socket> own(2), sockets;
  for (int i : {0, 1})
    threads.emplace_back([&, i] { (void)visit(meeting, 1, 3, 2, own[i]); });
  Error error = entrance.admit(meeting.token, 3, 10, sockets);
  EXPECT_EQ(error.text, "a process says that it is rank 1 of 3, and there are "
                        "3 with one of each number");
  for (std::thread &thread : threads)
    thread.join();
}

constexpr int kNoNamespaces = 77;

/// Looks for rank 0, which is not there, where the port that is tried is one of
/// two that a socket can get.
int visitAmongTwoPorts() {
  if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return kNoNamespaces;
  int socketForLinks = socket(AF_INET, SOCK_DGRAM, 0);
  ifreq link = {};
  std::strcpy(link.ifr_name, "lo");
  link.ifr_flags = IFF_UP;
  FILE *range = std::fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");
  if (ioctl(socketForLinks, SIOCSIFFLAGS, &link) != 0 || !range ||
      std::fputs("40000 40001", range) < 0 || std::fclose(range) != 0)
    return kNoNamespaces;
  Meeting meeting;
  meeting.addresses = {"127.0.0.1"};
  meeting.port = 40000;
  Socket found;
  Error error = visit(meeting, 1, 2, 1, found);
  return error.text.rfind("rank 1 found no rank 0 at port 40000", 0) != 0;
}

// A socket that connects to its own port is no rank 0, though what it answers
// is what it was told.
TEST(Meeting, IsNotWithOneself) {
  pid_t child = fork();
  if (child == 0)
    _exit(visitAmongTwoPorts());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespaces)
    GTEST_SKIP() << "no network namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Meeting, SaysThatAPortIsTaken) {
  Entrance first, second;
  ASSERT_FALSE(first.open(0, /*isLocal=*/true));
  Error error = second.open(first.getPort(), /*isLocal=*/true);
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  EXPECT_NE(error.text.find("is in use"), std::string::npos) << error.text;
}

} // namespace
