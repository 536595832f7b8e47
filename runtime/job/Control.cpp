//===- Control.cpp - Life and death of processes --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The thread holds the lock while it moves bytes, which never blocks. Once a
// failure is known, nothing else counts: the others are told within a bounded
// time, and the process ends.
//===----------------------------------------------------------------------===//

#include "runtime/job/Control.h"

#include "runtime/job/Bytes.h"
#include "runtime/support/ThreadName.h"
#include "runtime/support/Wait.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <fstream>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace penstock::runtime;

constexpr int64_t kMillisecond = 1000000;
/// How many times the silence of a process may last that lives on this host.
constexpr int64_t kSilences = 10;
/// The time that a process may take to tell others that all is over.
constexpr int64_t kFarewell = 500 * kMillisecond;
/// The time that one that has failed waits, for rank 0 to say so first.
constexpr int64_t kLastWord = 1000 * kMillisecond;
/// The time that a process leaves one that says nothing to speak first.
constexpr int64_t kTimeToSpeak = 200 * kMillisecond;
/// A gap between two looks at the clock in which this process did not run.
constexpr int64_t kSuspension = 1000 * kMillisecond;

Control::Control(const Job &job, std::vector<Socket> sockets, Times times,
                 ControlListener &listener)
    : job(job), times(times), listener(listener), isSpeaker(job.rank <= 1) {
  int64_t now = nanoseconds();
  for (size_t rank = 0; rank < sockets.size(); ++rank) {
    if (!sockets[rank].isOpen())
      continue;
    auto &connection = connections.emplace_back(std::make_unique<Connection>());
    connection->socket = std::move(sockets[rank]);
    connection->rank = int(rank);
    connection->heard = now;
  }
  wakeUp = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  lastTick = now;
  thread = std::thread([this] { loop(); });
}

Control::~Control() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isStopping = true;
  }
  wake();
  thread.join();
  ::close(wakeUp);
}

void Control::wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t done = ::write(wakeUp, &one, sizeof(one));
}

std::string Control::frame(Type type, uint16_t tag, std::string_view bytes) {
  Header header = {uint32_t(bytes.size()), type, tag};
  std::string text;
  text.reserve(sizeof(header) + bytes.size());
  text.append(reinterpret_cast<const char *>(&header), sizeof(header));
  text.append(bytes);
  return text;
}

Control::Connection *Control::find(int rank) {
  for (auto &connection : connections)
    if (connection->rank == rank)
      return connection.get();
  return nullptr;
}

void Control::enqueue(Connection &connection, std::string frame) {
  if (!connection.socket.isOpen())
    return;
  connection.output.push_back(std::move(frame));
  // Most messages find room at once, and need no other thread.
  if (connection.output.size() == 1)
    write(connection);
  if (!connection.output.empty())
    wake();
}

void Control::send(int rank, uint16_t tag, std::string_view bytes) {
  std::string text = frame(Data, tag, bytes);
  std::lock_guard<std::mutex> lock(mutex);
  if (Connection *connection = find(rank))
    enqueue(*connection, std::move(text));
}

std::optional<std::string> Control::take(int rank, uint16_t tag) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto message = inbox.begin(); message != inbox.end(); ++message) {
    if (message->rank != rank || message->tag != tag)
      continue;
    std::string bytes = std::move(message->bytes);
    inbox.erase(message);
    return bytes;
  }
  return std::nullopt;
}

std::optional<std::string> Control::receive(int rank, uint16_t tag) {
  while (true) {
    std::optional<std::string> bytes = take(rank, tag);
    if (bytes)
      return bytes;
    std::unique_lock<std::mutex> lock(mutex);
    auto isThere = [&] {
      return isOver || std::any_of(inbox.begin(), inbox.end(), [&](auto &one) {
               return one.rank == rank && one.tag == tag;
             });
    };
    changed.wait(lock, isThere);
    if (isOver)
      return std::nullopt;
  }
}

void Control::wait(int64_t nanoseconds) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!isOver && inbox.empty())
    changed.wait_for(lock, std::chrono::nanoseconds(nanoseconds));
}

void Control::setProcess(int rank, int pid) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Connection *connection = find(rank))
    connection->pid = pid;
}

/// Returns true if a process of this host runs this executable and is neither
/// stopped nor dead.
static bool isAlive(int pid) {
  char own[PATH_MAX], other[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", own, sizeof(own));
  if (length < 0 ||
      readlink(format("/proc/%d/exe", pid).c_str(), other, sizeof(other)) !=
          length ||
      std::memcmp(own, other, length) != 0)
    return false;
  std::ifstream file(format("/proc/%d/stat", pid));
  std::string text;
  std::getline(file, text);
  // Behind the name, which may hold anything.
  size_t at = text.rfind(") ");
  return at != std::string::npos && std::strchr("RSD", text[at + 2]);
}

void Control::beatNow() {
  wantsBeat = true;
  wake();
}

std::string Control::getBeat(int rank) {
  std::lock_guard<std::mutex> lock(mutex);
  Connection *connection = find(rank);
  return connection ? connection->beat : "";
}

int64_t Control::getSilence(int rank) {
  std::lock_guard<std::mutex> lock(mutex);
  Connection *connection = find(rank);
  return connection ? nanoseconds() - connection->heard : 0;
}

void Control::fail(Failure failure) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!own) {
    failure.rank = job.rank;
    own = std::move(failure);
  }
  wake();
  changed.wait(lock, [&] { return isOver; });
}

std::optional<Control::RoundTrip> Control::visitRoot() {
  ByteWriter ping;
  {
    std::lock_guard<std::mutex> lock(mutex);
    enqueue(*find(0), frame(Ping, 0, ping.add(nanoseconds()).bytes));
  }
  std::optional<std::string> pong = receive(0, kPongTag);
  if (!pong)
    return std::nullopt;
  ByteReader reader(*pong);
  RoundTrip trip;
  trip.left = reader.take<int64_t>();
  trip.there = reader.take<int64_t>();
  trip.back = reader.take<int64_t>();
  return trip;
}

void Control::leave() {
  std::unique_lock<std::mutex> lock(mutex);
  auto haveAllLeft = [&] {
    return isOver || std::all_of(connections.begin(), connections.end(),
                                 [](auto &one) { return one->hasLeft; });
  };
  // Rank 0 is the last to say it.
  if (job.rank == 0)
    changed.wait(lock, haveAllLeft);
  for (auto &connection : connections)
    enqueue(*connection, frame(Bye, 0, ""));
  changed.wait(lock, haveAllLeft);
  if (job.rank == 0)
    flush(kFarewell);
}

void Control::waitForEnd(int rank) {
  std::unique_lock<std::mutex> lock(mutex);
  Connection *connection = find(rank);
  changed.wait(lock, [&] {
    return isOver || !connection || !connection->socket.isOpen();
  });
}

void Control::read(Connection &connection) {
  // As much as one turn may take, so that beats of others are heard.
  for (int i = 0; i < 64; ++i) {
    constexpr size_t kHead = sizeof(Header);
    bool isHead = connection.filled < kHead;
    char *to = isHead ? reinterpret_cast<char *>(&connection.header) +
                            connection.filled
                      : connection.payload.data() + connection.filled - kHead;
    size_t room = isHead
                      ? kHead - connection.filled
                      : kHead + connection.payload.size() - connection.filled;
    ssize_t done = ::recv(connection.socket.get(), to, room, 0);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0 && errno == EAGAIN)
      return;
    if (done <= 0)
      return lose(connection, "connection closed");
    connection.heard = nanoseconds();
    connection.filled += done;
    if (isHead && connection.filled == kHead) {
      const Header &header = connection.header;
      if (header.type >= kTypes || header.length > kLargest)
        return lose(connection, "it sent what is no message");
      connection.payload.resize(header.length);
    }
    if (connection.filled < kHead ||
        connection.filled < kHead + connection.payload.size())
      continue;
    connection.filled = 0;
    if (!handle(connection))
      return;
  }
}

/// False when the connection is of no use any more.
bool Control::handle(Connection &connection) {
  switch (connection.header.type) {
  case Beat:
    connection.beat = std::move(connection.payload);
    break;
  case Data:
    inbox.push_back({connection.rank, connection.header.tag,
                     std::move(connection.payload)});
    changed.notify_all();
    break;
  case Bye:
    connection.hasLeft = true;
    changed.notify_all();
    break;
  case Ping: {
    ByteWriter answer;
    answer.bytes = connection.payload;
    enqueue(connection, frame(Pong, 0, answer.add(nanoseconds()).bytes));
    break;
  }
  case Pong: {
    ByteWriter trip;
    trip.bytes = std::move(connection.payload);
    inbox.push_back({connection.rank, kPongTag,
                     std::move(trip.add(connection.heard).bytes)});
    changed.notify_all();
    break;
  }
  case Failed:
  case End: {
    // Rank 0 hears of failures, and tells all others of the end.
    ByteReader reader(connection.payload);
    Failure failure;
    failure.rank = reader.take<int32_t>();
    failure.code = reader.take<int32_t>();
    failure.isLost = reader.take<uint8_t>();
    failure.sentence = reader.takeText();
    bool isRight = reader.isComplete() &&
                   (connection.header.type == End) == (job.rank != 0) &&
                   (job.rank != 0 || failure.rank == connection.rank);
    if (!isRight) {
      lose(connection, "it sent what is no message");
      return false;
    }
    if (!isOver) {
      if (job.rank == 0) {
        endAll(std::move(failure));
      } else {
        isOver = true;
        changed.notify_all();
        listener.end(failure.code, failure.rank == job.rank);
      }
    }
    return false;
  }
  }
  connection.payload.clear();
  return true;
}

void Control::write(Connection &connection) {
  while (!connection.output.empty() && connection.socket.isOpen()) {
    const std::string &first = connection.output.front();
    ssize_t done =
        ::send(connection.socket.get(), first.data() + connection.written,
               first.size() - connection.written, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR)
      continue;
    // What is broken is seen when it is read.
    if (done <= 0)
      return;
    connection.written += done;
    if (connection.written < first.size())
      return;
    connection.output.pop_front();
    connection.written = 0;
  }
}

/// Writes what is there to be written, in a bounded time.
void Control::flush(int64_t limit) {
  int64_t deadline = nanoseconds() + limit;
  while (nanoseconds() < deadline) {
    std::vector<pollfd> polls;
    for (auto &connection : connections) {
      write(*connection);
      if (connection->socket.isOpen() && !connection->output.empty())
        polls.push_back({connection->socket.get(), POLLOUT, 0});
    }
    if (polls.empty())
      return;
    ::poll(polls.data(), polls.size(), 10);
  }
}

void Control::lose(Connection &connection, std::string sentence) {
  connection.socket.close();
  connection.output.clear();
  changed.notify_all();
  // One that fails itself blames nobody.
  if (connection.hasLeft || isOver || (own && job.rank != 0))
    return;
  // Others may have ended without one that stood still.
  if (suspension)
    return endAll({job.rank, PENSTOCK_PEER_FAILED, /*isLost=*/false,
                   format("this process stood still for %.1f s, and the others "
                          "did not wait for it",
                          double(suspension) * 1e-9)});
  endAll({connection.rank, PENSTOCK_PEER_FAILED, /*isLost=*/true,
          std::move(sentence)});
}

/// Rank 0 tells all. Others, who have lost rank 0, know that all have. Whoever
/// speaks does it first: the launcher may end it as soon as another one ends.
void Control::endAll(Failure failure) {
  if (isOver)
    return;
  isOver = true;
  // 1. Rank 0 speaks; if that is what is lost, the first of every host does.
  if (isSpeaker) {
    std::vector<std::string> beats(job.size);
    for (auto &connection : connections)
      beats[connection->rank] = connection->beat;
    listener.report(failure, beats);
  } else {
    usleep(kTimeToSpeak / 1000);
  }

  // 2. The others.
  ByteWriter writer;
  writer.add(int32_t(failure.rank)).add(int32_t(failure.code));
  writer.add(uint8_t(failure.isLost)).addText(failure.sentence);
  if (job.rank == 0)
    for (auto &connection : connections) {
      if (!connection->socket.isOpen())
        continue;
      // What has not begun to leave has no more use.
      auto &output = connection->output;
      output.erase(output.begin() + (connection->written > 0), output.end());
      output.push_back(frame(End, 0, writer.bytes));
    }
  flush(kFarewell);
  changed.notify_all();
  listener.end(failure.code, failure.rank == job.rank);
}

void Control::pollOnce() {
  // 1. Wait for something, at most until the next beat.
  std::vector<pollfd> polls;
  std::vector<Connection *> polled;
  {
    std::lock_guard<std::mutex> lock(mutex);
    polls.push_back({wakeUp, POLLIN, 0});
    for (auto &connection : connections) {
      if (!connection->socket.isOpen())
        continue;
      short events = connection->output.empty() ? POLLIN : POLLIN | POLLOUT;
      polls.push_back({connection->socket.get(), events, 0});
      polled.push_back(connection.get());
    }
  }
  int64_t now = nanoseconds(), next = lastBeat + times.beat;
  int milliseconds =
      int(std::clamp<int64_t>((next - now) / kMillisecond + 1, 0, 250));
  ::poll(polls.data(), polls.size(), milliseconds);
  if (polls[0].revents) {
    uint64_t count;
    [[maybe_unused]] ssize_t done = ::read(wakeUp, &count, sizeof(count));
  }

  // 2. Nobody is blamed for the time in which this process stood still.
  now = nanoseconds();
  suspension = now - lastTick > kSuspension ? now - lastTick : 0;
  lastTick = now;
  bool isBeat = wantsBeat.exchange(false) || now - lastBeat >= times.beat;
  std::string beat;
  if (isBeat) {
    lastBeat = now;
    beat = listener.makeBeat();
  }

  // 3. Messages and beats.
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < polled.size(); ++i) {
    if (isOver)
      return;
    if (suspension)
      polled[i]->heard = now;
    if (polls[i + 1].revents & POLLOUT)
      write(*polled[i]);
    if (polls[i + 1].revents & ~POLLOUT)
      read(*polled[i]);
  }
  for (auto &connection : connections) {
    if (isOver || !isBeat || !connection->socket.isOpen())
      continue;
    // One that takes nothing gets no second beat.
    if (connection->output.empty())
      enqueue(*connection, frame(Beat, 0, beat));
    int64_t silence = now - connection->heard;
    bool isLong = times.silence && silence > times.silence &&
                  (silence > kSilences * times.silence || !connection->pid ||
                   !isAlive(connection->pid));
    if (isLong && !connection->hasLeft)
      lose(*connection, format("no sign of life for %.1f s (--peer-timeout)",
                               double(silence) * 1e-9));
  }

  // 4. A failure of this process.
  if (!own || isOver)
    return;
  if (job.rank == 0)
    return endAll(*own);
  ByteWriter writer;
  writer.add(int32_t(own->rank)).add(int32_t(own->code));
  writer.add(uint8_t(own->isLost)).addText(own->sentence);
  for (auto &connection : connections)
    connection->output.push_back(frame(Failed, 0, writer.bytes));
  flush(kFarewell);
  // Rank 0 knows where all others are; it says so before this one ends, which
  // makes the launcher end them.
  int64_t deadline = nanoseconds() + kLastWord;
  while (!isOver && nanoseconds() < deadline &&
         connections[0]->socket.isOpen()) {
    pollfd poll = {connections[0]->socket.get(), POLLIN, 0};
    ::poll(&poll, 1, 10);
    read(*connections[0]);
  }
  if (isOver)
    return;
  isOver = true;
  changed.notify_all();
  listener.end(own->code, /*isOwn=*/true);
}

void Control::loop() {
  nameThread("control");
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (isStopping || isOver)
        break;
    }
    pollOnce();
  }
}
