//===- Sum.h - Sums over GPUs of other processes ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every element is added up on one GPU, in the order of the summands, and the
// sum sent to all: the bits of a sum within one process. NCCL's own sums have
// an order of their own, which depends on how GPUs are connected.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_NCCL_SUM_H
#define PENSTOCK_RUNTIME_TRANSPORT_NCCL_SUM_H

#include "runtime/device/cuda/SumKernels.h"
#include "runtime/job/Job.h"
#include "runtime/transport/nccl/Communicator.h"
#include "runtime/transport/threads/AllReduce.h"

#include <set>

namespace penstock::runtime::cuda {

/// The part that this process, which has one device, has in the sums of one
/// group.
class NcclSum {
public:
  NcclSum(AllReduce &sum, const Job &job);

  /// The other processes that take part.
  const std::set<int> &getPeers() const { return peers; }
  /// Bytes of the GPU besides the arena, aligned as its rows are.
  uint64_t getBytes() const { return row * (count + 1); }
  /// Puts its rows there.
  void open(uint64_t memory) { rows = memory; }
  /// Puts the sum that the device has posted on a stream.
  Error issue(const Driver &driver, Communicator &communicator,
              const SumKernels &kernels, Stream stream);

private:
  /// Elements of a type on their way at a time, of one owner.
  static constexpr uint64_t kPieceBytes = 8 << 20;

  struct Member {
    int rank;
    std::vector<uint32_t> adders; // its summands that are added
    bool wantsSum = false;
  };
  struct Piece {
    uint64_t begin, end; // bytes
    uint64_t size() const { return end - begin; }
  };
  uint64_t sizeOf(uint32_t type) const;
  Piece getShare(uint32_t type, size_t member) const;
  Piece getPiece(uint32_t type, size_t member, uint64_t round) const;
  uint64_t countRounds(uint32_t type) const;
  uint64_t getRow(uint32_t summand) const;
  Error gather(const Driver &driver, Communicator &communicator, uint32_t type,
               uint64_t round, Stream stream);
  Error spread(const Driver &driver, Communicator &communicator, uint32_t type,
               uint64_t round, Stream stream);

  AllReduce &sum;
  const penstock_group &description;
  std::vector<Member> members; // by rank
  size_t self = 0;
  std::set<int> peers;
  std::vector<uint32_t> local; // summands
  int64_t target = -1;         // a local summand that receives sums, or -1
  std::vector<uint32_t> order; // summands that are added
  /// A row for each of these, of the elements that this process adds up, and
  /// one for their sums.
  uint64_t rows = 0, row = 0, count = 0;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_TRANSPORT_NCCL_SUM_H
