//===- Instance.h - One opened program --------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The devices, channels and sources of a program, and the execution of one
// segment. A run has one instance, and a second one for --verify.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_INSTANCE_H
#define PENSTOCK_RUNTIME_RUN_INSTANCE_H

#include "runtime/device/Cores.h"
#include "runtime/device/Kinds.h"
#include "runtime/io/ModelWriter.h"
#include "runtime/observe/Memory.h"
#include "runtime/run/Averages.h"
#include "runtime/support/Roles.h"

#include <span>

namespace penstock::runtime {

class Instance {
public:
  /// All devices are in this process.
  explicit Instance(const penstock_program &program);
  /// Those that are not local, by number, are reached by `transport`.
  Instance(const penstock_program &program,
           std::unique_ptr<Transport> transport, std::vector<bool> isLocal);
  ~Instance();

  /// Builds devices and channels; initial values come out of `files`.
  Error open(const std::vector<MappedFile> &files, bool isTraced);

  /// Returns true if devices reach other processes by themselves, which they do
  /// in connect(), once they are open everywhere.
  bool connects() const { return context.transport->connects(); }
  Error invite(std::string &invitation) {
    return context.transport->invite(invitation);
  }
  Error connect(std::string_view invitation,
                const std::function<bool(bool)> &haveAll) {
    return context.transport->connect(*localDevices.front(), invitation,
                                      haveAll);
  }
  /// Stops what is under way between processes; they end. May not return.
  void abort() const {
    // What devices compute of messages that have not come shall not be seen.
    isAborted.store(true);
    context.transport->abort();
  }

  /// Runs a segment of a schedule over `data` and calls `observe` from time to
  /// time and once after its end.
  Error run(const penstock_schedule &schedule, int64_t first, int64_t updates,
            int64_t version, const DataSet &data,
            const std::function<void()> &observe);

  /// On any thread: makes the segment that runs as short as it can become,
  /// soon. Only where all devices are in this process.
  void shrink();
  // Where they are not: the steps of Bound, of those that are.
  bool haveAllAsked() const { return Bound::haveAllAsked(listBegun()); }
  int64_t hold() { return context.bound.hold(listBegun()); }
  void release(int64_t most) { context.bound.release(most); }
  /// On any thread: gives processes time to agree on that, before the devices
  /// of this one begin more.
  void pause(int64_t nanoseconds) { context.bound.pause(nanoseconds); }
  /// Returns the number of updates of the last segment.
  int64_t updatesRun() const { return context.bound.updates(); }

  /// Copies the value that a variable has after `updates` updates to `values`,
  /// type.bytes long. `copy` counts its placements; its device is local.
  void read(const penstock_variable &variable, int64_t updates, char *values,
            uint32_t copy = 0) const;
  /// Gives the same value in pieces, in the order of its file if that is asked
  /// for.
  Error readPieces(const penstock_variable &variable, int64_t updates,
                   uint32_t copy, bool inOrderOfFile,
                   const TakePiece &take) const;
  /// Sets the value that a variable has on one device after `updates` updates.
  void write(const penstock_variable &variable, penstock_device &device,
             const char *values, int64_t updates = 0);

  /// A variable, and where its value goes or comes from.
  struct Target {
    const penstock_variable *variable;
    char *values;
  };
  struct Source {
    const penstock_variable *variable;
    const char *values;
  };
  /// Reads the values that these have after `updates` updates, each device its
  /// own.
  void read(std::span<const Target> targets, int64_t updates) const;
  /// Goes on after `updates` updates: variables have these values, and weights
  /// are prepacked again.
  Error goOn(std::span<const Source> sources, int64_t updates);
  /// Lets weights, as they are after `updates` updates, and averages change
  /// places; parameters are rounded and prepacked again. Twice leaves all as it
  /// was.
  Error exchange(std::span<const Average> averages, int64_t updates);

  /// The arenas that were allocated.
  std::vector<ArenaBytes> arenas() const;

  /// The devices of this process, in order.
  const std::vector<penstock_device *> &devices() const { return localDevices; }
  Endpoints &allEndpoints() { return context.endpoints; }
  const Positions &positions() const { return context.positions; }
  std::vector<TransferCount> countTransfers() const {
    return context.transport->count();
  }
  bool has(uint32_t device) const { return isLocal[device]; }
  /// Returns true if a device of this process has a copy of the variable.
  bool hasAny(const penstock_variable &variable) const {
    return std::any_of(variable.placements,
                       variable.placements + variable.placement_count,
                       [this](const penstock_placement &placement) {
                         return isLocal[placement.device];
                       });
  }
  /// The bytes that messages to other processes need besides.
  uint64_t transportBytes() const { return context.transport->getBytes(); }

  /// Other processes of this host leave too few cores. Before open().
  void setOversubscribed(bool value) { context.cores.areFew = value; }
  bool isOversubscribed() const {
    return penstock::runtime::isOversubscribed(context);
  }
  /// The cores of a local device.
  std::string describeCores(uint32_t device) const {
    return penstock::runtime::describeCores(shareOfCores(context, device));
  }

  /// Calls `look` before every task, on the thread of its device; with none,
  /// stops that. Not while a segment runs.
  void onMark(std::function<void(uint32_t task, int64_t number)> look) {
    context.onMark = std::move(look);
  }

  /// Calls `look` with the microbatch of each loss that is not finite, on a
  /// thread that must not wait; with none, stops that. Not while a segment
  /// runs.
  void onNotFinite(const std::function<void(int64_t microbatch)> &look);

  /// Looks at what forwards send from now on, or no longer. Not while a segment
  /// runs.
  void watchForwards(bool isOn);
  /// Returns the first stage of this process whose forward of a microbatch sent
  /// a value that is not finite, or -1; nothing where the host cannot look at
  /// all that they send.
  std::optional<int32_t> findNotFinite(int64_t microbatch) const;

  /// Chooses the GPUs of devices, in turn. Before open().
  void setGpus(std::vector<int> gpus) { context.gpus = std::move(gpus); }

  /// Has devices choose algorithms by what a file says or, where `measures` is
  /// set, by measurement. Before open().
  void setTuning(std::string path, bool measures) {
    context.tunePath = std::move(path);
    context.measures = measures;
  }

  /// Restricts what is traced. Before open().
  void setTraceSteps(const TraceSteps &steps) { traceSteps = steps; }

  /// False when the program has none of that name.
  bool setHyperparameter(const char *name, double value);
  /// Sets an integer, of which a double holds only those of 53 bits.
  void setIntegerHyperparameter(const char *name, int64_t value);
  /// Zero when the program has none of that name.
  double findHyperparameter(const char *name) const;

  const penstock_program &program;

private:
  Error check() const;
  Error prepackWeights(penstock_device &device, int64_t updates);
  Error openDevice(penstock_device &device,
                   const std::vector<MappedFile> &files);
  std::vector<const Begun *> listBegun() const;
  void buildEndpoints();
  Address addressOf(const penstock_variable &variable, int64_t updates,
                    uint32_t copy) const;

  TraceSteps traceSteps;
  mutable std::atomic<bool> isAborted{false};
  const std::vector<bool> isLocal;
  std::vector<std::unique_ptr<penstock_device>> deviceList; // or null: far
  std::vector<penstock_device *> localDevices;
  /// Goes before the devices do: its source thread writes to them.
  Context context;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_INSTANCE_H
