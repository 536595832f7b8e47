//===- MonitorTest.cpp - What monitors get of a run -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of metrics and its server, files of events byte by byte, and a run
// that is asked while it is open.
//===----------------------------------------------------------------------===//

#include "LinearProgram.h"
#include "Session.h"
#include "runtime/observe/EventFile.h"
#include "runtime/observe/MetricTable.h"
#include "runtime/observe/MetricsServer.h"

#include <arpa/inet.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

using namespace penstock::test;
using namespace penstock::runtime;

namespace {

/// Returns the answer of a server to some bytes, until it closes the
/// connection.
std::string ask(int64_t port, const std::string &request) {
  int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(uint16_t(port));
  inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
  std::string answer;
  if (connect(client, reinterpret_cast<sockaddr *>(&name), sizeof(name)) == 0 &&
      send(client, request.data(), request.size(), 0) > 0) {
    char buffer[4096];
    for (ssize_t done; (done = recv(client, buffer, sizeof(buffer), 0)) > 0;)
      answer.append(buffer, size_t(done));
  }
  close(client);
  return answer;
}

TEST(Metrics, AreText) {
  MetricText text;
  text.add(Measure::Step, 12);
  text.add(Measure::Loss, NAN);
  text.add(Measure::MemoryBytes, 4096, {{"kind", "arena"}});
  text.add(Measure::MemoryBytes, 0, {{"kind", "a\"b\\c\nd"}});
  std::string all = text.take();
  EXPECT_TRUE(all.starts_with("# HELP penstock_step updates that are done\n"
                              "# TYPE penstock_step gauge\n"
                              "penstock_step 12\n"))
      << all;
  EXPECT_NE(all.find("\npenstock_loss NaN\n"), std::string::npos) << all;
  EXPECT_NE(all.find("\npenstock_memory_bytes{kind=\"arena\"} 4096\n"
                     "penstock_memory_bytes{kind=\"a\\\"b\\\\c\\nd\"} 0\n"),
            std::string::npos)
      << all;
  EXPECT_EQ(text.take(), "");
}

TEST(Metrics, StandInTheDocumentation) {
  std::string expected = "| metric | type | labels | |\n|---|---|---|---|\n";
  uint32_t index = 0;
  for (const MeasureKind &kind : listMeasures()) {
    EXPECT_EQ(uint32_t(kind.measure), index++) << kind.name;
    expected += std::string("| `penstock_") + kind.name + "` | " + kind.type +
                " | " + kind.labels + " | " + kind.help + " |\n";
  }
  std::string page = readText(PENSTOCK_SOURCE_DIR "/docs/metrics.md");
  EXPECT_NE(page.find("\n" + expected + "\n"), std::string::npos)
      << "docs/metrics.md should have:\n"
      << expected;
}

TEST(Metrics, AreServed) {
  MetricsServer server;
  ASSERT_FALSE(server.open("127.0.0.1", 0));
  server.publish("penstock_step 1\n");
  std::string answer = ask(server.getPort(), "GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n"
                                 "Content-Type: text/plain; version=0.0.4\r\n"
                                 "Content-Length: 16\r\n"))
      << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\npenstock_step 1\n")) << answer;
  EXPECT_TRUE(ask(server.getPort(), "GET /metrics?a=b HTTP/1.0\r\n\r\n")
                  .ends_with("penstock_step 1\n"));
  EXPECT_TRUE(ask(server.getPort(), "HEAD /metrics HTTP/1.1\r\n\r\n")
                  .ends_with("\r\n\r\n"));
  EXPECT_TRUE(ask(server.getPort(), "GET /else HTTP/1.1\r\n\r\n")
                  .starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask(server.getPort(), "POST /metrics HTTP/1.1\r\n\r\n")
                  .starts_with("HTTP/1.1 405 "));
  // No request, and one that never ends.
  EXPECT_EQ(ask(server.getPort(), std::string(20000, 'x')), "");

  MetricsServer second;
  Error error = second.open("127.0.0.1", server.getPort());
  EXPECT_EQ(error.text, "--metrics-port: cannot listen on port " +
                            std::to_string(server.getPort()) +
                            " of 127.0.0.1: Address already in use; choose "
                            "another port, or 0 for one that is free");
  EXPECT_EQ(MetricsServer().open("nowhere", 0).text,
            "--metrics-address: 'nowhere' is no address of this host, as "
            "127.0.0.1 or 0.0.0.0");
}

/// Records of a file of events, whose checksums are right.
std::vector<std::string> readEvents(const std::string &path) {
  auto mask = [](std::string_view bytes) {
    uint32_t value = crc32c(bytes);
    return (value >> 15 | value << 17) + 0xa282ead8u;
  };
  std::string text = readText(path);
  std::vector<std::string> events;
  for (size_t at = 0; at + 16 <= text.size();) {
    uint64_t length;
    uint32_t check;
    std::memcpy(&length, &text[at], 8);
    std::memcpy(&check, &text[at + 8], 4);
    EXPECT_EQ(check, mask(std::string_view(text).substr(at, 8)));
    events.push_back(text.substr(at + 12, length));
    std::memcpy(&check, &text[at + 12 + length], 4);
    EXPECT_EQ(check, mask(events.back()));
    at += 16 + length;
  }
  return events;
}

TEST(Events, AreRecordsOfMessages) {
  // The check value of the algorithm.
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  ScratchFolder folder;
  {
    EventFile file;
    ASSERT_FALSE(file.open(folder / "logs/run"));
    Scalar scalars[] = {{"loss", 0.5f}, {"device 0/busy", 1}};
    ASSERT_FALSE(file.add(300, 2.0, scalars));
    ASSERT_FALSE(file.flush());
  }
  std::vector<std::string> names = listFiles(folder);
  ASSERT_EQ(names.size(), 3u);
  EXPECT_TRUE(names[2].starts_with("logs/run/events.out.tfevents."));
  std::vector<std::string> events = readEvents(folder / names[2]);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[0].ends_with("\x1a\x0d"
                                  "brain.Event:2"));
  const char expected[] = "\x09\0\0\0\0\0\0\0\x40" // wall_time = 2
                          "\x10\xac\x02"           // step = 300
                          "\x2a\x23"               // summary
                          "\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f"
                          "\x0a\x14\x0a\x0d"
                          "device 0/busy\x15\0\0\x80\x3f";
  EXPECT_EQ(events[1], std::string(expected, sizeof(expected) - 1));
  writeText(folder / "file", "");
  EventFile file;
  EXPECT_EQ(file.open(folder / "file").text,
            "--tensorboard: '" + folder / "file" +
                "' is no folder, and cannot become one");
}

TEST(Run, IsWatched) {
  ScratchFolder folder;
  LinearProgram linear{folder.path};
  int64_t port = 0;
  {
    MetricsServer free;
    ASSERT_FALSE(free.open("127.0.0.1", 0));
    port = free.getPort();
  }
  Options options = {{"data", "x=" + linear.dataPath},
                     {"labels", linear.labelsPath},
                     {"metrics-port", std::to_string(port)},
                     {"tensorboard", folder / "events"}};
  std::string answer;
  {
    Session session(&linear, options);
    ASSERT_EQ(session.code, 0) << session.error();
    ASSERT_EQ(penstock_train(session.run, 5), 0) << session.error();
    penstock_results results;
    Session taken(&linear, options);
    EXPECT_EQ(taken.code, PENSTOCK_USER_ERROR);
    EXPECT_NE(taken.error().find("Address already in use"), std::string::npos);
    (void)results;
    answer = ask(port, "GET /metrics HTTP/1.1\r\n\r\n");
  }
  for (const char *line :
       {"\npenstock_step 5\n", "\npenstock_samples_total 60\n",
        "\npenstock_device_busy_ratio{device=\"1\",stages=\"1\",rank=\"0\"} ",
        "\npenstock_memory_bytes{kind=\"arena\"} "})
    EXPECT_NE(answer.find(line), std::string::npos) << line << answer;
  // A record for the version, and for each update.
  size_t records = 0;
  for (const std::string &name : listFiles(folder))
    if (name.starts_with("events/"))
      records += readEvents(folder / name).size();
  EXPECT_GE(records, 6u);
}

} // namespace
