//===- Context.h - What the devices of a program share ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Made by the instance that opens them. Everything is found by number, without
// a lock.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CONTEXT_H
#define PENSTOCK_RUNTIME_DEVICE_CONTEXT_H

#include "runtime/device/Bound.h"
#include "runtime/observe/Position.h"
#include "runtime/transport/Sources.h"
#include "runtime/transport/Transport.h"
#include "runtime/transport/threads/AllReduce.h"

#include <functional>

namespace penstock::runtime {

/// The cores that the devices of this process share among them.
struct CoreBudget {
  std::vector<bool> isLocal; // by device
  bool areFew = false;       // other processes need them, too
};

struct Context {
  explicit Context(const penstock_program &program)
      : program(program), cores{std::vector<bool>(program.device_count, true)},
        positions{program, {}} {}

  const penstock_program &program;
  Endpoints endpoints;
  std::vector<std::unique_ptr<AllReduce>> sums; // by group
  std::vector<double> hyperparameters;
  std::vector<int64_t> integers; // the same, in full
  CoreBudget cores;
  WaitPolicy waitPolicy;
  Positions positions;
  Sources sources{endpoints};
  std::unique_ptr<Transport> transport;
  Bound bound;
  /// The GPUs that devices are on, in turn; empty: all of the machine.
  std::vector<int> gpus;
  /// Keeps which algorithms of libraries are fastest; empty: nothing does.
  std::string tunePath;
  /// The rest is measured.
  bool measures = false;
  /// Called before a task runs, if there is one, on the thread of its device.
  std::function<void(uint32_t task, int64_t number)> onMark;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CONTEXT_H
