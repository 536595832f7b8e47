//===- OutputArrays.h - What inference writes -------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One .npy file per output of the model, of its final size from the start and
// mapped, so that devices copy their messages to where they belong. The files
// get their names when all of them are complete.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_OUTPUTARRAYS_H
#define PENSTOCK_RUNTIME_IO_OUTPUTARRAYS_H

#include "runtime/io/DataSet.h"
#include "runtime/io/TemporaryFile.h"

#include <span>

namespace penstock::runtime {

/// The file of one output.
class OutputArray {
public:
  OutputArray(const penstock_channel &channel, std::string path)
      : channel(channel), path(std::move(path)) {}
  OutputArray(const OutputArray &) = delete;
  ~OutputArray();

  /// Creates the temporary file: `rows` samples in microbatches of `batch`, or
  /// with `batch` 0 one message as it is.
  Error create(int64_t rows, int64_t batch);
  /// Returns where the message of microbatch n goes, as far as there are
  /// samples for its rows.
  std::span<char> getRoom(int64_t n);
  Error commit();

  const penstock_channel &channel;
  const std::string path;
  /// The shape of the whole array.
  std::vector<int64_t> shape;

private:
  Error failed(const char *action);

  TemporaryFile file;
  char *mapped = nullptr;
  uint64_t length = 0, header = 0;
};

/// The folder of --outputs.
class OutputArrays {
public:
  ~OutputArrays();

  /// Creates the folder if it is missing, and a file for every sink.
  Error open(const penstock_program &program, const std::string &folder,
             const DataSet &data);
  /// As it is, but without names and for this process alone: the folder of
  /// temporary files holds the arrays as long as they live.
  Error openUnnamed(const penstock_program &program, const DataSet &data);
  Error commit();

  /// Null for a channel that is no sink.
  OutputArray *find(const penstock_channel &channel);
  const std::vector<std::unique_ptr<OutputArray>> &all() const {
    return arrays;
  }

private:
  Error create(const penstock_program &program, const std::string &folder,
               const DataSet &data);

  std::vector<std::unique_ptr<OutputArray>> arrays;
  /// The folder, if it is ours and nothing is in it yet.
  std::string created;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_OUTPUTARRAYS_H
