//===- sum_share.h - Who adds up what of a sum over processes ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each process that takes part adds up a share of the elements, in pieces. The
// compiler predicts from this the buffers that the runtime makes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUM_SHARE_H
#define PENSTOCK_SUM_SHARE_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace penstock {

/// The most bytes of a piece.
inline constexpr uint64_t kSumPieceBytes = 256 << 10;
/// Pieces in flight to the process that adds them up. The thread that moves
/// them beside devices that compute gets a core every few milliseconds only:
/// with two pieces, a sum of 64 MiB took longer than 200 ms of work.
inline constexpr uint64_t kSumWindow = 8;

/// Values of one type, of each summand.
struct SumValues {
  uint64_t bytes = 0, elementBytes = 4;

  /// The first element of the share of process `index` among `count`. Shares
  /// end at cache lines.
  uint64_t getBegin(uint64_t index, uint64_t count) const {
    constexpr uint64_t kLine = 64;
    uint64_t lines = (bytes + kLine - 1) / kLine;
    return std::min(lines * index / count * (kLine / elementBytes),
                    bytes / elementBytes);
  }
};

struct SumSummand {
  int process;
  bool isAdded, takesSum;
};

/// Returns the bytes that a process needs for a sum besides its own values:
/// those of the summands of others in a window of pieces, and their sums where
/// none of its own summands takes them.
inline uint64_t countSumBytes(const std::vector<SumValues> &values,
                              const std::vector<SumSummand> &summands,
                              int process) {
  // 1. The share of the process, in the order of those that take part.
  std::vector<int> processes;
  uint64_t others = 0;
  bool isHere = false, takesSum = false;
  for (const SumSummand &summand : summands) {
    processes.push_back(summand.process);
    bool isOwn = summand.process == process;
    isHere |= isOwn;
    takesSum |= isOwn && summand.takesSum;
    others += !isOwn && summand.isAdded;
  }
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()),
                  processes.end());
  if (!isHere || processes.size() < 2)
    return 0;
  uint64_t index =
      uint64_t(std::find(processes.begin(), processes.end(), process) -
               processes.begin());

  // 2. Its largest piece.
  uint64_t largest = 0;
  for (const SumValues &each : values) {
    uint64_t elements = each.getBegin(index + 1, processes.size()) -
                        each.getBegin(index, processes.size());
    largest = std::max(largest,
                       std::min(elements, kSumPieceBytes / each.elementBytes) *
                           each.elementBytes);
  }
  return kSumWindow * largest * (others + !takesSum);
}

} // namespace penstock

#endif // PENSTOCK_SUM_SHARE_H
