//===- Manifest.h - What a checkpoint holds, and of which run ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// manifest.json of a checkpoint: its files with the place and the checksum of
// every tensor, and what a run that goes on from there has to know. A tensor is
// known by its kind and the initializer that it belongs to, whatever program it
// came from.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_MANIFEST_H
#define PENSTOCK_RUNTIME_IO_MANIFEST_H

#include "runtime/support/Error.h"

#include <string_view>
#include <vector>

namespace penstock::runtime {

struct ManifestTensor {
  std::string name;     ///< of the initializer
  std::string kind;     ///< "" for a weight or a statistic, "momentum", "delta"
  uint32_t element = 0; // as in abi.h
  std::vector<int64_t> shape;
  uint64_t offset = 0, bytes = 0; ///< in its file
  std::string checksum;
};

/// A file, as the rank that wrote it reports it.
struct ManifestFile {
  std::string name;
  uint64_t bytes = 0;
  std::string checksum;
  int64_t rank = 0;
  std::vector<ManifestTensor> tensors;
};

/// An array of the data that the run reads.
struct ManifestData {
  std::string name, type;
  std::vector<int64_t> shape;
  std::string checksum;
};

/// The results of evaluations in the midst of training; a step of -1 is that of
/// none.
struct ManifestEvaluation {
  int64_t step = -1; ///< of the last one
  int64_t bestStep = -1;
  std::string metric; ///< by which it is the best
  double best = 0;
  int64_t withoutGain = 0; ///< the last ones, in a row
};

struct Manifest {
  int64_t step = 0;
  /// Done, of an update, and of a pass over the data; 0: no data was given.
  int64_t samples = 0, samplesPerUpdate = 0, samplesPerPass = 0;
  int64_t microbatches = 1;
  int64_t seed = 0;
  bool shuffle = false;
  std::string last = "drop"; ///< what became of samples that fill no update
  double rate = 0;           ///< the base of the learning rate
  /// With their parameters, as the flags of the compiler have them.
  std::string method, schedule, optimizer;
  int64_t stages = 1;
  std::vector<int64_t> replicas;
  /// Every so many updates the run drained; 0: it did not.
  int64_t checkpointEvery = 0, evalEvery = 0;
  ManifestEvaluation evaluation;
  /// The updates at which the last segments began, in order.
  std::vector<int64_t> segmentStarts;
  std::string model;   ///< SHA-256 of the file that was compiled
  std::string program; ///< checksum of the executable
  std::string precision;
  std::vector<ManifestData> data;
  std::vector<ManifestFile> files;
  std::string finishedAt; ///< UTC, ISO 8601
};

/// "momentum:fc2", or "fc2" for a weight: the name in its file.
std::string fileNameOf(const ManifestTensor &tensor);

/// The bytes of all files.
uint64_t countBytes(const Manifest &manifest);

/// The text of manifest.json, which ends with its own checksum.
std::string writeManifest(const Manifest &manifest);
/// Ends an object that lacks its closing brace with the checksum of its text.
std::string sealManifest(std::string object);

/// Returns what is wrong with the text, or "". What comes out is consistent:
/// ranges are inside of their files and of the size of type and shape, names
/// are there once and lead out of no folder.
std::string readManifest(std::string_view text, Manifest &manifest);

/// The text of the index, as model hubs have it.
constexpr const char *kIndexName = "weights.safetensors.index.json";
std::string writeIndex(const std::vector<ManifestFile> &files);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_MANIFEST_H
