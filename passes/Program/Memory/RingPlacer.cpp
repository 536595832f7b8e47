//===- RingPlacer.cpp - Places by one way of placing slots ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See RingPlacer.h.
//===----------------------------------------------------------------------===//

#include "passes/Program/Memory/RingPlacer.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace penstock;

void RingPlacer::formRecords() {
  for (auto [index, ring] : llvm::enumerate(rings)) {
    const RingUse &use = uses[index];
    auto same = llvm::find_if(records, [&](const Record &record) {
      if (slots == Slots::Fields)
        return false;
      const MessageRing &other = rings[record.rings.front()];
      const RingUse &otherUse = uses[record.rings.front()];
      return other.schedule == ring.schedule && other.channel == ring.channel &&
             other.count == ring.count && otherUse.any == use.any &&
             otherUse.slots == use.slots;
    });
    if (same == records.end())
      same = records.insert(records.end(), Record());
    same->rings.push_back(index);
    same->bytes += ring.bytes;
    same->count = ring.count;
  }
  if (slots != Slots::Ring) {
    std::vector<Record> whole = std::exchange(records, {});
    for (const Record &record : whole) {
      bool isTold = !uses[record.rings.front()].slots.empty();
      for (int64_t slot = 0; slot < (isTold ? record.count : 1); ++slot) {
        records.push_back(record);
        if (!isTold)
          continue;
        records.back().slot = slot;
        records.back().count = 1;
      }
    }
  }
  for (Record &record : records) {
    const RingUse &use = uses[record.rings.front()];
    if (record.slot) {
      record.firstSlot = slotUses.size();
      slotUses.push_back(&use.of(*record.slot));
      continue;
    }
    if (use.slots.empty()) {
      record.bytes *= record.count;
      record.count = 1;
    }
    record.firstSlot = slotUses.size();
    for (int64_t slot = 0; slot < record.count; ++slot)
      slotUses.push_back(&use.of(slot));
  }
}

void RingPlacer::roundUp() {
  // A quarter more is worth a place that fits.
  constexpr int64_t kShare = 4;
  int64_t size = 0;
  for (size_t index : orderByFalling(
           records.size(), [&](size_t i) { return records[i].bytes; })) {
    Record &record = records[index];
    if (!record.slot)
      continue;
    if (record.bytes + size / kShare < size)
      size = 0;
    size = std::max(size, record.bytes);
    record.bytes = size;
  }
}

/// Calls `act` with the begin and the end of each run of set bits.
static void forEachRun(const llvm::BitVector &bits,
                       llvm::function_ref<void(unsigned, unsigned)> act) {
  for (int begin = bits.find_first(); begin >= 0;) {
    int end = bits.find_next_unset(begin);
    act(begin, end < 0 ? bits.size() : end);
    begin = end < 0 ? -1 : bits.find_next(end);
  }
}

/// Returns the bytes that are alive at each event, of the records that count.
std::vector<int64_t>
RingPlacer::getLive(llvm::function_ref<bool(const Record &)> counts) const {
  // Where they begin and end, then the sums of that.
  std::vector<int64_t> live(uses.front().any.size() + 1);
  for (const Record &record : records)
    for (int64_t slot = 0; counts(record) && slot < record.count; ++slot)
      forEachRun(*slotUses[record.firstSlot + slot],
                 [&](unsigned begin, unsigned end) {
                   live[begin] += record.bytes;
                   live[end] -= record.bytes;
                 });
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  return live;
}

/// Returns by record the most of `live` while its first slot is in use.
std::vector<int64_t> RingPlacer::getPressures(std::vector<int64_t> live) const {
  // Level i has the most of the 2^i events from each on (Bender and
  // Farach-Colton, The LCA Problem Revisited, 2000, section 3).
  std::vector<std::vector<int64_t>> levels = {std::move(live)};
  for (size_t half = 1; 2 * half <= levels.front().size(); half *= 2) {
    const std::vector<int64_t> &last = levels.back();
    std::vector<int64_t> next(last.size() - half);
    for (size_t i = 0; i < next.size(); ++i)
      next[i] = std::max(last[i], last[i + half]);
    levels.push_back(std::move(next));
  }
  std::vector<int64_t> pressures;
  for (const Record &record : records) {
    int64_t most = 0;
    forEachRun(*slotUses[record.firstSlot], [&](unsigned begin, unsigned end) {
      unsigned level = llvm::Log2_32(end - begin);
      most = std::max(
          {most, levels[level][begin], levels[level][end - (1U << level)]});
    });
    pressures.push_back(most);
  }
  return pressures;
}

bool RingPlacer::conflict(size_t a, size_t b) {
  char &known = conflicts[a * slotUses.size() + b];
  if (known == kUnknown)
    known = slotUses[a]->anyCommon(*slotUses[b]) ? kYes : kNo;
  return known == kYes;
}

/// The first place at which no slot meets one of a record in `placed`. Every
/// step goes no further than what is in the way makes necessary.
int64_t RingPlacer::findPlace(const Record &record,
                              ArrayRef<const Record *> placed) {
  int64_t at = 0;
  bool moved = true;
  while (moved) {
    moved = false;
    for (const Record *other : placed) {
      for (int64_t slot = 0; slot < record.count; ++slot) {
        int64_t begin = at + slot * record.bytes;
        int64_t first =
            std::max<int64_t>(0, (begin - other->at) / other->bytes);
        for (int64_t i = first; i < other->count; ++i) {
          int64_t otherBegin = other->at + i * other->bytes;
          if (otherBegin >= begin + record.bytes)
            break;
          if (otherBegin + other->bytes <= begin ||
              !conflict(record.firstSlot + slot, other->firstSlot + i))
            continue;
          at = otherBegin + other->bytes - slot * record.bytes;
          begin = at + slot * record.bytes;
          moved = true;
        }
      }
    }
  }
  return at;
}

/// The same among records of one slot, with `placed` in the order of places.
int64_t RingPlacer::findSinglePlace(const Record &record,
                                    ArrayRef<const Record *> placed) {
  int64_t at = 0;
  for (const Record *other : placed) {
    if (other->at >= at + record.bytes)
      break;
    if (other->getEnd() > at && conflict(record.firstSlot, other->firstSlot))
      at = other->getEnd();
  }
  return at;
}

Placement RingPlacer::place(ArrayRef<size_t> order) {
  Placement result;
  result.extents.resize(records.size());
  SmallVector<const Record *> placed;
  auto isLower = [](const Record *a, const Record *b) { return a->at < b->at; };
  for (size_t index : order) {
    Record &record = records[index];
    if (slots == Slots::Ring) {
      record.at = findPlace(record, placed);
      placed.push_back(&record);
    } else {
      record.at = findSinglePlace(record, placed);
      placed.insert(llvm::upper_bound(placed, &record, isLower), &record);
    }
    result.extents[index] = {record.at, record.getEnd()};
  }
  return result;
}

int64_t RingPlacer::run(int64_t base, unsigned shares) {
  if (records.empty())
    return base;
  auto orderBy = [&](auto key) {
    return orderByFalling(records.size(),
                          [&](size_t index) { return key(records[index]); });
  };
  std::vector<int64_t> live = getLive([](const Record &) { return true; });
  std::vector<int64_t> scratch = getLive([&](const Record &record) {
    return rings[record.rings.front()].isScratch;
  });
  // No arena that wastes nothing ends earlier.
  int64_t bound = *llvm::max_element(live);
  std::vector<int64_t> pressures = getPressures(std::move(live));
  std::vector<int64_t> scratchPressures = getPressures(std::move(scratch));
  std::vector<std::vector<size_t>> orders = {
      orderBy([](const Record &) { return 0; }),
      orderBy([](const Record &r) { return r.count * r.bytes; }),
      orderBy([](const Record &r) { return r.bytes; }),
      // Of the same size, who comes first chooses first.
      orderBy([&](const Record &r) {
        return std::pair(r.bytes, -slotUses[r.firstSlot]->find_first());
      }),
      orderBy([&](const Record &r) {
        return -slotUses[r.firstSlot]->find_first();
      }),
      orderBy([&](const Record &r) {
        return std::pair(-slotUses[r.firstSlot]->find_first(), r.bytes);
      }),
      orderBy([&](const Record &r) {
        return std::pair(slotUses[r.firstSlot]->find_last(), r.bytes);
      }),
      // What is alive when most is.
      orderByFalling(
          records.size(),
          [&](size_t i) { return std::pair(pressures[i], records[i].bytes); }),
      orderByFalling(records.size(),
                     [&](size_t i) {
                       return std::pair(
                           pressures[i],
                           -slotUses[records[i].firstSlot]->find_first());
                     }),
      orderBy(
          [&](const Record &r) { return uses[r.rings.front()].any.count(); }),
      // How much is in use besides.
      orderByFalling(records.size(),
                     [&](size_t i) { return scratchPressures[i]; })};
  // Temporaries first, since messages reach into what they leave free; or where
  // they are in the way of less.
  std::vector<std::vector<size_t>> mixed = orders;
  for (std::vector<size_t> &order : orders) {
    std::vector<size_t> all = std::exchange(order, {});
    for (bool areScratch : {true, false})
      llvm::copy_if(all, std::back_inserter(order), [&](size_t index) {
        return rings[records[index].rings.front()].isScratch == areScratch;
      });
  }
  llvm::append_range(orders, mixed);
  // Steps, not seconds, so that plans do not change.
  constexpr size_t kMostSteps = 60'000'000, kMostAttempts = 10'000;
  auto attempts = static_cast<unsigned>(
      std::min(kMostAttempts,
               kMostSteps / (slotUses.size() * slotUses.size()) + 1) /
          shares +
      1);
  int64_t end = 0;
  searchOrder(orders, bound, attempts, [&](ArrayRef<size_t> order) {
    Placement placed = place(order);
    end = placed.getEnd();
    return placed;
  });
  for (const Record &record : records) {
    int64_t at = base + record.at;
    for (size_t index : record.rings) {
      MessageRing &ring = rings[index];
      if (record.slot) {
        ring.places.resize(ring.count);
        ring.places[*record.slot] = at;
        at += ring.bytes;
        continue;
      }
      ring.at = at;
      // A record that is placed as a whole has its rings one after the other.
      bool isWhole = record.count != ring.count;
      ring.stride = isWhole ? ring.bytes : record.bytes;
      at += isWhole ? ring.bytes * ring.count : ring.bytes;
    }
  }
  return base + end;
}
