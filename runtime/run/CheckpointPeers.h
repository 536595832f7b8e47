//===- CheckpointPeers.h - A checkpoint of several processes ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the threads that write say to each other, over the connections to rank
// 0. Training goes on meanwhile.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_CHECKPOINTPEERS_H
#define PENSTOCK_RUNTIME_RUN_CHECKPOINTPEERS_H

#include "runtime/io/CheckpointWriter.h"
#include "runtime/run/Peers.h"

namespace penstock::runtime {

class CheckpointPeers final : public CheckpointRanks {
public:
  explicit CheckpointPeers(Peers &peers) : peers(peers) {}

  int getRank() const override { return peers.getJob().rank; }
  bool begin(bool isReady) override;
  void gather(std::string &problem, std::vector<ManifestFile> &files) override;

private:
  Peers &peers;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_CHECKPOINTPEERS_H
