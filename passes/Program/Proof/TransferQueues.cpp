//===- TransferQueues.cpp - What transports without tags need -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules N2 and N3. NCCL pairs the messages of two devices by their order alone,
// and starts a sum only where it is the next one of all its devices. The
// execution of all queues (S7) could not end where that fails; what it would
// show is who waits, not who is in a wrong place.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/ProgramMachine.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// Transfers of one device with another, in the order of its function.
using Order = std::vector<const TraceEvent *>;

} // namespace

static std::string nameTransfer(const TraceEvent &event) {
  return "@" + event.symbol.str() + "[" + std::to_string(event.number) + "]";
}

/// The order around the place where it differs.
static std::string draw(const Order &queue, size_t place) {
  constexpr size_t kBefore = 2, kBehind = 3;
  size_t begin = place > kBefore ? place - kBefore : 0;
  std::string text = begin ? "..., " : "";
  for (size_t i = begin; i < std::min(queue.size(), place + kBehind); ++i)
    text += (i > begin ? ", " : "") + nameTransfer(*queue[i]);
  return text + (place + kBehind < queue.size() ? ", ..." : "");
}

/// Returns the first place where two orders have transfers of other names. That
/// numbers fit and nothing is left over, other rules say.
static std::optional<size_t> findDifference(const Order &a, const Order &b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i]->symbol != b[i]->symbol)
      return i;
  return std::nullopt;
}

LogicalResult ProgramMachine::checkPairs(ArrayRef<Transfers> transfers) {
  // 1. By sender and receiver: what leaves the one, what comes to the other.
  struct Pair {
    Order sent, received;
  };
  std::map<std::pair<int64_t, int64_t>, Pair> pairs;
  for (auto [device, own] : llvm::zip(devices, transfers))
    for (const TraceEvent &event : own) {
      if ((event.kind != TraceEvent::Send && event.kind != TraceEvent::Recv) ||
          isExternal(event.symbol) || hasOwnQueue(event.symbol))
        continue;
      std::optional<int64_t> peer =
          findPeer(event.kind, event.symbol, event.number);
      if (!peer)
        continue;
      if (event.kind == TraceEvent::Send)
        pairs[{device.number, *peer}].sent.push_back(&event);
      else
        pairs[{*peer, device.number}].received.push_back(&event);
    }

  // 2. In the same order.
  for (auto &[key, pair] : pairs) {
    std::optional<size_t> place = findDifference(pair.sent, pair.received);
    if (!place)
      continue;
    auto [sender, receiver] = key;
    const TraceEvent &send = *pair.sent[*place];
    InFlightDiagnostic diagnostic =
        send.op->emitError()
        << "N2: message " << *place << " from device " << sender
        << " to device " << receiver << " in a segment of " << updates
        << " updates is sent as " << nameTransfer(send) << " and received as "
        << nameTransfer(*pair.received[*place]);
    diagnostic.attachNote(schedule.getLoc())
        << "device " << sender << " sends " << draw(pair.sent, *place);
    diagnostic.attachNote(schedule.getLoc())
        << "device " << receiver << " receives " << draw(pair.received, *place);
    return diagnostic;
  }
  return success();
}

LogicalResult ProgramMachine::checkSums(ArrayRef<Transfers> transfers) {
  // The devices of each sum, and the sums of each device.
  llvm::DenseMap<Attribute, llvm::SmallSetVector<int64_t, 4>> members;
  std::map<int64_t, Order> sums;
  for (auto [device, own] : llvm::zip(devices, transfers))
    for (const TraceEvent &event : own) {
      if (event.kind != TraceEvent::Sum ||
          !symbols.lookup<GroupOp>(event.symbol))
        continue;
      sums[device.number].push_back(&event);
      if (!members.contains(event.symbol))
        members[event.symbol] = getDevices(event.symbol);
    }
  auto listCommon = [&](const Order &queue, int64_t with) {
    Order common;
    for (const TraceEvent *event : queue)
      if (members[event->symbol].contains(with))
        common.push_back(event);
    return common;
  };
  for (auto first = sums.begin(); first != sums.end(); ++first)
    for (auto second = std::next(first); second != sums.end(); ++second) {
      Order a = listCommon(first->second, second->first);
      Order b = listCommon(second->second, first->first);
      std::optional<size_t> place = findDifference(a, b);
      if (!place)
        continue;
      InFlightDiagnostic diagnostic =
          a[*place]->op->emitError()
          << "N3: sum " << *place << " of devices " << first->first << " and "
          << second->first << " in a segment of " << updates << " updates is "
          << nameTransfer(*a[*place]) << " on device " << first->first
          << " and " << nameTransfer(*b[*place]) << " on device "
          << second->first;
      diagnostic.attachNote(schedule.getLoc())
          << "device " << first->first << " sums " << draw(a, *place);
      diagnostic.attachNote(schedule.getLoc())
          << "device " << second->first << " sums " << draw(b, *place);
      return diagnostic;
    }
  return success();
}

LogicalResult ProgramMachine::checkOrder() {
  std::vector<Transfers> transfers;
  for (const Device &device : devices) {
    Transfers &own = transfers.emplace_back();
    DeviceRun run(*device.code, arguments[0], arguments[1], arguments[2]);
    LogicalResult ran = run.forEachEvent([&](TraceEvent &event) {
      if (event.kind != TraceEvent::Send && event.kind != TraceEvent::Recv &&
          event.kind != TraceEvent::Sum)
        return;
      event.accesses.clear();
      own.push_back(event);
    });
    if (failed(ran))
      return failure();
  }
  return success(succeeded(checkPairs(transfers)) &&
                 succeeded(checkSums(transfers)));
}
