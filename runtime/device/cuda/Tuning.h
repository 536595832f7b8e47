//===- Tuning.h - Algorithms chosen by measurement --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What --tune=FILE does when a program opens. Libraries list algorithms, the
// fastest first by what they know; here each runs, and the choice is kept. A
// choice is part of the numbers, so one thing that is computed has one choice
// in all devices of a process, and only one process measures.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_TUNING_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_TUNING_H

#include "runtime/device/cuda/Driver.h"
#include "runtime/transport/DeviceMemory.h"

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace penstock::runtime::cuda {

/// An algorithm that may compute a call, and its name in the file.
struct Candidate {
  std::string choice;
  /// Puts it on a stream. False: it fails.
  std::function<bool(Stream)> run;
};

/// The choices of a device. Used on its thread, in its context.
class Tuning {
public:
  Tuning();
  Tuning(const Tuning &) = delete;
  Tuning &operator=(const Tuning &) = delete;
  ~Tuning();

  /// Takes the choices of a file for GPU `name`. Where `measures` is set, what
  /// is not in it is measured, on `stream`; with `memory` held, as other
  /// devices look for theirs.
  Error open(const std::string &path, bool measures, const std::string &name,
             const Driver &driver, Stream stream, std::mutex &memory);

  /// Returns the choice for what `key` describes; none: what the library says.
  /// Candidates compute in so many bytes of memory, which begin at the address,
  /// aligned to 256 bytes, and hold random numbers; the first is the library's.
  std::string
  choose(const char *library, int64_t version, const std::string &key,
         uint64_t bytes,
         const std::function<std::vector<Candidate>(Address)> &list);
  /// Says that a library does not take what was kept.
  void reject(const char *library, const std::string &key) const;

  /// Keeps what was measured, and says how much that was.
  Error close(uint32_t device);

private:
  /// Shared by the devices of this process.
  struct Book;

  bool measure(const Candidate &candidate, float &milliseconds);
  bool time(const Candidate &candidate, int calls, float &milliseconds);
  const Candidate *findFastest(const std::vector<Candidate> &candidates);
  int fill(Address memory, uint64_t bytes);

  std::shared_ptr<Book> book; // none: nothing is tuned
  const Driver *driver = nullptr;
  Stream stream = nullptr;
  std::mutex *memory = nullptr;
  Event begin = nullptr, end = nullptr;
  uint32_t measured = 0;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_TUNING_H
