//===- CheckpointFolder.h - The checkpoints of a run ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder D of checkpoints D/step-000000500. A name without ".part" is that of
// a whole one: it was renamed when all of it was on the disk. Links are not
// followed: a checkpoint is made of files.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_CHECKPOINTFOLDER_H
#define PENSTOCK_RUNTIME_IO_CHECKPOINTFOLDER_H

#include "runtime/io/File.h"
#include "runtime/io/Manifest.h"

#include <optional>

namespace penstock::runtime {

/// "step-000000500".
std::string checkpointName(int64_t step);
/// The step in such a name.
std::optional<int64_t> stepOfName(std::string_view name);

/// The steps of the checkpoints in a folder, from the oldest on. None where it
/// does not exist.
std::vector<int64_t> listCheckpoints(const std::string &folder);

/// The checkpoint that `path` names: itself, or the newest of a folder of them.
/// "" if there is none.
std::string findCheckpoint(const std::string &path);

/// A checkpoint that was read.
struct Checkpoint {
  std::string path;
  std::string checksum; ///< of the text of the manifest
  Manifest manifest;
};

/// Reads the manifest of the checkpoint in `path` and checks the sizes of its
/// files; returns what is wrong, behind the path of the file, or "".
std::string readCheckpoint(const std::string &path, Checkpoint &checkpoint);

/// Maps a file of a checkpoint and checks its header against the manifest;
/// returns what is wrong, or "". The values are not looked at.
std::string mapCheckpointFile(const Checkpoint &checkpoint,
                              const ManifestFile &file, MappedFile &mapped);

/// Returns what is wrong with the values of a tensor, or "".
std::string checkTensor(const Checkpoint &checkpoint, const ManifestFile &file,
                        const ManifestTensor &tensor, const MappedFile &mapped);

/// Checks everything that readCheckpoint() leaves out: headers, and the
/// checksum of every tensor and file.
std::string verifyCheckpoint(const Checkpoint &checkpoint);
/// Returns what is wrong with the index, by which others find the weights, or
/// "". A checkpoint is whole without it.
std::string checkIndex(const Checkpoint &checkpoint);

/// The newest whole checkpoint in the folder of `path`, a checkpoint, other
/// than that; "" if there is none.
std::string findOtherWhole(const std::string &path);

/// One run writes into a folder at a time.
class CheckpointLock {
public:
  CheckpointLock() = default;
  CheckpointLock(const CheckpointLock &) = delete;
  ~CheckpointLock();

  /// Makes the folder if it is missing, keeps others out of it, and removes
  /// what a run that ended while it wrote has left.
  Error take(const std::string &folder);
  /// Writes what other processes of the run know the folder by.
  Error sign(const std::string &folder, const std::string &text);

private:
  int descriptor = -1;
};

/// Returns true if the process that holds the lock of this folder has signed it
/// with that text.
bool isSigned(const std::string &folder, const std::string &text);

/// Removes a folder with the files in it, and nothing that it links to.
bool removeFolder(const std::string &path);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_CHECKPOINTFOLDER_H
