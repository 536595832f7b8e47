//===- Meeting.cpp - How processes find each other ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 looks at all that knock at once, so that one that says nothing keeps
// nobody waiting. A greeting has a fixed length.
//===----------------------------------------------------------------------===//

#include "runtime/job/Meeting.h"

#include "runtime/support/Wait.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

using namespace penstock::runtime;

namespace {

constexpr char kMagic[8] = {'P', 'E', 'N', 'S', 'T', 'O', 'C', 'K'};
constexpr int64_t kSecond = 1000000000;
/// How long one address is tried, and a guest may take to greet.
constexpr int64_t kGuestPatience = 2 * kSecond;
/// Guests that have not greeted yet.
constexpr size_t kMostGuests = 256;

struct Greeting {
  char magic[8];
  uint32_t version, rank, size, reserved;
  Token token;
};
static_assert(sizeof(Greeting) == 40);

struct Answer {
  char magic[8];
  uint32_t version, isAdmitted;
};
static_assert(sizeof(Answer) == 16);

struct Guest {
  Socket socket;
  int64_t deadline;
  size_t filled = 0;
  Greeting greeting;
};

int64_t deadlineIn(double seconds) {
  return nanoseconds() + int64_t(seconds * 1e9);
}

int millisecondsUntil(int64_t deadline) {
  return int(
      std::clamp<int64_t>((deadline - nanoseconds()) / 1000000 + 1, 0, 100));
}

bool wait(int descriptor, short events, int64_t deadline) {
  while (nanoseconds() < deadline) {
    pollfd poll = {descriptor, events, 0};
    if (::poll(&poll, 1, millisecondsUntil(deadline)) > 0)
      return true;
  }
  return false;
}

void setNoDelay(int descriptor) {
  int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/// Sends or receives all of it; small, so that a wait is rare.
bool transfer(int descriptor, void *data, size_t size, bool sends,
              int64_t deadline) {
  char *bytes = static_cast<char *>(data);
  while (size) {
    ssize_t done = sends ? ::send(descriptor, bytes, size, MSG_NOSIGNAL)
                         : ::recv(descriptor, bytes, size, 0);
    if (done > 0) {
      bytes += done;
      size -= done;
      continue;
    }
    if (done == 0 && !sends)
      return false;
    if (errno == EINTR)
      continue;
    if (errno != EAGAIN ||
        !wait(descriptor, sends ? POLLOUT : POLLIN, deadline))
      return false;
  }
  return true;
}

/// "rank 2", "ranks 1, 2 and 5".
std::string listRanks(const std::vector<int> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  constexpr size_t kMost = 8;
  for (size_t i = 0; i < std::min(ranks.size(), kMost); ++i)
    text += format(i == 0                  ? "%d"
                   : i + 1 == ranks.size() ? " and %d"
                                           : ", %d",
                   ranks[i]);
  if (ranks.size() > kMost)
    text += format(" and %zu more", ranks.size() - kMost);
  return text;
}

/// Returns whether both ends of a connection are this socket: where nobody
/// listens, the system may choose the port that is tried as the one of the
/// caller.
bool isWithItself(const Socket &socket) {
  sockaddr_storage own = {}, other = {};
  socklen_t ownLength = sizeof(own), otherLength = sizeof(other);
  auto toAddress = [](sockaddr_storage &address) {
    return reinterpret_cast<sockaddr *>(&address);
  };
  return getsockname(socket.get(), toAddress(own), &ownLength) == 0 &&
         getpeername(socket.get(), toAddress(other), &otherLength) == 0 &&
         ownLength == otherLength && std::memcmp(&own, &other, ownLength) == 0;
}

/// Connects to one address, in a limited time.
bool connectTo(const addrinfo &address, int64_t deadline, Socket &socket) {
  deadline = std::min(deadline, nanoseconds() + kGuestPatience);
  socket = Socket(::socket(address.ai_family,
                           SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.isOpen())
    return false;
  // Whatever port it gets stays free for rank 0 to listen on.
  int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS)
      return false;
    if (!wait(socket.get(), POLLOUT, deadline)) {
      errno = ETIMEDOUT;
      return false;
    }
    int reason = 0;
    socklen_t length = sizeof(reason);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &length);
    if (reason != 0) {
      errno = reason;
      return false;
    }
  }
  if (isWithItself(socket)) {
    errno = ECONNREFUSED;
    return false;
  }
  setNoDelay(socket.get());
  return true;
}

} // namespace

Socket::Socket(Socket &&other)
    : descriptor(std::exchange(other.descriptor, -1)) {}

Socket &Socket::operator=(Socket &&other) {
  std::swap(descriptor, other.descriptor);
  return *this;
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (descriptor >= 0)
    ::close(std::exchange(descriptor, -1));
}

Error penstock::runtime::makeToken(Token &token) {
  if (getrandom(token.data(), token.size(), 0) != ssize_t(token.size()))
    return defect("the system gives no random numbers: %s",
                  std::strerror(errno));
  return {};
}

std::string penstock::runtime::getHostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  // As people say it.
  return std::string(name).substr(0, std::strcspn(name, "."));
}

Error Entrance::open(uint16_t wanted, bool local) {
  isLocal = local;
  auto listenAt = [&](auto address, int family) {
    socket =
        Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int yes = 1, no = 0;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (family == AF_INET6)
      setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    socklen_t length = sizeof(address);
    return socket.isOpen() &&
           bind(socket.get(), reinterpret_cast<sockaddr *>(&address), length) ==
               0 &&
           listen(socket.get(), 1024) == 0 &&
           getsockname(socket.get(), reinterpret_cast<sockaddr *>(&address),
                       &length) == 0;
  };
  sockaddr_in6 any = {};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_any;
  any.sin6_port = htons(wanted);
  sockaddr_in old = {};
  old.sin_family = AF_INET;
  old.sin_addr.s_addr = htonl(isLocal ? INADDR_LOOPBACK : INADDR_ANY);
  old.sin_port = htons(wanted);
  // Machines without IPv6 are left with the older one.
  bool isOpen = !isLocal && listenAt(any, AF_INET6);
  if (!isOpen && (isLocal || errno != EADDRINUSE))
    isOpen = listenAt(old, AF_INET);
  if (!isOpen && errno == EADDRINUSE)
    return userError("port %u of this host is in use; choose another by "
                     "PENSTOCK_PORT or MASTER_PORT",
                     wanted);
  if (!isOpen)
    return userError("cannot listen on port %u: %s", wanted,
                     std::strerror(errno));
  sockaddr_storage bound = {};
  socklen_t length = sizeof(bound);
  getsockname(socket.get(), reinterpret_cast<sockaddr *>(&bound), &length);
  port = ntohs(bound.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6 &>(bound).sin6_port
                   : reinterpret_cast<sockaddr_in &>(bound).sin_port);
  return {};
}

Error Entrance::findAddresses(std::vector<std::string> &addresses) const {
  addresses.clear();
  if (isLocal) {
    addresses.push_back("127.0.0.1");
    return {};
  }
  const char *interface = std::getenv("PENSTOCK_INTERFACE");
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0)
    return userError("cannot list the network interfaces: %s",
                     std::strerror(errno));
  for (const ifaddrs *one = all; one; one = one->ifa_next) {
    char text[INET6_ADDRSTRLEN] = "";
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) ||
        (interface ? std::strcmp(one->ifa_name, interface) != 0
                   : (one->ifa_flags & IFF_LOOPBACK) != 0))
      continue;
    if (one->ifa_addr->sa_family == AF_INET)
      inet_ntop(AF_INET,
                &reinterpret_cast<sockaddr_in *>(one->ifa_addr)->sin_addr, text,
                sizeof(text));
    auto *six = reinterpret_cast<sockaddr_in6 *>(one->ifa_addr);
    // An address of a link means nothing elsewhere.
    if (one->ifa_addr->sa_family == AF_INET6 &&
        !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
      inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
    if (*text)
      addresses.push_back(text);
  }
  freeifaddrs(all);
  if (addresses.empty() && interface)
    return userError("PENSTOCK_INTERFACE: this host has no interface '%s' "
                     "with an address",
                     interface);
  return {};
}

Error Entrance::admit(const Token &token, int size, double seconds,
                      std::vector<Socket> &sockets) {
  int64_t deadline = deadlineIn(seconds);
  sockets.clear();
  sockets.resize(size);
  std::vector<Guest> guests;
  for (int missing = size - 1; missing > 0;) {
    // 1. Wait for someone.
    int64_t now = nanoseconds();
    if (now >= deadline) {
      std::vector<int> absent;
      for (int rank = 1; rank < size; ++rank)
        if (!sockets[rank].isOpen())
          absent.push_back(rank);
      std::string text = listRanks(absent);
      if (strangers)
        text += format(" (and %llu connections without the token of this run)",
                       (unsigned long long)strangers);
      return userError("%s did not come to port %u of %s within %g s "
                       "(--start-timeout)",
                       text.c_str(), port, getHostName().c_str(), seconds);
    }
    std::vector<pollfd> polls;
    for (const Guest &guest : guests)
      polls.push_back({guest.socket.get(), POLLIN, 0});
    if (guests.size() < kMostGuests)
      polls.push_back({socket.get(), POLLIN, 0});
    poll(polls.data(), polls.size(), millisecondsUntil(deadline));

    // 2. What guests say.
    for (Guest &guest : guests) {
      while (guest.filled < sizeof(Greeting)) {
        ssize_t done =
            recv(guest.socket.get(),
                 reinterpret_cast<char *>(&guest.greeting) + guest.filled,
                 sizeof(Greeting) - guest.filled, 0);
        if (done < 0 && errno == EINTR)
          continue;
        bool isLater = done < 0 && errno == EAGAIN;
        if (done <= 0) {
          if (!isLater || nanoseconds() > guest.deadline) {
            guest.socket.close();
            ++strangers;
          }
          break;
        }
        guest.filled += done;
      }
      if (!guest.socket.isOpen() || guest.filled < sizeof(Greeting))
        continue;
      const Greeting &greeting = guest.greeting;
      if (std::memcmp(greeting.magic, kMagic, sizeof(kMagic)) != 0 ||
          greeting.token != token) {
        guest.socket.close();
        ++strangers;
        continue;
      }
      bool isAdmitted = greeting.version == kControlVersion &&
                        int64_t(greeting.size) == size && greeting.rank > 0 &&
                        int64_t(greeting.rank) < size &&
                        !sockets[greeting.rank].isOpen();
      Answer answer = {{}, kControlVersion, isAdmitted};
      std::memcpy(answer.magic, kMagic, sizeof(kMagic));
      transfer(guest.socket.get(), &answer, sizeof(answer), /*sends=*/true,
               nanoseconds() + kGuestPatience);
      if (greeting.version != kControlVersion)
        return userError("rank %u speaks version %u of the control protocol, "
                         "rank 0 version %u; start one executable",
                         greeting.rank, greeting.version, kControlVersion);
      if (!isAdmitted)
        return userError("a process says that it is rank %u of %u, and there "
                         "are %d with one of each number",
                         greeting.rank, greeting.size, size);
      setNoDelay(guest.socket.get());
      sockets[greeting.rank] = std::move(guest.socket);
      --missing;
    }
    std::erase_if(guests,
                  [](const Guest &guest) { return !guest.socket.isOpen(); });

    // 3. Those at the door.
    while (guests.size() < kMostGuests) {
      Socket guest(accept4(socket.get(), nullptr, nullptr,
                           SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!guest.isOpen())
        break;
      guests.push_back(
          {std::move(guest), nanoseconds() + kGuestPatience, 0, {}});
    }
  }
  return {};
}

Error penstock::runtime::visit(const Meeting &meeting, int rank, int size,
                               double seconds, Socket &socket) {
  int64_t deadline = deadlineIn(seconds);
  std::vector<std::string> addresses = meeting.addresses;
  if (meeting.host == getHostName())
    addresses.insert(addresses.begin(), "127.0.0.1");
  std::string reason = "no address";
  while (nanoseconds() < deadline) {
    for (const std::string &name : addresses) {
      addrinfo hints = {}, *found = nullptr;
      hints.ai_socktype = SOCK_STREAM;
      int status = getaddrinfo(
          name.c_str(), std::to_string(meeting.port).c_str(), &hints, &found);
      if (status != 0) {
        reason = format("'%s': %s", name.c_str(), gai_strerror(status));
        continue;
      }
      bool isConnected = false;
      for (const addrinfo *one = found; one && !isConnected; one = one->ai_next)
        isConnected = connectTo(*one, deadline, socket);
      if (!isConnected)
        reason = format("'%s': %s", name.c_str(), std::strerror(errno));
      freeaddrinfo(found);
      if (!isConnected)
        continue;

      Greeting greeting = {{}, kControlVersion, uint32_t(rank), uint32_t(size),
                           0,  meeting.token};
      std::memcpy(greeting.magic, kMagic, sizeof(kMagic));
      Answer answer = {};
      bool isAnswered = transfer(socket.get(), &greeting, sizeof(greeting),
                                 /*sends=*/true, deadline) &&
                        transfer(socket.get(), &answer, sizeof(answer),
                                 /*sends=*/false, deadline) &&
                        std::memcmp(answer.magic, kMagic, 8) == 0;
      if (isAnswered && answer.isAdmitted)
        return {};
      if (isAnswered)
        return userError("rank 0 did not admit this process as rank %d of %d",
                         rank, size);
      reason = format("'%s' is not rank 0 of this run", name.c_str());
      socket.close();
    }
    usleep(50000);
  }
  return userError("rank %d found no rank 0 at port %u within %g s "
                   "(--start-timeout): %s",
                   rank, meeting.port, seconds, reason.c_str());
}
