//===- CheckpointPeers.cpp - A checkpoint of several processes ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each process writes its own files into the folder that rank 0 has made, and
// reports them. No process waits for the disk of another, but rank 0 for all.
//===----------------------------------------------------------------------===//

#include "runtime/run/CheckpointPeers.h"

#include "runtime/job/Bytes.h"

using namespace penstock::runtime;

static void encodeFile(ByteWriter &writer, const ManifestFile &file) {
  writer.addText(file.name).add(file.bytes).addText(file.checksum);
  writer.add(file.rank).add(uint32_t(file.tensors.size()));
  for (const ManifestTensor &tensor : file.tensors) {
    writer.addText(tensor.name).addText(tensor.kind).add(tensor.element);
    writer.add(uint32_t(tensor.shape.size()));
    for (int64_t extent : tensor.shape)
      writer.add(extent);
    writer.add(tensor.offset).add(tensor.bytes).addText(tensor.checksum);
  }
}

static void decodeFile(ByteReader &reader, ManifestFile &file) {
  file.name = reader.takeText();
  file.bytes = reader.take<uint64_t>();
  file.checksum = reader.takeText();
  file.rank = reader.take<int64_t>();
  file.tensors.resize(reader.takeCount(sizeof(uint32_t)));
  for (ManifestTensor &tensor : file.tensors) {
    tensor.name = reader.takeText();
    tensor.kind = reader.takeText();
    tensor.element = reader.take<uint32_t>();
    tensor.shape.resize(reader.takeCount(sizeof(int64_t)));
    for (int64_t &extent : tensor.shape)
      extent = reader.take<int64_t>();
    tensor.offset = reader.take<uint64_t>();
    tensor.bytes = reader.take<uint64_t>();
    tensor.checksum = reader.takeText();
  }
}

bool CheckpointPeers::begin(bool isReady) {
  if (peers.isAlone())
    return isReady;
  if (peers.isRoot()) {
    peers.tellAll(Peers::kFolder, ByteWriter().add(isReady).bytes);
    return isReady;
  }
  std::optional<std::string> bytes = peers.await(0, Peers::kFolder);
  return bytes && ByteReader(*bytes).take<bool>();
}

void CheckpointPeers::gather(std::string &problem,
                             std::vector<ManifestFile> &files) {
  if (!peers.isRoot()) {
    ByteWriter report;
    report.addText(problem).add(uint32_t(files.size()));
    for (const ManifestFile &file : files)
      encodeFile(report, file);
    uint64_t size = report.bytes.size();
    StreamWriter stream = peers.startWriting(Peers::kFiles);
    stream.write(&size, sizeof(size));
    stream.write(report.bytes.data(), size);
    stream.finish();
    return;
  }
  for (int rank = 1; rank < peers.getJob().size; ++rank) {
    uint64_t size = 0;
    std::string report;
    StreamReader stream = peers.startReading(rank, Peers::kFiles);
    bool isThere = stream.read(&size, sizeof(size));
    if (isThere) {
      report.resize(size);
      isThere = stream.read(report.data(), size);
    }
    ByteReader reader(report);
    std::string other = reader.takeText();
    for (auto left = reader.takeCount(sizeof(uint32_t)); left > 0; --left)
      decodeFile(reader, files.emplace_back());
    if (!isThere || !reader.isComplete())
      other = "it has ended";
    if (problem.empty() && !other.empty())
      problem = peers.getName(rank) + ": " + other;
  }
}
