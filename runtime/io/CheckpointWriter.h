//===- CheckpointWriter.h - Checkpoints as training goes on -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values are copied to a staging block while the pipeline is empty. A thread
// writes them from there, with their checksums, and makes them last: each file
// is on the disk before the manifest is, and all of it before the folder gets
// its name. Whatever ends the process, a folder with a name is whole.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_CHECKPOINTWRITER_H
#define PENSTOCK_RUNTIME_IO_CHECKPOINTWRITER_H

#include "runtime/io/CheckpointFolder.h"

#include <atomic>
#include <thread>

namespace penstock::runtime {

/// Memory that values wait in until they are on the disk.
class StagingBlock {
public:
  StagingBlock() = default;
  StagingBlock(const StagingBlock &) = delete;
  ~StagingBlock();

  /// False where the system has not so much.
  bool open(uint64_t bytes);
  /// Has every page be there before it is needed.
  void populate();
  char *data() { return begin; }
  uint64_t size() const { return length; }

private:
  char *begin = nullptr;
  uint64_t length = 0;
};

/// A value in the staging block.
struct StagedTensor {
  /// Whose value it is; with a file order, it is written in that.
  const penstock_variable *variable = nullptr;
  const char *values = nullptr;
  /// The tensor's entry of the manifest; offset and checksum come when it is
  /// written.
  ManifestTensor description;
};

/// Writes the tensors of one rank into `folder`, into weights-R.safetensors and
/// state-R.safetensors; none that would be empty. Returns what went wrong, or
/// "".
std::string writeRankFiles(const std::string &folder, int64_t rank,
                           const std::vector<StagedTensor> &tensors,
                           std::vector<ManifestFile> &files);

/// Finishes a checkpoint in rank 0 when all ranks have reported their files,
/// which are in `folder`/step-N.part: adds index and manifest, and gives the
/// checkpoint its name. Returns the error, or "".
std::string finishCheckpoint(const std::string &folder, Manifest manifest,
                             std::vector<ManifestFile> reports);

/// Removes the oldest checkpoints of a folder but for `keep` of them.
void removeOldest(const std::string &folder, int64_t keep);

/// The processes that write a checkpoint together, each its own files. All of
/// it happens on the threads that write. This one is alone.
class CheckpointRanks {
public:
  virtual ~CheckpointRanks() = default;
  virtual int getRank() const { return 0; }
  /// Rank 0 says whether the folder is there, and others wait for it. Returns
  /// what rank 0 says.
  virtual bool begin(bool isReady) { return isReady; }
  /// Rank 0 gets the files of all, and the first problem that any of them had.
  virtual void gather(std::string &problem, std::vector<ManifestFile> &files) {
    (void)problem;
    (void)files;
  }
};

class CheckpointWriter {
public:
  CheckpointWriter() = default;
  CheckpointWriter(const CheckpointWriter &) = delete;
  /// Ends what it has begun.
  ~CheckpointWriter();

  /// Takes the folder, on rank 0, and memory for so many bytes of values. The
  /// ranks stay as long as it does. Weights that are not finite are refused,
  /// unless it keeps them.
  Error open(const std::string &folder, int64_t keep, uint64_t bytes,
             bool keepsNotFinite, CheckpointRanks &ranks);
  /// On rank 0: others know the folder by this text.
  Error sign(const std::string &text) { return lock.sign(folder, text); }
  bool isOpen() const { return keep > 0; }
  const std::string &getFolder() const { return folder; }

  /// Returns true while the staging block is in use.
  bool isBusy() const { return busy.load(std::memory_order_acquire); }
  /// Returns true if the last one could not be written, until finish() says
  /// why. Rank 0 knows that of all ranks.
  bool hasFailed() const { return !isBusy() && !problem.empty(); }
  /// Returns the block to fill, once nobody else uses it.
  StagingBlock &beginStaging();
  /// Starts to write what has been staged.
  void start(Manifest manifest, std::vector<StagedTensor> tensors);
  /// Waits for the last one; returns what went wrong with it, or "".
  std::string finish();

  struct Statistics {
    int64_t count = 0;
    uint64_t bytes = 0;
    double seconds = 0; ///< of the thread that writes
  };
  /// Not while it is busy.
  const Statistics &getStatistics() const { return statistics; }

private:
  std::string write(Manifest manifest,
                    const std::vector<StagedTensor> &tensors);

  std::string folder;
  int64_t keep = 0;
  bool keepsNotFinite = false;
  CheckpointRanks *ranks = nullptr;
  CheckpointLock lock;
  StagingBlock block;
  std::thread thread;
  std::atomic<bool> busy{false};
  std::string problem;
  Statistics statistics;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_CHECKPOINTWRITER_H
