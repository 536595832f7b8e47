//===- Lifetimes.cpp - When a device needs its messages -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Read off the trace of the device function. Transfers with peers end in the
// order of their issue; those of a source or sink in one of their own.
//===----------------------------------------------------------------------===//

#include "passes/Program/Memory/Lifetimes.h"

#include "llvm/Support/MathExtras.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {
/// A channel, field and message.
using CellKey = std::tuple<Attribute, int64_t, int64_t>;
} // namespace

FailureOr<DeviceLives> penstock::getLifetimes(func::FuncOp function,
                                              ScheduleOp schedule,
                                              SymbolTableCollection &tables) {
  auto module = schedule->getParentOfType<ModuleOp>();
  SymbolTable &symbols = tables.getSymbolTable(module);
  DeviceLives lives;
  lives.microbatches = static_cast<int64_t>(schedule.getMicrobatches());
  // A replica has its share of them.
  auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
  for (auto stage : module.getOps<StageOp>())
    if (auto devices = stage.getDevices();
        devices && device && llvm::is_contained(*devices, device.getInt()))
      lives.microbatches = std::gcd(
          lives.microbatches,
          static_cast<int64_t>(schedule.getMicrobatches() / devices->size()));
  int64_t ring = 1;
  function.walk([&](SlotOp slot) {
    if (symbols.lookup<ChannelOp>(slot.getSymbol()))
      ring = std::max<int64_t>(ring, slot.getRing().value_or(1));
  });
  FailureOr<DeviceCode> code = DeviceCode::get(function, tables);
  if (failed(code))
    return failure();
  // Functions count waves of updates, where there are any.
  FailureOr<int64_t> filling = getUpdatesUntilSteady(
      *code, lives.microbatches * static_cast<int64_t>(schedule.getWave()));
  if (failed(filling))
    return failure();
  int64_t turn = llvm::divideCeilSigned(ring, lives.microbatches);
  // With many microbatches all rings turn over within one update, and where
  // nothing begins later, two show every update's beginning, its end and what
  // is between them.
  int64_t updates =
      hasManyMicrobatches(lives.microbatches) && turn == 1 && *filling == 1
          ? 2
          : std::max(turn, *filling) + turn + 2;
  FailureOr<std::vector<TraceEvent>> trace = traceDevice(*code, 0, updates, 0);
  if (failed(trace))
    return failure();
  lives.trace = std::move(*trace);

  llvm::DenseMap<CellKey, size_t> known;
  llvm::DenseMap<std::pair<Attribute, int64_t>, size_t> issued;
  std::map<size_t, std::pair<StringAttr, size_t>> leaving;
  auto isExternal = [&](StringAttr name) {
    auto channel = symbols.lookup<ChannelOp>(name);
    return channel &&
           (channel.getSource() || channel.getSink() || channel.getOwnQueue());
  };
  for (auto [index, event] : llvm::enumerate(lives.trace)) {
    for (const Access &access : event.accesses) {
      const CellRef &cell = access.cell;
      if (!symbols.lookup<ChannelOp>(cell.symbol))
        continue;
      auto [it, isNew] = known.try_emplace(
          CellKey(cell.symbol, cell.field, cell.number), lives.messages.size());
      if (isNew)
        lives.messages.push_back({cell, index, index});
      MessageLife &life = lives.messages[it->second];
      life.last = std::max(life.last, index);
      if (event.kind == TraceEvent::Send) {
        leaving[index] = {event.symbol, it->second};
        life.last = lives.trace.size() - 1;
      }
    }
    StringAttr channel = event.symbol;
    if (event.kind == TraceEvent::Send || event.kind == TraceEvent::Recv)
      issued[{channel, event.number}] = index;
    auto awaited = event.kind == TraceEvent::Await
                       ? issued.find({channel, event.number})
                       : issued.end();
    if (awaited == issued.end())
      continue;
    llvm::SmallVector<size_t> gone;
    for (auto it = leaving.begin();
         it != leaving.end() && it->first <= awaited->second;) {
      auto [sent, message] = it->second;
      bool isDone = isExternal(channel) ? sent == channel : !isExternal(sent);
      if (isDone)
        gone.push_back(message);
      it = isDone ? leaving.erase(it) : std::next(it);
    }
    // What goes to several stages stays until the last has it.
    for (size_t message : gone)
      if (llvm::none_of(leaving, [&](const auto &other) {
            return other.second.second == message;
          }))
        lives.messages[message].last = index;
  }
  return lives;
}
