//===- PlaceRings.cpp - Places for queues of messages ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fields of a channel that are alive together form one record per message.
// Records are placed first fit, in an order that is searched for; a slot may
// share bytes with slots, and with temporaries, that are never in use when it
// is.
//===----------------------------------------------------------------------===//

#include "passes/Program/PlaceRings.h"

#include "passes/Program/Packing.h"

#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace penstock;

/// Longer rings are placed as a whole.
static constexpr int64_t kMostSlots = 64;

std::vector<RingUse> penstock::getRingUses(ArrayRef<MessageRing> rings,
                                           ArrayRef<DeviceLives> schedules) {
  size_t events = 1;
  for (const DeviceLives &lives : schedules)
    events += lives.trace.size();
  std::map<std::pair<StringRef, int64_t>, RingUse *> useOf;
  std::vector<RingUse> uses(rings.size());
  for (auto [ring, use] : llvm::zip_equal(rings, uses)) {
    use.any.resize(events);
    if (ring.count > 1 && ring.count <= kMostSlots)
      use.slots.assign(ring.count, llvm::BitVector(events));
    useOf[{ring.channel.getValue(), ring.field}] = &use;
  }
  size_t begin = 0;
  for (const DeviceLives &lives : schedules) {
    std::map<RingUse *, llvm::BitVector> drifting;
    for (const MessageLife &life : lives.messages) {
      auto found = useOf.find({life.cell.symbol.getValue(), life.cell.field});
      if (found == useOf.end())
        continue;
      RingUse *use = found->second;
      size_t from = begin + life.first, to = begin + life.last + 1;
      use->any.set(from, to);
      if (use->slots.empty())
        continue;
      if (lives.isSteady(life.cell.ring)) {
        use->slots[life.cell.getIndex()].set(from, to);
      } else {
        llvm::BitVector &bits = drifting[use];
        bits.resize(events);
        bits.set(from, to);
      }
    }
    // Sooner or later every slot is used like every other one.
    for (auto &[use, bits] : drifting)
      for (llvm::BitVector &slot : use->slots)
        slot |= bits;
    begin += lives.trace.size();
  }
  for (RingUse &use : uses)
    if (use.any.none()) {
      use.any.set();
      use.slots.clear();
    }
  return uses;
}

namespace {

/// What is placed together: slot i is at `at + i * bytes`.
struct Record {
  llvm::SmallVector<size_t> rings;
  int64_t bytes = 0, count = 1;
  /// The first slot of all, and how far each has to be from the base.
  size_t firstSlot = 0;
  std::vector<int64_t> floors;
  int64_t at = 0;

  int64_t getEnd() const { return at + count * bytes; }
};

class RingPlacer {
public:
  RingPlacer(MutableArrayRef<MessageRing> rings,
             ArrayRef<DeviceLives> schedules, ArrayRef<int64_t> scratch,
             int64_t base, int64_t sharedBytes, int64_t alignment)
      : rings(rings), uses(getRingUses(rings, schedules)), base(base) {
    formRecords();
    needed.assign(uses.empty() ? 0 : uses.front().any.size(), 0);
    for (auto [event, bytes] : llvm::enumerate(scratch))
      needed[event] = static_cast<int64_t>(llvm::alignTo(bytes, alignment));
    if (!needed.empty())
      needed.back() = sharedBytes;
    for (Record &record : records)
      setFloors(record);
    conflicts.assign(slotUses.size() * slotUses.size(), kUnknown);
  }

  int64_t run();

private:
  void formRecords();
  void setFloors(Record &record);
  int64_t getBound() const;
  Placement place(ArrayRef<size_t> order);
  int64_t findPlace(const Record &record, ArrayRef<const Record *> placed);
  bool conflict(size_t a, size_t b);

  enum : char { kUnknown, kNo, kYes };
  MutableArrayRef<MessageRing> rings;
  std::vector<RingUse> uses;
  int64_t base;
  /// By event, behind the base.
  std::vector<int64_t> needed;
  std::vector<Record> records;
  /// By slot of all records; one for a record that is placed as a whole.
  std::vector<const llvm::BitVector *> slotUses;
  std::vector<char> conflicts;
};

} // namespace

void RingPlacer::formRecords() {
  std::vector<const RingUse *> useOf;
  for (auto [index, ring] : llvm::enumerate(rings)) {
    const RingUse &use = uses[index];
    auto same = llvm::find_if(records, [&](const Record &record) {
      const MessageRing &other = rings[record.rings.front()];
      const RingUse &otherUse = uses[record.rings.front()];
      return other.channel == ring.channel && other.count == ring.count &&
             otherUse.any == use.any && otherUse.slots == use.slots;
    });
    if (same == records.end())
      same = records.insert(records.end(), Record());
    same->rings.push_back(index);
    same->bytes += ring.bytes;
    same->count = ring.count;
  }
  for (Record &record : records) {
    const RingUse &use = uses[record.rings.front()];
    if (use.slots.empty()) {
      record.bytes *= record.count;
      record.count = 1;
    }
    record.firstSlot = slotUses.size();
    for (int64_t slot = 0; slot < record.count; ++slot)
      slotUses.push_back(&use.of(slot));
  }
}

void RingPlacer::setFloors(Record &record) {
  for (int64_t slot = 0; slot < record.count; ++slot) {
    int64_t floor = 0;
    for (unsigned event : slotUses[record.firstSlot + slot]->set_bits())
      floor = std::max(floor, needed[event]);
    record.floors.push_back(floor);
  }
}

/// Where arenas end that waste nothing.
int64_t RingPlacer::getBound() const {
  std::vector<int64_t> live = needed;
  for (const Record &record : records)
    for (int64_t slot = 0; slot < record.count; ++slot)
      for (unsigned event : slotUses[record.firstSlot + slot]->set_bits())
        live[event] += record.bytes;
  return base + *std::max_element(live.begin(), live.end());
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
  int64_t at = base;
  for (auto [slot, floor] : llvm::enumerate(record.floors))
    at = std::max(at, base + floor - static_cast<int64_t>(slot) * record.bytes);
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

Placement RingPlacer::place(ArrayRef<size_t> order) {
  Placement result{base, order.front()};
  SmallVector<const Record *> placed;
  for (size_t index : order) {
    Record &record = records[index];
    record.at = findPlace(record, placed);
    placed.push_back(&record);
    if (record.getEnd() > result.end)
      result = {record.getEnd(), index};
  }
  return result;
}

int64_t RingPlacer::run() {
  if (records.empty())
    return base;
  auto orderBy = [&](auto key) {
    return orderByFalling(records.size(),
                          [&](size_t index) { return key(records[index]); });
  };
  std::vector<std::vector<size_t>> orders = {
      orderBy([](const Record &) { return 0; }),
      orderBy([](const Record &r) { return r.count * r.bytes; }),
      orderBy([](const Record &r) { return r.bytes; }),
      orderBy(
          [&](const Record &r) { return uses[r.rings.front()].any.count(); }),
      orderBy([](const Record &r) {
        return *std::max_element(r.floors.begin(), r.floors.end());
      })};
  constexpr size_t kMostSteps = 20'000'000, kMostAttempts = 500;
  auto attempts = static_cast<unsigned>(std::min(
      kMostAttempts, kMostSteps / (slotUses.size() * slotUses.size()) + 1));
  int64_t end = base;
  searchOrder(orders, getBound(), attempts, [&](ArrayRef<size_t> order) {
    Placement placed = place(order);
    end = placed.end;
    return placed;
  });
  for (const Record &record : records) {
    int64_t at = record.at;
    for (size_t index : record.rings) {
      MessageRing &ring = rings[index];
      ring.at = at;
      // A record that is placed as a whole has its rings one after the other.
      bool isWhole = record.count != ring.count;
      ring.stride = isWhole ? ring.bytes : record.bytes;
      at += isWhole ? ring.bytes * ring.count : ring.bytes;
    }
  }
  return end;
}

int64_t penstock::placeRings(MutableArrayRef<MessageRing> rings,
                             ArrayRef<DeviceLives> schedules,
                             ArrayRef<int64_t> scratch, int64_t base,
                             int64_t sharedBytes, int64_t alignment) {
  return RingPlacer(rings, schedules, scratch, base, sharedBytes, alignment)
      .run();
}
