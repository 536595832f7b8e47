//===- Sum.cpp - Sums over GPUs of other processes ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In rounds of two groups of transfers: values to whoever adds them up, and
// sums to whoever wants them. All members come to the same rounds.
//===----------------------------------------------------------------------===//

#include "runtime/transport/nccl/Sum.h"

#include <algorithm>
#include <map>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

NcclSum::NcclSum(AllReduce &sum, const Job &job)
    : sum(sum), description(sum.description) {
  // 1. Who takes part, with which summands.
  std::map<int, Member> byRank;
  for (uint32_t k = 0; k < description.summand_count; ++k) {
    int rank = job.rankOfDevice[description.devices[k]];
    Member &member = byRank.try_emplace(rank).first->second;
    member.rank = rank;
    if (k == 0 || description.resets[k] != PENSTOCK_SUM_RECEIVES) {
      member.adders.push_back(k);
      order.push_back(k);
    }
    member.wantsSum |= description.resets[k] != PENSTOCK_SUM_RESETS;
    if (rank != job.rank)
      continue;
    local.push_back(k);
    if (target < 0 && description.resets[k] != PENSTOCK_SUM_RESETS)
      target = k;
  }
  for (auto &[rank, member] : byRank) {
    if (rank == job.rank)
      self = members.size();
    else
      peers.insert(rank);
    members.push_back(std::move(member));
  }

  // 2. Room.
  constexpr uint64_t kAlignment = 256;
  count = order.size();
  for (uint32_t type = 0; type < description.type_count; ++type)
    row = std::max(row, getPiece(type, self, 0).size());
  row = (row + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t NcclSum::sizeOf(uint32_t type) const {
  return description.types[type].element == PENSTOCK_F64 ? 8 : 4;
}

/// Returns the piece that a member adds up, which ends at cache lines.
NcclSum::Piece NcclSum::getShare(uint32_t type, size_t member) const {
  constexpr uint64_t kLine = 64;
  uint64_t bytes = description.types[type].bytes;
  uint64_t lines = (bytes + kLine - 1) / kLine;
  auto bound = [&](uint64_t i) {
    return std::min(lines * i / members.size() * kLine, bytes);
  };
  return {bound(member), bound(member + 1)};
}

NcclSum::Piece NcclSum::getPiece(uint32_t type, size_t member,
                                 uint64_t round) const {
  Piece share = getShare(type, member);
  uint64_t begin = std::min(share.end, share.begin + round * kPieceBytes);
  return {begin, std::min(share.end, begin + kPieceBytes)};
}

uint64_t NcclSum::countRounds(uint32_t type) const {
  uint64_t most = 0;
  for (size_t i = 0; i < members.size(); ++i)
    most = std::max(most, getShare(type, i).size());
  return (most + kPieceBytes - 1) / kPieceBytes;
}

/// Where the values of a summand are that this process adds up.
uint64_t NcclSum::getRow(uint32_t summand) const {
  auto place = std::find(order.begin(), order.end(), summand);
  return rows + uint64_t(place - order.begin()) * row;
}

/// The values of a round come to whoever adds them up.
Error NcclSum::gather(const Driver &driver, Communicator &communicator,
                      uint32_t type, uint64_t round, Stream stream) {
  Piece own = getPiece(type, self, round);
  Error error = communicator.begin();
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == self)
      continue;
    Piece piece = getPiece(type, i, round);
    for (uint32_t k : members[self].adders)
      if (!error && piece.size())
        error = communicator.send(sum.getAddress(k, type) + piece.begin,
                                  piece.size(), members[i].rank, stream);
    for (uint32_t k : members[i].adders)
      if (!error && own.size())
        error = communicator.receive(getRow(k), own.size(), members[i].rank,
                                     stream);
  }
  Error ended = communicator.end();
  if (error || ended)
    return error ? error : ended;
  for (uint32_t k : members[self].adders)
    if (own.size())
      if (int status = driver.cuMemcpyDtoDAsync(
              getRow(k), sum.getAddress(k, type) + own.begin, own.size(),
              stream))
        return describeFailure(driver, status, "cuMemcpyDtoDAsync");
  return {};
}

/// The sums of a round come to whoever wants them.
Error NcclSum::spread(const Driver &driver, Communicator &communicator,
                      uint32_t type, uint64_t round, Stream stream) {
  Piece own = getPiece(type, self, round);
  uint64_t sums = rows + count * row;
  Error error = communicator.begin();
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == self)
      continue;
    Piece piece = getPiece(type, i, round);
    if (!error && own.size() && members[i].wantsSum)
      error = communicator.send(sums, own.size(), members[i].rank, stream);
    if (!error && piece.size() && target >= 0)
      error = communicator.receive(sum.getAddress(uint32_t(target), type) +
                                       piece.begin,
                                   piece.size(), members[i].rank, stream);
  }
  Error ended = communicator.end();
  if (error || ended)
    return error ? error : ended;
  if (target < 0 || own.size() == 0)
    return {};
  int status = driver.cuMemcpyDtoDAsync(sum.getAddress(uint32_t(target), type) +
                                            own.begin,
                                        sums, own.size(), stream);
  return status ? describeFailure(driver, status, "cuMemcpyDtoDAsync")
                : Error();
}

Error NcclSum::issue(const Driver &driver, Communicator &communicator,
                     const SumKernels &kernels, Stream stream) {
  for (uint32_t type = 0; type < description.type_count; ++type) {
    uint64_t size = sizeOf(type);
    for (uint64_t round = 0, rounds = countRounds(type); round < rounds;
         ++round) {
      if (Error error = gather(driver, communicator, type, round, stream))
        return error;
      if (uint64_t bytes = getPiece(type, self, round).size())
        if (Error error =
                kernels.launch(driver, size == 8, rows, row, count,
                               rows + count * row, bytes / size, stream))
          return error;
      if (Error error = spread(driver, communicator, type, round, stream))
        return error;
    }

    // What the other summands of this process get.
    for (uint32_t k : local) {
      uint64_t bytes = description.types[type].bytes;
      uint64_t at = sum.getAddress(k, type);
      int status = CUDA_SUCCESS;
      if (description.resets[k] == PENSTOCK_SUM_RESETS)
        status = driver.cuMemsetD8Async(at, 0, bytes, stream);
      else if (k != target)
        status = driver.cuMemcpyDtoDAsync(
            at, sum.getAddress(uint32_t(target), type), bytes, stream);
      if (status)
        return describeFailure(driver, status, "storing a sum");
    }
  }
  return {};
}
