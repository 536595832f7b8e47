//===- GeneratorTest.cpp - Schedules against their papers -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every schedule is proved with its transfers for ranges of devices, chunks and
// microbatches, and compared with published bubbles and memory: the table of
// the zero-bubble paper (Qi et al., ICLR 2024), and closed forms.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Generators.h"
#include "penstock/Schedule/Simulator.h"
#include "penstock/Schedule/Transfers.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <ctime>

using namespace penstock::schedule;

namespace {

ScheduleSpec specOf(llvm::StringRef text) {
  std::string error;
  std::optional<ScheduleSpec> spec = parseScheduleSpec(text, error);
  EXPECT_TRUE(spec.has_value()) << error;
  return *spec;
}

Simulation simulateOf(llvm::StringRef text, int p, int64_t m,
                      const Times &times = {}, double limit = 0) {
  Problem problem(specOf(text), p, m, times);
  if (limit > 0)
    problem.memoryLimit = limit;
  EXPECT_EQ(checkProblem(problem), "");
  Simulation simulation = simulate(problem, generate(problem));
  EXPECT_EQ(simulation.circle, "") << text.str() << " " << p << " " << m;
  return simulation;
}

double most(const std::vector<double> &values) {
  return *std::max_element(values.begin(), values.end());
}

double round4(double value) { return std::round(value * 1e4) / 1e4; }

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

/// Returns what is wrong with the schedule and its transfers, or "".
std::string prove(llvm::StringRef text, int p, int64_t m) {
  Problem problem(specOf(text), p, m);
  if (std::string why = checkProblem(problem); !why.empty())
    return "refused";
  std::vector<Order> orders = generate(problem);
  if (auto why = placeTransfers(problem.model, orders))
    return *why;
  Proof proof = verifyOrders(problem.model, orders);
  return proof.violation ? proof.violation->message : "";
}

TEST(Generated, AreProved) {
  for (const char *text :
       {"gpipe", "1f1b", "interleaved:chunks=1", "interleaved",
        "interleaved:chunks=3", "looped-bfs", "looped-bfs:chunks=3", "zb-h1",
        "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v", "chimera", "hanayo",
        "hanayo:waves=2", "zb-auto", "zb-auto:memory-limit=2"}) {
    int proved = 0;
    for (int p = 1; p <= 6; ++p)
      for (int m = 1; m <= 14; ++m) {
        std::string why = prove(text, p, m);
        proved += why.empty();
        EXPECT_TRUE(why.empty() || why == "refused")
            << text << " p = " << p << ", M = " << m << ": " << why;
      }
    EXPECT_GT(proved, 20) << text;
  }
}

/// With 64 devices and 4096 microbatches: more than any machine, in less than a
/// second of processor time, which others on the machine do not lengthen.
TEST(Generated, AreProvedAtScale) {
  for (const char *text :
       {"gpipe", "1f1b", "interleaved", "looped-bfs", "zb-h1", "zb-h2", "zb-v",
        "v-half", "v-min", "dualpipe-v", "chimera", "hanayo", "zb-auto"}) {
    Problem problem(specOf(text), 64, 4096);
    ASSERT_EQ(checkProblem(problem), "") << text;
    std::vector<Order> orders = generate(problem);
    ASSERT_FALSE(placeTransfers(problem.model, orders)) << text;
    std::clock_t begin = std::clock();
    Proof proof = verifyOrders(problem.model, orders);
    double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_FALSE(proof.violation) << text;
    // Every run was executed.
    EXPECT_GE(proof.steps, 2 * 64 * 4096) << text;
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) &&     \
    !__has_feature(thread_sanitizer)
    EXPECT_LT(seconds, 1) << text;
#endif
    RecordProperty(text, std::to_string(seconds));
  }
}

/// Entries of all orders, with transfers, where a stage's forward, I and W take
/// `shares` of the problem's times: one behind the other, from the start again.
size_t countEntries(Problem problem, llvm::ArrayRef<double> shares) {
  size_t next = 0;
  if (!shares.empty())
    for (int stage = 0; stage < problem.stages; ++stage) {
      auto share = [&] { return shares[next++ % shares.size()]; };
      Times times = problem.times;
      times.forward *= share();
      times.backward *= share();
      times.weight *= share();
      problem.stageTimes.push_back(times);
    }
  std::vector<double> taskTimes;
  for (size_t task = 0; task < problem.model.tasks.size(); ++task)
    taskTimes.push_back(problem.getTime(int(task)));
  std::vector<Order> orders = generate(problem);
  std::optional<std::string> why =
      placeTransfers(problem.model, orders, taskTimes);
  EXPECT_FALSE(why) << *why;
  size_t entries = 0;
  for (const Order &order : orders)
    for (const Loop &loop : order.loops)
      entries += loop.items.size();
  return entries;
}

/// A program does not grow with its microbatches, however little the times of
/// its stages have in common. Where two stages take nearly as long, some
/// hundreds of microbatches pass until one has kept the other waiting.
TEST(Generated, DoNotGrowWithMicrobatches) {
  std::vector<std::string> names = scheduleNames();
  for (const char *text :
       {"zb-auto:memory-limit=2", "zb-auto:memory-limit=4",
        "zb-auto:memory-limit=6", "hanayo:waves=2", "interleaved:chunks=3"})
    names.push_back(text);
  const std::vector<double> even,
      uneven = {1.09, 0.63, 0.71, 1.27, 0.94, 1.38, 0.83, 1.21, 0.52,
                1.13, 0.97, 0.88, 1.31, 0.58, 1.02, 1.44, 0.77},
      nearlyEven = {1,   1.02, .99,  1.07, 1.06, 1.08, .98,  1.01, 1,
                    .97, 1.03, 1.01, 1,    .98,  1.02, 1.01, 1,    .99};
  for (const std::string &text : names)
    for (const std::vector<double> &shares : {even, uneven, nearlyEven})
      for (Times times :
           {Times{18.522, 18.086, 9.337, .601}, Times{1, 1.3, .4, 0}})
        for (int p : {4, 6}) {
          Problem problem(specOf(text), p, 480, times);
          if (!checkProblem(problem).empty())
            continue;
          size_t few = countEntries(problem, shares),
                 many = countEntries(problem.withMicrobatches(3840), shares);
          // A wave drains as the last microbatches fall in its period.
          size_t most = problem.spec.name() == "hanayo" ? few + few / 2 : few;
          EXPECT_LE(many, most)
              << text << ", p = " << p << ", first share "
              << (shares.empty() ? 0 : shares.front()) << ", F "
              << times.forward << ": " << few << " and " << many;
        }
}

/// Returns what is wrong with nF1B where every read is of the newest weights,
/// or "".
std::string proveManyForwards(int p, int64_t m, int64_t ahead) {
  std::string text = "nf1b:ahead=" + std::to_string(ahead);
  Problem problem(specOf(text), p, m);
  std::vector<Order> orders = generate(problem);
  if (auto why = placeTransfers(problem.model, orders))
    return *why;
  std::vector<int64_t> lags = computeForwardLags(problem.model, orders);
  for (int i = 0; i < p; ++i) {
    // Forwards of whole updates.
    EXPECT_EQ(lags[i], m * std::min<int64_t>(ahead ? ahead : p, p - 1 - i));
    problem.model.tasks[problem.task('F', i)].reads[0].lag = lags[i];
  }
  Proof proof = verifyOrders(problem.model, orders);
  if (proof.violation)
    return proof.violation->message;
  // A smaller lag asks for a version that is not there yet.
  for (int i = 0; i + 1 < p; ++i) {
    Model newer = problem.model;
    --newer.tasks[problem.task('F', i)].reads[0].lag.value();
    Proof refuted = verifyOrders(newer, orders);
    EXPECT_TRUE(refuted.violation && refuted.violation->rule == 3);
  }
  return "";
}

TEST(Generated, ManyForwards) {
  for (int p = 1; p <= 5; ++p)
    for (int64_t m : {1, 2, 3, 6, 9})
      for (int64_t ahead = 0; ahead < p; ++ahead)
        EXPECT_EQ(proveManyForwards(p, m, ahead), "")
            << "p = " << p << ", M = " << m << ", ahead " << ahead;
  EXPECT_EQ(proveManyForwards(8, 64, 0), "");
  EXPECT_EQ(checkProblem(Problem(specOf("nf1b:ahead=3"), 3, 2)),
            "schedule nf1b on 3 devices runs forwards at most 2 updates "
            "ahead, not 3: use ahead=2 or leave it out");
  EXPECT_EQ(checkProblem(Problem(specOf("nf1b:ahead=1"), 1, 2)),
            "schedule nf1b on 1 device runs forwards at most 0 updates "
            "ahead, not 1: use it without ahead");
  EXPECT_EQ(checkProblem(Problem(specOf("nf1b"), 3, 65)),
            "schedule nf1b writes out the microbatches of an update, at most "
            "64 per device, not 65: use fewer microbatches");
}

TEST(Generated, KeepToTheLimitOfTheirText) {
  for (int limit = 1; limit <= 4; ++limit) {
    std::string text = "zb-auto:memory-limit=" + std::to_string(limit);
    EXPECT_LE(most(simulateOf(text, 4, 8).peaks), limit + 1e-9) << text;
  }
  EXPECT_NE(checkProblem(Problem(specOf("zb-auto:memory-limit=0.5"), 4, 8)),
            "");
}

//===----------------------------------------------------------------------===//
// Published figures
//===----------------------------------------------------------------------===//

struct Published {
  int devices, microbatches;
  Times times;
  double flush, h1, h2, oneP, twoP;
};

// Table 5 of the zero-bubble paper: profiled times, bubble rates.
constexpr Published kPublished[] = {
    {8, 24, {18.522, 18.086, 9.337, .601}, .2431, .1585, .1083, .1585, .0433},
    {8, 32, {18.513, 18.086, 9.331, .626}, .1985, .1242, .0837, .1242, .0039},
    {8, 64, {18.546, 18.097, 9.321, .762}, .1240, .0674, .0444, .0674, .0026},
    {8, 24, {29.718, 29.444, 19.927, .527}, .2347, .1323, .0698, .1323, .0029},
    {8, 32, {29.802, 29.428, 19.530, .577}, .1898, .1045, .0559, .1045, .0022},
    {8, 64, {29.935, 29.621, 19.388, .535}, .1091, .0554, .0294, .0554, .0010},
    {16, 48, {11.347, 11.248, 8.132, .377}, .2552, .1397, .0672, .1397, .0066},
    {16, 64, {11.307, 11.254, 8.101, .379}, .2082, .1088, .0516, .1088, .0054},
    {16, 128, {11.325, 11.308, 8.109, .378}, .1251, .0576, .0266, .0576, .0028},
    {32, 96, {10.419, 10.207, 7.715, .408}, .2646, .1421, .0641, .1421, .0038},
    {32, 128, {10.408, 10.204, 7.703, .408}, .2168, .1106, .0490, .1106, .0029},
    {32, 256, {10.402, 10.248, 7.698, .460}, .1352, .0594, .0257, .0594, .0018},
};

TEST(Published, BubbleRates) {
  for (const Published &row : kPublished) {
    int p = row.devices, m = row.microbatches;
    auto bubble = [&](llvm::StringRef text, double limit = 0) {
      return round4(simulateOf(text, p, m, row.times, limit).bubble);
    };
    EXPECT_DOUBLE_EQ(bubble("1f1b"), row.flush) << p << " " << m;
    EXPECT_DOUBLE_EQ(bubble("zb-h1"), row.h1) << p << " " << m;
    EXPECT_DOUBLE_EQ(bubble("zb-h2"), row.h2) << p << " " << m;
    EXPECT_LE(bubble("zb-auto", p), row.oneP) << p << " " << m;
    EXPECT_LE(bubble("zb-auto", 2 * p), row.twoP) << p << " " << m;
  }
}

TEST(Published, MemoryLimitHolds) {
  for (int p : {2, 4, 5, 8})
    for (int m : {1, 3, 8, 20})
      for (double limit : {1.0, 2.0, 3.5, double(p), 2.0 * p})
        EXPECT_LE(most(simulateOf("zb-auto", p, m, {}, limit).peaks), limit)
            << p << " " << m << " " << limit;
}

//===----------------------------------------------------------------------===//
// Closed forms
//===----------------------------------------------------------------------===//

TEST(ClosedForms, Flushed) {
  Times times{3, 5, 2, 0};
  double whole = times.forward + times.backward + times.weight;
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 24; ++m) {
      double ideal = m * whole, bubble = (p - 1) * whole;
      EXPECT_DOUBLE_EQ(simulateOf("gpipe", p, m, times).makespan,
                       ideal + bubble);
      EXPECT_DOUBLE_EQ(simulateOf("1f1b", p, m, times).makespan,
                       ideal + bubble);
      EXPECT_EQ(most(simulateOf("gpipe", p, m).peaks), m);
      Simulation flush = simulateOf("1f1b", p, m);
      for (int i = 0; i < p; ++i)
        EXPECT_EQ(flush.peaks[i], std::min(p - i, m));
      for (int v = 1; v <= 4; ++v) {
        std::string chunks = ":chunks=" + std::to_string(v);
        if (m % p == 0) {
          Simulation interleaved =
              simulateOf("interleaved" + chunks, p, m, times);
          EXPECT_NEAR(interleaved.makespan, ideal + bubble / v, 1e-9)
              << p << " " << m << " " << v;
          // w + 1 chunks in flight; all when there is a single round.
          for (int i = 0; i < p; ++i)
            EXPECT_NEAR(
                interleaved.peaks[i],
                m == p ? m
                       : std::min(m * v, 2 * (p - i - 1) + (v - 1) * p + 1) /
                             double(v),
                1e-6);
        }
        if (m >= p)
          EXPECT_NEAR(simulateOf("looped-bfs" + chunks, p, m, times).makespan,
                      ideal + bubble / v, 1e-9);
      }
    }
}

/// With lags of p - 1 - i no device idles; with fewer, all wait at an update
/// for as many microbatches as devices that they do not cover.
TEST(ClosedForms, ManyForwards) {
  for (const Times &times : {Times{1, 1, 1, 0}, Times{2, 1, 1, 0}})
    for (int p = 1; p <= 6; ++p)
      for (int m : {1, 3, 4, 6, 8, 12, 16})
        for (int ahead = 1; ahead < std::max(p, 2); ++ahead) {
          std::string text =
              p == 1 ? "nf1b" : "nf1b:ahead=" + std::to_string(ahead);
          Problem problem(specOf(text), p, m, times);
          double idle = std::max(0, p - 1 - ahead);
          EXPECT_NEAR(simulateSteadyBubble(problem, generate(problem)),
                      idle / (m + idle), 1e-12)
              << p << " " << m << " " << ahead;
        }
}

TEST(ClosedForms, ZeroBubble) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 2 * p; m <= 24; m += 3) {
      EXPECT_DOUBLE_EQ(simulateOf("1f1b", p, m).makespan, 3 * m + 3 * (p - 1));
      Simulation h1 = simulateOf("zb-h1", p, m), h2 = simulateOf("zb-h2", p, m);
      EXPECT_DOUBLE_EQ(h1.makespan, 3 * m + p - 1);
      EXPECT_DOUBLE_EQ(h2.makespan, 3 * m);
      EXPECT_EQ(h2.bubble, 0);
      EXPECT_EQ(most(h1.peaks), p);
      EXPECT_EQ(most(h2.peaks), 2 * p - 1);
      // Where the update is a barrier, the skew of the devices shows.
      EXPECT_DOUBLE_EQ(h2.withBarrier, 3 * m + p - 1);
      // (p - 1) (F + I - W), (p - 1) (F + I - 2 W), where W is not longer.
      Times times{4, 4, 3, 0};
      EXPECT_DOUBLE_EQ(simulateOf("zb-h1", p, m, times).makespan,
                       11 * m + (p - 1) * 5);
      EXPECT_DOUBLE_EQ(simulateOf("zb-h2", p, m, times).makespan,
                       11 * m + (p - 1) * 2);
    }
}

TEST(ClosedForms, VShapes) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 2 * p; m <= 40; m += 5) {
      Simulation v = simulateOf("zb-v", p, m);
      EXPECT_DOUBLE_EQ(v.makespan, 3 * m) << p << " " << m;
      for (double peak : v.peaks)
        EXPECT_DOUBLE_EQ(peak, p) << p << " " << m;
      // (p - 1) (X + B - 3 W) in units of a half, X = F + B, B = I + W.
      Simulation dual = simulateOf("dualpipe-v", p, m);
      EXPECT_LE(dual.makespan, 3 * m + (p - 1) + 1e-9) << p << " " << m;
      for (double peak : dual.peaks)
        EXPECT_DOUBLE_EQ(peak, p + 0.5) << p << " " << m;
    }
  for (int p = 4; p <= 24; ++p) {
    int m = 4 * p;
    // A half and a third of 1F1B's p, and a few chunks.
    EXPECT_LE(most(simulateOf("v-half", p, m).peaks), p / 2.0 + 1.5) << p;
    EXPECT_LE(most(simulateOf("v-min", p, m).peaks), p / 3.0 + 1.5) << p;
    EXPECT_LT(simulateOf("v-half", p, m).bubble,
              simulateOf("1f1b", p, m).bubble);
  }
}

TEST(ClosedForms, Chimera) {
  for (int p = 2; p <= 16; p += 2) {
    for (int units = 1; units <= 3; ++units) {
      // Unit slots, B = F.
      int m = units * p;
      Simulation equal = simulateOf("chimera", p, m, {2, 1, 1, 0});
      EXPECT_NEAR(equal.bubble, double(p - 2) / (2 * m + p - 2), 1e-12);
    }
    // B = 2 F.
    Simulation twice = simulateOf("chimera", p, p, {1, 1, 1, 0});
    EXPECT_NEAR(twice.bubble, (p - 2) / (1.5 * p + p - 2), 1e-12) << p;
    for (double peak : twice.peaks) {
      EXPECT_GE(peak, p / 2 + (p > 2));
      EXPECT_LE(peak, p);
    }
  }
}

TEST(ClosedForms, Waves) {
  // Published: (2 P - 2) / (3 P W + P - 1) for M = P and B = 2 F.
  for (int p = 2; p <= 8; ++p)
    for (int w = 1; w <= 3; ++w) {
      Simulation waves =
          simulateOf("hanayo:waves=" + std::to_string(w), p, p, {1, 1, 1, 0});
      EXPECT_LE(waves.bubble, (2.0 * p - 2) / (3 * p * w + p - 1))
          << p << " " << w;
      // More microbatches stay in memory, and hardly ever below 1F1B.
      for (int m : {2 * p, 4 * p}) {
        Simulation more =
            simulateOf("hanayo:waves=" + std::to_string(w), p, m, {1, 1, 1, 0});
        EXPECT_LT(more.bubble, simulateOf("1f1b", p, m).bubble + 0.02)
            << p << " " << w << " " << m;
        EXPECT_LE(most(more.peaks), 2 * p);
      }
    }
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

TEST(ScheduleSpec, Parses) {
  ScheduleSpec spec = specOf("interleaved:chunks=3");
  EXPECT_EQ(spec.name(), "interleaved");
  EXPECT_EQ(spec.chunks(), 3);
  EXPECT_FALSE(spec.splitsBackward());
  EXPECT_EQ(specOf("interleaved").chunks(), 2);
  EXPECT_EQ(specOf("zb-auto:memory-limit=2.5").get("memory-limit"), 2.5);
  EXPECT_EQ(specOf("hanayo:waves=2").chunks(), 4);
  // A V, and a second wave.
  EXPECT_EQ(specOf("zb-v").getDevice(3, 3), 2);
  EXPECT_EQ(specOf("hanayo:waves=2").getDevice(7, 3), 1);
  EXPECT_EQ(specOf("chimera").getDevice(1, 4, 1), 2);
}

TEST(ScheduleSpec, Mistakes) {
  auto errorOf = [](llvm::StringRef text) {
    std::string error;
    EXPECT_FALSE(parseScheduleSpec(text, error).has_value()) << text.str();
    return error;
  };
  EXPECT_EQ(errorOf("interleaved:waves=2"),
            "schedule interleaved has no parameter 'waves'; it has chunks");
  EXPECT_EQ(errorOf("1f1b:chunks=2"),
            "schedule 1f1b has no parameter 'chunks'; it has none");
  EXPECT_EQ(errorOf("interleaved:chunks=0"),
            "schedule interleaved: chunks needs a whole number of at least 1, "
            "not '0'");
  EXPECT_EQ(errorOf("interleaved:chunks=1.5"),
            "schedule interleaved: chunks needs a whole number of at least 1, "
            "not '1.5'");
  EXPECT_EQ(
      errorOf("hanayo:waves"),
      "schedule hanayo: waves needs a whole number of at least 1, not ''");
  EXPECT_TRUE(llvm::StringRef(errorOf("2f2b"))
                  .starts_with("schedule '2f2b' is not known; there are gpipe, "
                               "1f1b, interleaved:chunks=2"));
}

TEST(ScheduleSpec, Refusals) {
  auto refusal = [](llvm::StringRef text, int p, int m) {
    return checkProblem(Problem(specOf(text), p, m));
  };
  EXPECT_EQ(refusal("interleaved", 4, 6),
            "schedule interleaved on 4 devices needs a multiple of 4 "
            "microbatches, not 6");
  EXPECT_EQ(refusal("dualpipe-v", 4, 7),
            "schedule dualpipe-v on 4 devices needs at least 8 microbatches, "
            "not 7");
  EXPECT_EQ(refusal("chimera", 3, 6),
            "schedule chimera needs an even number of devices, not 3; use 2 "
            "or 4");
  EXPECT_EQ(refusal("chimera", 4, 5),
            "schedule chimera needs an even number of microbatches, not 5; "
            "use 4 or 6");
  EXPECT_EQ(refusal("chimera", 1, 6),
            "schedule chimera needs an even number of devices, not 1; use 2");
  EXPECT_EQ(refusal("interleaved", 4, 8), "");
}

} // namespace
