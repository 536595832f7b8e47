//===- MetricsServer.cpp - The metrics of a run for a monitor -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread, few clients at a time, each with a deadline and a largest
// request.
//===----------------------------------------------------------------------===//

#include "runtime/observe/MetricsServer.h"

#include "runtime/support/ThreadName.h"
#include "runtime/support/Wait.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

using namespace penstock::runtime;

constexpr size_t kMostClients = 16, kMostRequestBytes = 8192;
constexpr int64_t kClientPatience = 5000000000; // nanoseconds

struct MetricsServer::Client {
  int socket;
  int64_t deadline;
  std::string request, response;
  size_t written = 0;
};

MetricsServer::~MetricsServer() {
  if (thread.joinable()) {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t done = write(stopper, &one, sizeof(one));
    thread.join();
  }
  for (int descriptor : {listener, stopper})
    if (descriptor >= 0)
      close(descriptor);
}

Error MetricsServer::open(const std::string &address, int64_t wanted) {
  auto failed = [&](int reason) {
    return userError("--metrics-port: cannot listen on port %lld of %s: %s; "
                     "choose another port, or 0 for one that is free",
                     (long long)wanted, address.c_str(), std::strerror(reason));
  };
  // 1. The address.
  sockaddr_storage name = {};
  socklen_t length = sizeof(sockaddr_in);
  auto *v4 = reinterpret_cast<sockaddr_in *>(&name);
  auto *v6 = reinterpret_cast<sockaddr_in6 *>(&name);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(uint16_t(wanted));
  } else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(uint16_t(wanted));
    length = sizeof(sockaddr_in6);
  } else {
    return userError("--metrics-address: '%s' is no address of this host, as "
                     "127.0.0.1 or 0.0.0.0",
                     address.c_str());
  }

  // 2. The port.
  int one = 1;
  auto *plain = reinterpret_cast<sockaddr *>(&name);
  listener =
      socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  stopper = eventfd(0, EFD_CLOEXEC);
  if (listener < 0 || stopper < 0 ||
      setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
      bind(listener, plain, length) != 0 || listen(listener, 16) != 0 ||
      getsockname(listener, plain, &length) != 0) {
    int reason = errno;
    if (listener >= 0)
      close(listener);
    listener = -1;
    return failed(reason);
  }
  port = ntohs(name.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
  thread = std::thread([this] { loop(); });
  return {};
}

void MetricsServer::publish(std::string next) {
  std::lock_guard<std::mutex> lock(mutex);
  text = std::move(next);
}

std::string MetricsServer::answer(const std::string &request) {
  const char *status = "200 OK", *type = "text/plain; version=0.0.4";
  std::string body;
  std::string line = request.substr(0, request.find_first_of("\r\n"));
  bool isGet = line.starts_with("GET "), isHead = line.starts_with("HEAD ");
  size_t begin = line.find(' ') + 1;
  std::string path =
      line.substr(begin, line.find_first_of(" ?", begin) - begin);
  if (!isGet && !isHead) {
    status = "405 Method Not Allowed";
    body = "only GET\n";
  } else if (path != "/metrics") {
    status = "404 Not Found";
    body = "only /metrics\n";
  } else {
    std::lock_guard<std::mutex> lock(mutex);
    body = text;
  }
  std::string head =
      format("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n",
             status, type, body.size());
  return isHead ? head : head + body;
}

/// False where the client is done with, or not worth waiting for.
bool MetricsServer::advance(Client &client) {
  while (client.response.empty()) {
    char buffer[2048];
    ssize_t done = recv(client.socket, buffer, sizeof(buffer), 0);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return errno == EAGAIN;
    if (done == 0)
      return false;
    client.request.append(buffer, size_t(done));
    if (client.request.find("\r\n\r\n") != std::string::npos ||
        client.request.find("\n\n") != std::string::npos)
      client.response = answer(client.request);
    else if (client.request.size() > kMostRequestBytes)
      return false;
  }
  while (client.written < client.response.size()) {
    ssize_t done = send(client.socket, client.response.data() + client.written,
                        client.response.size() - client.written, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return errno == EAGAIN;
    client.written += size_t(done);
  }
  shutdown(client.socket, SHUT_WR);
  return false;
}

void MetricsServer::loop() {
  nameThread("metrics");
  std::vector<Client> clients;
  while (true) {
    // 1. Until something happens.
    std::vector<pollfd> waits = {
        {stopper, POLLIN, 0},
        {clients.size() < kMostClients ? listener : -1, POLLIN, 0}};
    int timeout = -1;
    for (const Client &client : clients) {
      waits.push_back({client.socket,
                       short(client.response.empty() ? POLLIN : POLLOUT), 0});
      timeout = 1000;
    }
    if (poll(waits.data(), waits.size(), timeout) < 0 && errno != EINTR)
      break;
    if (waits[0].revents)
      break;

    // 2. Those that are here.
    int64_t now = nanoseconds();
    std::vector<Client> left;
    for (size_t i = 0; i < clients.size(); ++i) {
      bool stays = clients[i].deadline > now &&
                   (!waits[i + 2].revents || advance(clients[i]));
      if (stays)
        left.push_back(std::move(clients[i]));
      else
        close(clients[i].socket);
    }
    clients = std::move(left);

    // 3. One that comes.
    if (!waits[1].revents)
      continue;
    int socket =
        accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0)
      clients.push_back({socket, now + kClientPatience, "", ""});
  }
  for (const Client &client : clients)
    close(client.socket);
}
