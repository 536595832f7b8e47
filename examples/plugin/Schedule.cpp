// --schedule=eager-1f1b:factor=E: 1F1B whose forwards run E times as far ahead,
// so that transfers that take as long as a forward are hidden; a device holds
// as many more activations. With E = 1 it is 1F1B.
//
// p = 3, M = 6, E = 2:
//   0: F0 F1 F2 F3 F4 .  B0 -  F5 B1 -  ...
//   1: .  F0 F1 F2 .  ..
//   2: .  .  F0 B0 ..

#include "Example.h"

#include "penstock/Schedule/Family.h"

using namespace penstock;
using namespace penstock::schedule;

static std::vector<Order> generateEager(const Problem &problem) {
  int64_t factor = problem.spec.getWhole("factor");
  std::vector<Order> orders;
  for (int device = 0; device < problem.devices; ++device) {
    Order order = openOrder(device, LoopKind::Updates);
    Loop loop{LoopKind::Times, problem.microbatches, {}};
    append(loop, problem.task('F', device),
           /*ahead=*/factor * (problem.devices - 1 - device));
    append(loop, problem.task('B', device));
    appendLoop(order, std::move(loop));
    appendUpdates(problem, order);
    orders.push_back(std::move(order));
  }
  return orders;
}

static constexpr SpecKey kKeys[] = {{.name = "factor",
                                     .type = SpecKey::Whole,
                                     .fallback = 2,
                                     .least = 1,
                                     .below = kMostOfKey,
                                     .example = "2"}};
static const Family kEager = {
    {"eager-1f1b", kKeys},    Placement::Line,
    /*splitsBackward=*/false, oneChunk,        nullptr, generateEager};

void example::registerSchedule() { addSchedule(kEager); }
