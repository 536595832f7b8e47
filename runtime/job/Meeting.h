//===- Meeting.h - How processes find each other ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All others connect to rank 0. Whoever does not begin with the token of the
// run is a stranger, and is not listened to.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_MEETING_H
#define PENSTOCK_RUNTIME_JOB_MEETING_H

#include "runtime/support/Error.h"

#include <array>
#include <cstdint>
#include <vector>

namespace penstock::runtime {

/// The version of the messages between processes.
inline constexpr uint32_t kControlVersion = 1;

using Token = std::array<uint8_t, 16>;

/// An open socket, closed with the object.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor(descriptor) {}
  Socket(Socket &&other);
  Socket &operator=(Socket &&other);
  ~Socket();

  int get() const { return descriptor; }
  bool isOpen() const { return descriptor >= 0; }
  void close();

private:
  int descriptor = -1;
};

/// Where rank 0 is, and the token of the run.
struct Meeting {
  std::string host;
  std::vector<std::string> addresses; // to be tried in this order
  uint16_t port = 0;
  Token token{};
};

/// Fills a token with chance.
Error makeToken(Token &token);

/// The name of this host.
std::string getHostName();

/// Where rank 0 waits.
class Entrance {
public:
  /// Listens, on a port that the system chooses if it is 0; with `isLocal` for
  /// processes of this host alone.
  Error open(uint16_t port, bool isLocal);
  uint16_t getPort() const { return port; }
  /// The addresses of this host, of the interface PENSTOCK_INTERFACE if that is
  /// set.
  Error findAddresses(std::vector<std::string> &addresses) const;

  /// Returns a socket for every other rank, by rank; fails where some are
  /// missing after so many seconds.
  Error admit(const Token &token, int size, double seconds,
              std::vector<Socket> &sockets);

  /// Connections without the token.
  uint64_t strangers = 0;

private:
  Socket socket;
  uint16_t port = 0;
  bool isLocal = false;
};

/// Connects rank `rank` of `size` to rank 0, within so many seconds.
Error visit(const Meeting &meeting, int rank, int size, double seconds,
            Socket &socket);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_MEETING_H
