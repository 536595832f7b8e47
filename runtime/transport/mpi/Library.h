//===- Library.h - The MPI of this process ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loaded when a run needs it, through the shim of the MPI that started the run.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_MPI_LIBRARY_H
#define PENSTOCK_RUNTIME_TRANSPORT_MPI_LIBRARY_H

#include "runtime/job/Launch.h"
#include "runtime/transport/mpi/Shim.h"

#include <string>

namespace penstock::runtime {

class MpiLibrary {
public:
  /// Finds and loads the shim for what started this process.
  Error load(const LaunchFacts &facts);
  /// Starts MPI. Fails where it sees other processes than the launcher started,
  /// as the library of another MPI does.
  Error start(const LaunchFacts &facts);
  /// Ends MPI; all processes are there.
  void finalize();

  const penstock_mpi &getFunctions() const { return *functions; }
  int getLargestTag() const { return largestTag; }
  /// "Open MPI v4.1.4".
  const std::string &getName() const { return name; }
  bool isStarted() const { return hasStarted; }
  Error failed(int code) const;

private:
  const penstock_mpi *functions = nullptr;
  std::string name;
  int largestTag = 0;
  bool hasStarted = false;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_MPI_LIBRARY_H
