//===- Communicator.cpp - The processes of a run, as NCCL has them --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call of a communicator that does not block may return before it is done.
// Until it is, nothing else may be called but what asks for it.
//===----------------------------------------------------------------------===//

#include "runtime/transport/nccl/Communicator.h"

#include "runtime/support/Wait.h"

#include <algorithm>
#include <chrono>
#include <unistd.h>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

/// A message is waited for as long as the control connections stand.
constexpr int64_t kNever = INT64_MAX;

static int64_t getDeadline(double seconds) {
  return nanoseconds() + int64_t(seconds * 1e9);
}

static void nap(int64_t &length) {
  constexpr int64_t kLongest = 1000000;
  usleep(useconds_t(length / 1000));
  length = std::min(2 * length, kLongest);
}

Error Communicator::failed(int status, const char *call) const {
  // NCCL says more of the last error of a thread, or of a communicator.
  const char *last = nccl.ncclGetLastError(communicator);
  std::string text =
      format("%s failed: %s%s%s", call, nccl.ncclGetErrorString(status),
             last && *last ? ": " : "", last ? last : "");
  if (status == ncclRemoteError || status == ncclSystemError)
    return {PENSTOCK_PEER_FAILED, text};
  return defect("%s", text.c_str());
}

Error Communicator::settle(int status, const char *call, int64_t deadline) {
  // Most calls are done when they return, or a moment later.
  constexpr int kSpins = 20;
  int64_t length = 20000;
  for (int i = 0; status == ncclInProgress; ++i) {
    while (isAborted)
      pause();
    if (i > kSpins)
      nap(length);
    if (int failure = nccl.ncclCommGetAsyncError(communicator, &status))
      return failed(failure, call);
    if (status == ncclInProgress && nanoseconds() > deadline)
      return {PENSTOCK_PEER_FAILED,
              format("%s did not end in time (--start-timeout)", call)};
  }
  return status ? failed(status, call) : Error();
}

Error Communicator::invite(UniqueId &id) const {
  int status = nccl.ncclGetUniqueId(&id);
  return status ? failed(status, "ncclGetUniqueId") : Error();
}

Error Communicator::open(const UniqueId &id, int rank, int size,
                         double seconds) {
  NcclConfig config;
  config.blocking = 0;
  // Transfers share the GPU with what computes.
  config.maxCTAs = 4;
  std::lock_guard<std::timed_mutex> lock(calls);
  return settle(
      nccl.ncclCommInitRankConfig(&communicator, size, id, rank, &config),
      "ncclCommInitRankConfig", getDeadline(seconds));
}

bool Communicator::registerMemory(uint64_t memory, uint64_t bytes) {
  std::lock_guard<std::timed_mutex> lock(calls);
  void *handle = nullptr;
  if (nccl.ncclCommRegister(communicator, reinterpret_cast<void *>(memory),
                            bytes, &handle))
    return false;
  // NCCL returns none where the environment forbids registration.
  if (handle)
    handles.push_back(handle);
  return true;
}

void Communicator::deregisterMemory() {
  std::lock_guard<std::timed_mutex> lock(calls);
  for (void *handle : handles)
    (void)nccl.ncclCommDeregister(communicator, handle);
  handles.clear();
}

Error Communicator::warmUp(const Driver &driver, std::span<const int> peers,
                           uint64_t memory, Stream stream, double seconds) {
  constexpr uint64_t kWord = 4;
  if (peers.empty())
    return {};
  int64_t deadline = getDeadline(seconds);
  {
    std::lock_guard<std::timed_mutex> lock(calls);
    int status = nccl.ncclGroupStart();
    for (int peer : peers) {
      auto to = reinterpret_cast<void *>(memory);
      auto from = reinterpret_cast<const void *>(memory + kWord);
      for (int next :
           {nccl.ncclSend(from, kWord, ncclUint8, peer, communicator, stream),
            nccl.ncclRecv(to, kWord, ncclUint8, peer, communicator, stream)})
        if (!status && next != ncclInProgress)
          status = next;
      memory += 2 * kWord;
    }
    int ended = nccl.ncclGroupEnd();
    if (Error error =
            settle(status ? status : ended, "connecting processes", deadline))
      return error;
  }

  // What the stream has now ends when the others have come.
  Event event = nullptr;
  if (int status = driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))
    return describeFailure(driver, status, "cuEventCreate");
  int status = driver.cuEventRecord(event, stream);
  bool isLate = false;
  for (int64_t length = 20000; !status && !isLate; nap(length)) {
    status = driver.cuEventQuery(event);
    if (!status)
      break;
    if (status == CUDA_ERROR_NOT_READY)
      status = CUDA_SUCCESS;
    isLate = nanoseconds() > deadline;
  }
  (void)driver.cuEventDestroy(event);
  if (isLate)
    return {PENSTOCK_PEER_FAILED, "connecting processes did not end in time "
                                  "(--start-timeout)"};
  return status ? describeFailure(driver, status, "connecting processes")
                : Error();
}

Error Communicator::begin() {
  calls.lock();
  isGrouped = true;
  int status = nccl.ncclGroupStart();
  return status ? failed(status, "ncclGroupStart") : Error();
}

Error Communicator::end() {
  Error error = settle(nccl.ncclGroupEnd(), "ncclGroupEnd", kNever);
  isGrouped = false;
  calls.unlock();
  return error;
}

Error Communicator::send(uint64_t from, uint64_t bytes, int peer,
                         Stream stream) {
  auto call = [&] {
    return nccl.ncclSend(reinterpret_cast<const void *>(from), bytes, ncclUint8,
                         peer, communicator, stream);
  };
  // Of a group, all that is left to be done is done at its end.
  if (isGrouped) {
    int status = call();
    return status && status != ncclInProgress ? failed(status, "ncclSend")
                                              : Error();
  }
  std::lock_guard<std::timed_mutex> lock(calls);
  return settle(call(), "ncclSend", kNever);
}

Error Communicator::receive(uint64_t to, uint64_t bytes, int peer,
                            Stream stream) {
  auto call = [&] {
    return nccl.ncclRecv(reinterpret_cast<void *>(to), bytes, ncclUint8, peer,
                         communicator, stream);
  };
  if (isGrouped) {
    int status = call();
    return status && status != ncclInProgress ? failed(status, "ncclRecv")
                                              : Error();
  }
  std::lock_guard<std::timed_mutex> lock(calls);
  return settle(call(), "ncclRecv", kNever);
}

Error Communicator::check() {
  // One that issues would learn of it itself.
  if (!communicator || isAborted || !calls.try_lock())
    return {};
  int status = ncclSuccess;
  int failure = nccl.ncclCommGetAsyncError(communicator, &status);
  Error error;
  if (failure || (status && status != ncclInProgress))
    error = failed(failure ? failure : status, "a transfer");
  calls.unlock();
  return error;
}

void Communicator::close() {
  if (!communicator || isAborted)
    return;
  constexpr double kSeconds = 5;
  deregisterMemory();
  std::lock_guard<std::timed_mutex> lock(calls);
  // Where another process is gone, nothing ends.
  bool isFinal = !settle(nccl.ncclCommFinalize(communicator),
                         "ncclCommFinalize", getDeadline(kSeconds));
  (void)(isFinal ? nccl.ncclCommDestroy(communicator)
                 : nccl.ncclCommAbort(communicator));
  communicator = nullptr;
}

void Communicator::abort() {
  if (!communicator || isAborted.exchange(true))
    return;
  // Nobody should be in NCCL; whoever is for long is stuck there.
  bool isLocked = calls.try_lock_for(std::chrono::milliseconds(200));
  (void)nccl.ncclCommAbort(communicator);
  if (isLocked)
    calls.unlock();
}
