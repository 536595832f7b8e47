//===- Tuning.cpp - Algorithms chosen by measurement ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Events of the stream tell the time. One measurement runs at a time, also
// where a process has several GPUs: they would share the way to them.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Tuning.h"

#include "penstock/severity.h"
#include "runtime/device/cuda/TuneFile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <set>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

/// The gain that another algorithm needs over the library's first, or chance
/// would choose.
static constexpr float kGain = 0.97f;
/// The best of them counts.
static constexpr int kRounds = 3;
static constexpr float kRoundMilliseconds = 1.0f;
static constexpr int kMostCalls = 20;

struct Tuning::Book {
  std::mutex mutex;
  std::string path;
  TuneFile file;
  bool isChanged = false;
  /// Libraries of other versions, GPUs of other names: said once.
  std::set<std::string> ignored;

  void ignore(const std::string &what, const std::string &has) {
    if (ignored.insert(what).second)
      std::fprintf(stderr,
                   "note: --tune: '%s' is for %s, this is %s; it is ignored, "
                   "remove it to measure again\n",
                   path.c_str(), what.c_str(), has.c_str());
  }

  static Error find(const std::string &path, std::shared_ptr<Book> &result);
};

/// Devices share the book while one of them has it.
Error Tuning::Book::find(const std::string &path,
                         std::shared_ptr<Book> &result) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Book>> opened;
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<Book> &known = opened[path];
  if ((result = known.lock()))
    return {};
  auto book = std::make_shared<Book>();
  book->path = path;
  if (Error error = book->file.read(path))
    return error;
  known = result = std::move(book);
  return {};
}

Tuning::Tuning() = default;
Tuning::~Tuning() = default;

Error Tuning::open(const std::string &path, bool measures,
                   const std::string &name, const Driver &table, Stream on,
                   std::mutex &heldMemory) {
  if (path.empty())
    return {};
  if (Error error = Book::find(path, book))
    return error;
  std::lock_guard<std::mutex> lock(book->mutex);
  if (book->file.gpu.empty())
    book->file.gpu = name;
  if (book->file.gpu != name) {
    book->ignore(book->file.gpu, name);
    book = nullptr;
    return {};
  }
  driver = &table;
  stream = on;
  memory = measures ? &heldMemory : nullptr;
  return {};
}

bool Tuning::time(const Candidate &candidate, int calls, float &milliseconds) {
  if (driver->cuEventRecord(begin, stream))
    return false;
  for (int i = 0; i < calls; ++i)
    if (!candidate.run(stream))
      return false;
  if (driver->cuEventRecord(end, stream) || driver->cuEventSynchronize(end) ||
      driver->cuEventElapsedTime(&milliseconds, begin, end))
    return false;
  milliseconds /= float(calls);
  return true;
}

/// The first call loads what it needs, the second says how many make a round.
bool Tuning::measure(const Candidate &candidate, float &milliseconds) {
  float once = 0;
  if (!time(candidate, 1, once) || !time(candidate, 1, milliseconds))
    return false;
  int calls = std::clamp(
      int(kRoundMilliseconds / std::max(milliseconds, 1e-3f)), 1, kMostCalls);
  for (int round = 0; round < kRounds; ++round) {
    if (!time(candidate, calls, once))
      return false;
    milliseconds = std::min(milliseconds, once);
  }
  return true;
}

const Candidate *Tuning::findFastest(const std::vector<Candidate> &candidates) {
  const Candidate *best = nullptr;
  float least = 0;
  for (const Candidate &candidate : candidates) {
    float milliseconds = 0;
    if (!measure(candidate, milliseconds))
      continue;
    // The first has a start over the others.
    if (!best || milliseconds < least) {
      least = milliseconds * (best ? 1.0f : kGain);
      best = &candidate;
    }
  }
  return best;
}

/// Random numbers of either sign, from half to two, of f32 and of bf16 alike:
/// how fast a GPU is depends on how many bits change.
int Tuning::fill(Address to, uint64_t bytes) {
  constexpr uint64_t kPiece = 1 << 20;
  std::vector<uint16_t> words(std::min(bytes, kPiece) / sizeof(uint16_t) + 1);
  std::minstd_rand random;
  for (uint16_t &word : words) {
    auto bits = uint32_t(random());
    word = uint16_t(0x3f00 | (bits >> 8 & 0xff) | (bits & 1) << 15);
  }
  int status = CUDA_SUCCESS;
  for (uint64_t at = 0; at < bytes && !status; at += kPiece)
    status = driver->cuMemcpyHtoDAsync(to + at, words.data(),
                                       std::min(bytes - at, kPiece), stream);
  return status ? status : driver->cuStreamSynchronize(stream);
}

std::string
Tuning::choose(const char *library, int64_t version, const std::string &key,
               uint64_t bytes,
               const std::function<std::vector<Candidate>(Address)> &list) {
  if (!book)
    return "";
  std::lock_guard<std::mutex> lock(book->mutex);
  TuneFile::Library &known = book->file.libraries[library];
  if (known.choices.empty())
    known.version = version;
  if (known.version != version) {
    book->ignore(format("%s %lld", library, (long long)known.version),
                 format("%s %lld", library, (long long)version));
    return "";
  }
  if (auto found = known.choices.find(key); found != known.choices.end())
    return found->second;
  if (!memory)
    return "";

  std::lock_guard<std::mutex> hold(*memory);
  Address address = 0;
  int status = driver->cuMemAlloc(&address, std::max<uint64_t>(bytes, 1));
  if (status) {
    if (book->ignored.insert("memory").second)
      std::fprintf(stderr,
                   "%s--tune: no memory of the GPU is left to measure in; %s "
                   "chooses\n",
                   penstock::getSeverityText(penstock::Severity::Warning),
                   library);
    return "";
  }
  status = driver->cuEventCreate(&begin, 0);
  if (!status)
    status = driver->cuEventCreate(&end, 0);
  if (!status)
    status = fill(address, bytes);
  std::string choice;
  if (!status)
    if (std::vector<Candidate> candidates = list(address);
        const Candidate *best = findFastest(candidates))
      choice = best->choice;
  for (Event *event : {&begin, &end})
    if (*event)
      (void)driver->cuEventDestroy(*event);
  begin = end = nullptr;
  (void)driver->cuMemFree(address);
  if (choice.empty())
    return "";
  known.choices[key] = choice;
  book->isChanged = true;
  ++measured;
  return choice;
}

void Tuning::reject(const char *library, const std::string &key) const {
  std::lock_guard<std::mutex> lock(book->mutex);
  if (book->ignored.insert(library).second)
    std::fprintf(stderr,
                 "note: --tune: %s does not take what '%s' has for %s, and "
                 "chooses itself; remove the file to measure again\n",
                 library, book->path.c_str(), key.c_str());
}

Error Tuning::close(uint32_t device) {
  if (!book)
    return {};
  std::lock_guard<std::mutex> lock(book->mutex);
  if (measured)
    std::fprintf(stderr,
                 "note: device %u: measured %u products and "
                 "convolutions for %s\n",
                 device, measured, book->path.c_str());
  measured = 0;
  if (!book->isChanged)
    return {};
  book->isChanged = false;
  return book->file.write(book->path);
}
