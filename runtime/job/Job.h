//===- Job.h - The processes of a run ---------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of them this one is, and who has which device. Knows no tensors.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_JOB_H
#define PENSTOCK_RUNTIME_JOB_JOB_H

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::runtime {

struct Job {
  int rank = 0, size = 1;
  /// Among the processes of this host.
  int localRank = 0, localSize = 1;
  /// Hosts by rank.
  std::vector<std::string> hosts{""};
  std::vector<int> rankOfDevice;

  bool isAlone() const { return size == 1; }
  bool has(uint32_t device) const { return rankOfDevice[device] == rank; }

  /// Gives each rank devices that are neighbors, as many as any other or one
  /// more.
  void place(uint32_t devices) {
    rankOfDevice.resize(devices);
    for (int64_t r = 0; r < size; ++r)
      for (int64_t d = r * devices / size; d < (r + 1) * devices / size; ++d)
        rankOfDevice[d] = int(r);
  }
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_JOB_H
