//===- AllReduce.cpp - Sums over the devices of a process -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two words that only rise: cells are written before `posted` (release) and
// read after it (acquire), sums before and after `done` likewise. A device
// posts the next sum only when all have done this one, so one set of cells is
// enough.
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/AllReduce.h"

#include "runtime/transport/AddValues.h"

#include <algorithm>

using namespace penstock::runtime;

AllReduce::AllReduce(const penstock_group &description,
                     const std::vector<bool> &isLocal)
    : description(description),
      cells(uint64_t(description.summand_count) * description.type_count) {
  auto isHere = [&](uint32_t device) { return isLocal[device]; };
  const uint32_t *devices = description.devices;
  uint32_t count = description.summand_count;
  far = std::any_of(devices, devices + count, isHere) &&
        !std::all_of(devices, devices + count, isHere);
  for (uint32_t i = 0; i < description.summand_count; ++i) {
    if (!find(description.devices[i]))
      sides.push_back({description.devices[i], 0});
    find(description.devices[i])->cells += description.type_count;
  }
  workspaces.resize(sides.size());
  for (Workspace &workspace : workspaces)
    workspace.values.resize(description.summand_count);
}

bool AllReduce::canSum(const penstock_group &description) {
  return std::all_of(
      description.types, description.types + description.type_count,
      [](const penstock_tensor &type) {
        return type.element == PENSTOCK_F32 || type.element == PENSTOCK_F64;
      });
}

/// Elements of one summand that are on the host at a time, in bytes.
constexpr uint64_t kPieceBytes = 64 << 10;

void AllReduce::open(const std::vector<DeviceMemory *> &devices) {
  for (Side &side : sides) {
    side.memory = devices[side.device];
    if (!side.memory)
      continue;
    isHostAddressable &= side.memory->isHostAddressable();
    side.ready = side.memory->createMarker();
  }
  auto reachesAll = [&](const Side &side) {
    return std::all_of(sides.begin(), sides.end(), [&](const Side &other) {
      return side.memory->reaches(*other.memory);
    });
  };
  isOnDevices = !far && !isHostAddressable &&
                std::all_of(sides.begin(), sides.end(), reachesAll);
  for (Side &side : sides)
    if (side.memory && (far || isOnDevices))
      side.done = side.memory->createMarker();
  for (Workspace &workspace : workspaces)
    if (!isHostAddressable && !isOnDevices && !far)
      workspace.pieces.resize(description.summand_count * kPieceBytes);
}

void AllReduce::reset() {
  for (Side &side : sides)
    side = {side.device, side.cells, side.memory, side.ready, side.done};
  posted.reset(0);
  done.reset(0);
}

AllReduce::Side *AllReduce::find(uint32_t device) {
  for (Side &side : sides)
    if (side.device == device)
      return &side;
  return nullptr;
}

bool AllReduce::post(Side &side, int64_t t, const Address *values) {
  if (side.posted == 0)
    side.base = t;
  else if (t != side.base + side.posted || side.completed != side.posted)
    return false;
  ++side.posted;
  for (uint32_t i = 0; i < description.summand_count; ++i) {
    if (description.devices[i] != side.device)
      continue;
    for (uint32_t j = 0; j < description.type_count; ++j, ++values)
      cells[uint64_t(i) * description.type_count + j] = {
          side.memory, *values, side.memory->hostAddress(*values)};
  }
  if (side.ready)
    side.memory->mark(*side.ready);
  posted.bump(/*wake=*/true);
  return true;
}

bool AllReduce::areReady() const {
  return std::all_of(sides.begin(), sides.end(), [](const Side &side) {
    return !side.ready || side.ready->isReached();
  });
}

void AllReduce::download(void *host, uint32_t summand, uint32_t type) const {
  const Cell &cell = cells[uint64_t(summand) * description.type_count + type];
  cell.memory->download(host, cell.at, description.types[type].bytes);
}

void AllReduce::upload(uint32_t summand, uint32_t type,
                       const void *host) const {
  const Cell &cell = cells[uint64_t(summand) * description.type_count + type];
  cell.memory->upload(cell.at, host, description.types[type].bytes);
}

template <typename T>
void AllReduce::add(Workspace &workspace, uint64_t begin, uint64_t end) const {
  const uint32_t *resets = description.resets;
  workspace.added.assign({workspace.values[0]});
  for (uint32_t k = 1; k < description.summand_count; ++k)
    if (resets[k] != PENSTOCK_SUM_RECEIVES)
      workspace.added.push_back(workspace.values[k]);
  addValues<T>(workspace.added, begin, end,
               [&](uint64_t at, const T *sums, uint64_t count) {
                 for (uint32_t k = 0; k < description.summand_count; ++k) {
                   T *to = static_cast<T *>(workspace.values[k]) + at;
                   if (resets[k] == PENSTOCK_SUM_RESETS)
                     std::fill_n(to, count, T(0));
                   else
                     std::memcpy(to, sums, count * sizeof(T));
                 }
               });
}

template <typename T>
void AllReduce::sumValues(uint64_t index, uint32_t type, uint64_t begin,
                          uint64_t end) {
  uint32_t count = description.summand_count;
  auto cell = [&](uint32_t k) -> const Cell & {
    return cells[uint64_t(k) * description.type_count + type];
  };
  Workspace &workspace = workspaces[index];
  if (isHostAddressable) {
    for (uint32_t k = 0; k < count; ++k)
      workspace.values[k] = cell(k).host;
    add<T>(workspace, begin, end);
    return;
  }
  for (uint32_t k = 0; k < count; ++k)
    workspace.values[k] = &workspace.pieces[k * kPieceBytes];
  for (uint64_t next; begin < end; begin = next) {
    next = std::min(end, begin + kPieceBytes / sizeof(T));
    uint64_t at = begin * sizeof(T), bytes = (next - begin) * sizeof(T);
    for (uint32_t k = 0; k < count; ++k)
      if (k == 0 || description.resets[k] != PENSTOCK_SUM_RECEIVES)
        cell(k).memory->download(workspace.values[k], cell(k).at + at, bytes);
    add<T>(workspace, 0, next - begin);
    for (uint32_t k = 0; k < count; ++k)
      cell(k).memory->upload(cell(k).at + at, workspace.values[k], bytes);
  }
}

uint64_t AllReduce::sizeOf(uint32_t type) const {
  return description.types[type].element == PENSTOCK_F64 ? 8 : 4;
}

uint64_t AllReduce::getBegin(uint32_t type, uint64_t index) const {
  // Shares end at cache lines.
  constexpr uint64_t kLine = 64;
  uint64_t bytes = description.types[type].bytes, size = sizeOf(type);
  uint64_t lines = (bytes + kLine - 1) / kLine;
  return std::min(lines * index / sides.size() * (kLine / size), bytes / size);
}

void AllReduce::sumShare(uint64_t index) {
  for (uint32_t j = 0; j < description.type_count; ++j)
    if (description.types[j].element == PENSTOCK_F64)
      sumValues<double>(index, j, getBegin(j, index), getBegin(j, index + 1));
    else
      sumValues<float>(index, j, getBegin(j, index), getBegin(j, index + 1));
}

/// Puts the share on the device, behind the values.
void AllReduce::sumOnDevice(uint64_t index) {
  Side &side = sides[index];
  std::vector<Marker *> ready;
  for (const Side &other : sides)
    ready.push_back(other.ready.get());
  std::vector<SumPart::Value> values(description.summand_count);
  for (uint32_t j = 0; j < description.type_count; ++j) {
    uint64_t begin = getBegin(j, index), end = getBegin(j, index + 1);
    for (uint32_t k = 0; k < description.summand_count; ++k) {
      const Cell &cell = cells[uint64_t(k) * description.type_count + j];
      values[k] = {cell.memory, cell.at + begin * sizeOf(j),
                   description.resets[k]};
    }
    side.memory->sum({values, sizeOf(j) == 8, (end - begin) * sizeOf(j)}, ready,
                     *side.done);
  }
}

/// Work that a device issues from now on comes after all shares. By then no
/// value is read, so those that are reset may be.
void AllReduce::takeSums(Side &side) {
  for (const Side &other : sides)
    side.memory->waitFor(*other.done);
  for (uint32_t k = 0; k < description.summand_count; ++k)
    if (description.devices[k] == side.device &&
        description.resets[k] == PENSTOCK_SUM_RESETS)
      for (uint32_t j = 0; j < description.type_count; ++j)
        side.memory->clear(getAddress(k, j), description.types[j].bytes);
}

void AllReduce::nap(const Side &side, int64_t nanoseconds) {
  uint32_t value = done.load();
  if (!WaitWord::hasReached(value, uint32_t(side.completed + 1)))
    done.park(value, nanoseconds);
}

void AllReduce::complete(Side &side, WaitPolicy policy) {
  uint32_t target = uint32_t(side.completed + 1) * uint32_t(sides.size());
  posted.wait(target, policy);
  uint64_t index = uint64_t(&side - sides.data());
  if (isOnDevices) {
    sumOnDevice(index);
  } else {
    for (const Side &summand : sides)
      if (summand.ready)
        summand.ready->synchronize();
    sumShare(index);
  }
  // Where devices add up, all shares are on streams then, behind markers that
  // nobody sets again before all have posted the next sum.
  done.bump(/*wake=*/true);
  done.wait(target, policy);
  if (isOnDevices)
    takeSums(side);
  ++side.completed;
}
