//===- Handshake.h - Whether all processes run the same ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every process says what its numbers depend on. All get to know all of it, so
// all come to the same conclusion: to begin, or one sentence.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_HANDSHAKE_H
#define PENSTOCK_RUNTIME_JOB_HANDSHAKE_H

#include "runtime/job/Control.h"

namespace penstock::runtime {

/// A fact that has to be the same in all processes.
struct Fact {
  enum Kind : uint8_t {
    Executable, // its checksum
    Flag,       // `name` with dashes, and its value
    Property    // of the machine; `name` as in "rank 1 has another NAME"
  };
  Kind kind = Flag;
  std::string name, value;
  bool operator==(const Fact &) const = default;
};

/// A file of samples, as a process that reads it sees it.
struct FileFact {
  std::string input; // in its set, "--labels"
  std::string name;  // without its folder
  int64_t samples = 0;
  std::string type;     // "float32 (60000, 784)"
  std::string checksum; // of parts of it
};

/// A process's record of itself.
struct Record {
  std::string host;
  int32_t pid = 0;
  /// It cannot begin: an exit code and a sentence.
  int code = 0;
  std::string sentence;
  std::vector<Fact> facts;
  std::vector<FileFact> files;
  /// The cores that it may use, in the order in which they are given out, and
  /// the threads of its devices.
  std::vector<int32_t> cores;
  uint32_t threads = 0;
  /// Names of the places that devices take in turn, where no two processes of a
  /// host may have the same: GPUs.
  std::vector<std::string> places = {};
};

std::string encode(const Record &record);
/// False where these bytes are no record.
bool decode(std::string_view bytes, Record &record);

/// Returns the first reason for which these processes cannot begin together.
Error compare(const std::vector<Record> &records);

/// Tells all processes what each of them says of itself, by rank.
Error exchange(const Job &job, Control &control, const Record &own,
               std::vector<Record> &records);

/// Fills in the hosts, and who else is on this one.
void findNeighbors(const std::vector<Record> &records, Job &job);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_HANDSHAKE_H
