//===- ManifestTest.cpp - What a checkpoint says of itself ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Manifests and headers that are written, cut, changed and made up.
//===----------------------------------------------------------------------===//

#include "runtime/io/Manifest.h"
#include "penstock/checksum.h"
#include "runtime/io/Safetensors.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>

using namespace penstock::runtime;

namespace {

const std::string kSum(32, 'a');

Manifest makeManifest() {
  Manifest m;
  m.step = 500;
  m.samples = 12000;
  m.samplesPerUpdate = 24;
  m.samplesPerPass = 1416;
  m.microbatches = 8;
  m.seed = INT64_MAX;
  m.shuffle = true;
  m.rate = 0.1;
  m.method = "pipemare:decay=0.135353";
  m.schedule = "1f1b";
  m.optimizer = "sgd:lr=0.1,momentum=0.9";
  m.stages = 2;
  m.replicas = {2, 1};
  m.checkpointEvery = 100;
  m.segmentStarts = {0, 100, 200};
  m.model = std::string(64, '0');
  m.program = kSum;
  m.precision = "f32";
  m.data = {{"x", "float32", {1437, 64}, kSum}};
  m.files = {
      {"weights-00000.safetensors",
       4000,
       kSum,
       0,
       {{"fc \"1\"", "", PENSTOCK_F32, {7, 11}, 200, 308, kSum},
        {"mean", "", PENSTOCK_F64, {}, 508, 8, kSum}}},
      {"state-00000.safetensors",
       1000,
       kSum,
       0,
       {{"fc \"1\"", "momentum", PENSTOCK_F32, {7, 11}, 160, 308, kSum}}}};
  m.finishedAt = "2026-11-24T12:00:00Z";
  return m;
}

/// A manifest that is what it was but for one replaced text.
std::string problemWith(const std::string &from, const std::string &to) {
  std::string text = writeManifest(makeManifest());
  text.resize(text.rfind(",\n  \"manifest_xxh3\""));
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  Manifest manifest;
  return readManifest(sealManifest(text.replace(at, from.size(), to)),
                      manifest);
}

TEST(Manifest, ReadsWhatItWrites) {
  std::string text = writeManifest(makeManifest());
  Manifest again;
  ASSERT_EQ(readManifest(text, again), "");
  EXPECT_EQ(writeManifest(again), text);
  EXPECT_EQ(again.step, 500);
  EXPECT_EQ(again.files[1].tensors[0].kind, "momentum");
  EXPECT_EQ(fileNameOf(again.files[1].tensors[0]), "momentum:fc \"1\"");
  EXPECT_EQ(again.files[0].tensors[0].shape, (std::vector<int64_t>{7, 11}));
  EXPECT_EQ(countBytes(again), 5000u);
  EXPECT_EQ(writeIndex(again.files),
            "{\n  \"metadata\": {\"total_size\": 316},\n  \"weight_map\": {\n"
            "    \"fc \\\"1\\\"\": \"weights-00000.safetensors\",\n"
            "    \"mean\": \"weights-00000.safetensors\"\n  }\n}\n");
}

TEST(Manifest, NoticesEveryByte) {
  std::string text = writeManifest(makeManifest());
  for (size_t i = 0; i < text.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = char(flipped[i] ^ (1 << bit));
      Manifest again;
      if (readManifest(flipped, again).empty()) {
        EXPECT_EQ(writeManifest(again), text) << "byte " << i;
      }
    }
  for (size_t length = 0; length < text.size() - 1; ++length) {
    Manifest again;
    EXPECT_NE(readManifest(text.substr(0, length), again), "");
  }
}

TEST(Manifest, RefusesByName) {
  Manifest manifest;
  EXPECT_EQ(readManifest("", manifest), "it is not JSON");
  EXPECT_EQ(readManifest("[]", manifest), "it is no manifest of a checkpoint");
  EXPECT_EQ(problemWith("\"version\": 1", "\"version\": 2"),
            "it has version 2 of the format, and this program reads versions "
            "up to 1; use a newer one");
  EXPECT_EQ(problemWith("\"step\": 500", "\"step\": -1"),
            "it has no 'step', or one of another type");
  EXPECT_EQ(problemWith("\"step\": 500", "\"step\": 1, \"step\": 500"),
            "it has 'step' twice");
  EXPECT_EQ(problemWith("\"shuffle\": true", "\"shuffle\": 1"),
            "it has no 'shuffle', or one of another type");
  EXPECT_EQ(problemWith("\"weights-00000.safetensors\"", "\"../passwd\""),
            "a file has no name, or one that leads out of the folder");
  EXPECT_EQ(problemWith("\"state-00000", "\"weights-00000"),
            "it has the file 'weights-00000.safetensors' twice");
  EXPECT_EQ(problemWith("\"name\": \"mean\"", "\"name\": \"fc \\\"1\\\"\""),
            "it has the tensor 'fc \"1\"' twice");
  EXPECT_EQ(problemWith("\"kind\": \"momentum\"", "\"kind\": \"a:b\""),
            "tensor 'fc \"1\"' of 'state-00000.safetensors' has no kind");
  EXPECT_EQ(problemWith("\"offset\": 160", "\"offset\": 800"),
            "tensor 'fc \"1\"' is outside of 'state-00000.safetensors'");
  EXPECT_EQ(problemWith("\"offset\": 160", "\"offset\": 18446744073709551615"),
            "tensor 'fc \"1\"' is outside of 'state-00000.safetensors'");
  EXPECT_EQ(problemWith("\"bytes\": 308", "\"bytes\": 304"),
            "tensor 'fc \"1\"' of 'weights-00000.safetensors' has 304 bytes, "
            "but its type and shape take 308");
  EXPECT_EQ(
      problemWith("\"shape\": [7, 11]", "\"shape\": [4294967296, 4294967296]"),
      "tensor 'fc \"1\"' of 'weights-00000.safetensors' has no shape "
      "that could be stored");
  EXPECT_EQ(problemWith("\"type\": \"F32\"", "\"type\": \"F31\""),
            "tensor 'fc \"1\"' of 'weights-00000.safetensors' has the unknown "
            "type 'F31'");
  std::string text = writeManifest(makeManifest());
  text.replace(text.find("500"), 3, "501");
  EXPECT_EQ(readManifest(text, manifest), "it is damaged (checksum)");
}

/// Text that was written by nobody who meant well.
class Fuzz {
public:
  explicit Fuzz(unsigned seed) : random(seed) {}

  std::string mutate(std::string text) {
    static const char *const kWords[] = {"-1",
                                         "0",
                                         "18446744073709551615",
                                         "1e999",
                                         "9223372036854775807",
                                         "null",
                                         "true",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "\"a\":",
                                         ",",
                                         "[[[[[[[[[[[[[[[[[[",
                                         "\\u0000",
                                         "\xff",
                                         "\"name\"",
                                         "\"offset\": 3"};
    for (unsigned i = below(4) + 1; i-- > 0 && !text.empty();) {
      size_t at = below(text.size()), length = below(20);
      switch (below(6)) {
      case 0:
        text[at] = char(below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), below(300)));
        break;
      case 3:
        text.replace(at, length, kWords[below(std::size(kWords))]);
        break;
      case 4: { // another number
        size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos)
          text.replace(digit, 1 + below(3), kWords[below(5)]);
        break;
      }
      default: // a large one
        if (below(40) == 0)
          grow(text, at);
      }
    }
    return text;
  }

  std::string makeUp() {
    std::string text;
    value(text, 0);
    return text;
  }

private:
  size_t below(size_t end) { return random() % end; }

  void grow(std::string &text, size_t at) {
    std::string piece = text.substr(below(text.size()), 1 + below(50));
    std::string many;
    while (many.size() + text.size() < 1'000'000)
      many += piece;
    text.insert(at, many);
  }

  void value(std::string &text, int depth) {
    switch (below(depth > 18 ? 4 : 7)) {
    case 0:
      text += std::to_string(int64_t(random() << 32 | random()));
      break;
    case 1:
      text += "\"step\"";
      break;
    case 2:
      text += "0.5e3";
      break;
    case 3:
      text += "false";
      break;
    case 4:
      text += "[";
      for (size_t i = 0, count = below(4); i < count; ++i) {
        text += i ? "," : "";
        value(text, depth + 1);
      }
      text += "]";
      break;
    default:
      text += "{";
      for (size_t i = 0, count = below(4); i < count; ++i) {
        text += i ? ",\"" : "\"";
        text += "abcd"[below(4)];
        text += "\":";
        value(text, depth + 1);
      }
      text += "}";
    }
  }

  std::mt19937_64 random;
};

/// PENSTOCK_FUZZ_ROUNDS asks for more.
int countRounds() {
  const char *rounds = std::getenv("PENSTOCK_FUZZ_ROUNDS");
  return rounds ? std::atoi(rounds) : 20000;
}

constexpr bool isSanitized() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#endif
#endif
  return false;
}

int64_t residentKilobytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Manifest, SurvivesWhatNobodyWrote) {
  std::string text = writeManifest(makeManifest());
  text.resize(text.rfind(",\n  \"manifest_xxh3\""));
  int64_t before = residentKilobytes();
  int accepted = 0, rounds = countRounds();
  for (int round = 0; round < rounds; ++round) {
    Fuzz fuzz{unsigned(round)};
    std::string changed =
        sealManifest(round % 8 ? fuzz.mutate(text) : "{" + fuzz.makeUp());
    Manifest manifest;
    if (!readManifest(changed, manifest).empty())
      continue;
    ++accepted;
    for (const ManifestFile &file : manifest.files)
      for (const ManifestTensor &tensor : file.tensors) {
        EXPECT_LE(tensor.offset, file.bytes);
        EXPECT_LE(tensor.bytes, file.bytes - tensor.offset);
      }
    Manifest again;
    ASSERT_EQ(readManifest(writeManifest(manifest), again), "");
    EXPECT_EQ(writeManifest(again), writeManifest(manifest));
  }
  EXPECT_GT(accepted, 0);
  // A sanitizer keeps what is freed.
  if (!isSanitized()) {
    EXPECT_LT(residentKilobytes() - before, 100'000);
  }
}

TEST(Safetensors, SurvivesWhatNobodyWrote) {
  std::vector<SafeTensor> tensors = {{"w", PENSTOCK_F32, {3, 5}},
                                     {"momentum:w", PENSTOCK_F32, {3, 5}},
                                     {"flags", PENSTOCK_BOOL, {3}}};
  std::string header = makeSafetensorsHeader(tensors).substr(8);
  int accepted = 0, rounds = countRounds();
  for (int round = 0; round < rounds; ++round) {
    Fuzz fuzz{unsigned(round)};
    std::string changed =
        round % 8 ? fuzz.mutate(header) : "{\"a\":" + fuzz.makeUp() + "}";
    uint64_t length = changed.size() + (round % 5 == 0 ? round % 11 : 0);
    std::string file(8, '\0');
    for (int i = 0; i < 8; ++i)
      file[i] = char(length >> (8 * i) & 0xff);
    file += changed + std::string(123, 'x');
    if (round % 7 == 0)
      file[round % 8] = char(round);
    std::vector<SafeTensor> found;
    if (!readSafetensorsHeader(file, file.size(), found).empty())
      continue;
    ++accepted;
    uint64_t end = found.empty() ? 0 : found.front().offset;
    for (const SafeTensor &tensor : found) {
      EXPECT_EQ(tensor.offset, end);
      end += tensor.bytes;
      EXPECT_LE(end, file.size());
    }
  }
  EXPECT_GT(accepted, 0);
}

} // namespace
