//===- HandshakeTest.cpp - Processes that differ, or lie ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said of every difference, and records that are none.
//===----------------------------------------------------------------------===//

#include "runtime/job/Handshake.h"

#include <gtest/gtest.h>
#include <random>

using namespace penstock::runtime;

namespace {

Record makeRecord(const std::string &host) {
  Record record;
  record.host = host;
  record.facts = {{Fact::Executable, "", "abc"},
                  {Fact::Property, "CPU", "Zen"},
                  {Fact::Flag, "--seed", "1"},
                  {Fact::Flag, "--lr", ""}};
  record.files = {{"--data x", "x.npy", 60, "float32 (60, 4)", "d"}};
  record.cores = {0, 1, 5};
  record.threads = 2;
  return record;
}

class HandshakeTest : public testing::Test {
protected:
  std::vector<Record> records = {makeRecord("node3"), makeRecord("node7"),
                                 makeRecord("node7")};
  std::string refuse() {
    Error error = compare(records);
    EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
    return error.text;
  }
};

TEST_F(HandshakeTest, AcceptsEqualProcesses) {
  EXPECT_FALSE(compare(records));
  records[1].files.clear(); // reads none
  records[2].host = "node9";
  EXPECT_FALSE(compare(records));
}

TEST_F(HandshakeTest, NamesWhatDiffers) {
  records[2].facts[2].value = "2";
  EXPECT_EQ(refuse(), "--seed is 1 on rank 0 and 2 on rank 2; give all "
                      "processes the same");
  records[1].facts[3].value = "0.5";
  EXPECT_EQ(refuse(), "--lr is not given on rank 0 and 0.5 on rank 1; give all "
                      "processes the same");
  records[1].facts[1].value = "Golden Cove";
  EXPECT_EQ(refuse(),
            "rank 1 (host node7) has another CPU than rank 0 (host node3), so "
            "that bits could differ: Golden Cove, and Zen");
  records[1].facts[0].value = "other";
  EXPECT_EQ(refuse(),
            "rank 1 (host node7) runs another executable than rank 0 (host "
            "node3): copy it, or use a shared folder");
}

// Those of a host take their places in turn.
TEST_F(HandshakeTest, RefusesTwoOnOneGpu) {
  for (Record &record : records)
    record.places = {"GPU-0a", "GPU-0b"};
  EXPECT_FALSE(compare(records));
  records[2].places = {"GPU-0b", "GPU-0a"};
  EXPECT_EQ(refuse(),
            "rank 1 and rank 2 (host node7) would be on one GPU; give "
            "each its own, or start one process, whose devices may "
            "share it");
  records[2].places = {"GPU-0c"}; // all that it sees
  EXPECT_FALSE(compare(records));
  records[0].places = records[1].places = {"GPU-0a"}; // of other hosts
  EXPECT_FALSE(compare(records));
}

TEST_F(HandshakeTest, TakesOtherFactsForAnotherExecutable) {
  records[2].facts.pop_back();
  EXPECT_EQ(refuse(),
            "rank 2 (host node7) runs another executable than rank 0 (host "
            "node3): copy it, or use a shared folder");
}

TEST_F(HandshakeTest, NamesFilesThatDiffer) {
  records[2].files[0].checksum = "e";
  EXPECT_EQ(refuse(), "--data x: 'x.npy' holds other values on rank 2 (host "
                      "node7) than on rank 0 (host node3)");
  records[2].files[0].type = "float64 (60, 4)";
  EXPECT_EQ(refuse(), "--data x: 'x.npy' is float64 (60, 4) on rank 2 and "
                      "float32 (60, 4) on rank 0");
  records[2].files[0].samples = 50;
  EXPECT_EQ(refuse(), "--data x: 'x.npy' differs between rank 2 (50 samples) "
                      "and rank 0 (60)");
}

// Those who read one file each.
TEST_F(HandshakeTest, NamesFilesThatDoNotBelongTogether) {
  records[1].files.clear();
  records[2].files = {{"--labels", "y.npy", 50, "int64 (50,)", "l"}};
  EXPECT_EQ(refuse(), "'x.npy' has 60 samples (rank 0), 'y.npy' has 50 "
                      "(rank 2)");
  records[2].files[0].input = "--eval-labels";
  EXPECT_FALSE(compare(records));
}

TEST_F(HandshakeTest, SaysOnceWhatAllSay) {
  for (Record &record : records)
    record = {record.host, 0, PENSTOCK_USER_ERROR, "unknown flag", {}, {},
              {},          0};
  EXPECT_EQ(refuse(), "unknown flag");
  records[0].code = PENSTOCK_DONE;
  EXPECT_EQ(refuse(), "rank 1 (host node7): unknown flag");
  records[1].code = PENSTOCK_DOES_NOT_FIT;
  EXPECT_EQ(compare(records).code, PENSTOCK_DOES_NOT_FIT);
}

TEST_F(HandshakeTest, FindsNeighbors) {
  Job job;
  job.rank = 2;
  job.size = 3;
  findNeighbors(records, job);
  EXPECT_EQ(job.localRank, 1);
  EXPECT_EQ(job.localSize, 2);
  EXPECT_EQ(job.hosts, (std::vector<std::string>{"node3", "node7", "node7"}));
}

TEST_F(HandshakeTest, ReadsWhatItWrote) {
  Record again;
  ASSERT_TRUE(decode(encode(records[0]), again));
  EXPECT_EQ(again.host, "node3");
  EXPECT_EQ(again.facts, records[0].facts);
  EXPECT_EQ(again.files[0].samples, 60);
  EXPECT_EQ(again.cores, records[0].cores);
  EXPECT_EQ(again.threads, 2u);
  records[0].places = {"GPU-0a", ""};
  ASSERT_TRUE(decode(encode(records[0]), again));
  EXPECT_EQ(again.places, records[0].places);
}

// Cut anywhere, or with any byte changed: an answer, and no crash.
TEST_F(HandshakeTest, SurvivesForgedRecords) {
  std::string bytes = encode(records[0]);
  Record record;
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode(bytes.substr(0, length), record)) << length;
  EXPECT_FALSE(decode(bytes + "x", record));
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int value : {0, 1, 127, 255}) {
      std::string forged = bytes;
      forged[at] = char(value);
      if (decode(forged, record)) {
        records[1] = record;
        (void)compare(records);
      }
    }
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string noise(random() % 300, '\0');
    for (char &byte : noise)
      byte = char(random());
    if (noise.size() > 4)
      noise[0] = 2, noise[1] = noise[2] = noise[3] = 0;
    (void)decode(noise, record);
  }
}

TEST(JobTest, PlacesNeighborsTogether) {
  auto place = [](int size, uint32_t devices) {
    Job job;
    job.size = size;
    job.place(devices);
    return job.rankOfDevice;
  };
  EXPECT_EQ(place(1, 3), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(place(2, 4), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(place(2, 5), (std::vector<int>{0, 0, 1, 1, 1}));
  EXPECT_EQ(place(3, 4), (std::vector<int>{0, 1, 2, 2}));
  EXPECT_EQ(place(4, 4), (std::vector<int>{0, 1, 2, 3}));
}

} // namespace
