//===- BudgetSearchTest.cpp - Budgets against all that there are ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random stages that can store some numbers of bytes and no others, and need
// the more for the rest the less they store.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/BudgetSearch.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace penstock;

namespace {

class Stages {
public:
  /// `again` is what dropped bytes take as temporaries, as a part of what they
  /// took: below one slot, storing less always needs less.
  Stages(unsigned seed, double again) : random(seed), again(again) {
    for (int stage = pick(1, 4); stage > 0; --stage) {
      std::set<int64_t> levels;
      for (int level = pick(1, 30); level > 0; --level)
        levels.insert(pick(0, 10'000));
      all.push_back({pick(100, 50'000), pick(1, 6), levels});
    }
  }

  std::optional<std::vector<BuiltStage>>
  build(llvm::ArrayRef<int64_t> budgets) {
    ++builds;
    std::vector<BuiltStage> built;
    for (size_t index = 0; index < all.size(); ++index) {
      const Stage &stage = all[index];
      int64_t stored = *stage.levels.rbegin();
      if (!budgets.empty() && budgets[index] >= 0) {
        auto above = stage.levels.upper_bound(budgets[index]);
        stored = above == stage.levels.begin() ? *above : *std::prev(above);
      }
      built.push_back({need(stage, stored), stored, stage.slots});
    }
    return built;
  }

  /// The least and the most that some stage needs at least, or without budgets.
  std::pair<int64_t, int64_t> getRange() const {
    int64_t least = 0, most = 0;
    for (const Stage &stage : all) {
      int64_t own = need(stage, *stage.levels.rbegin());
      most = std::max(most, own);
      for (int64_t stored : stage.levels)
        own = std::min(own, need(stage, stored));
      least = std::max(least, own);
    }
    return {least, most};
  }
  /// The most that each stage can store within a limit.
  std::vector<int64_t> getMost(int64_t limit) const {
    std::vector<int64_t> most;
    for (const Stage &stage : all) {
      most.push_back(-1);
      for (int64_t stored : stage.levels)
        if (need(stage, stored) <= limit)
          most.back() = stored;
    }
    return most;
  }
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }

  int builds = 0;

private:
  struct Stage {
    int64_t fixed, slots;
    std::set<int64_t> levels;
  };
  int64_t need(const Stage &stage, int64_t stored) const {
    int64_t dropped = *stage.levels.rbegin() - stored;
    return stage.fixed + stage.slots * stored +
           static_cast<int64_t>(again * static_cast<double>(dropped));
  }

  std::mt19937 random;
  double again;
  std::vector<Stage> all;
};

} // namespace

TEST(BudgetSearch, FitsWhereverSomethingDoesAndLeavesLittleUnused) {
  double stored = 0, could = 0;
  for (unsigned seed = 1; seed <= 500; ++seed) {
    Stages stages(seed, /*again=*/0.5);
    auto [least, most] = stages.getRange();
    int64_t limit = stages.pick(least - least / 20, most);
    BudgetSearch search(limit,
                        [&](auto budgets) { return stages.build(budgets); });
    ASSERT_TRUE(search.lower());
    EXPECT_EQ(search.fits(), least <= limit) << "seed " << seed;
    if (!search.fits())
      continue;
    search.raise();
    EXPECT_TRUE(search.fits()) << "seed " << seed;
    EXPECT_LE(stages.builds, 17) << "seed " << seed;
    // What it says is what these budgets make.
    auto built = *stages.build(search.getBudgets());
    std::vector<int64_t> possible = stages.getMost(limit);
    for (size_t index = 0; index < built.size(); ++index) {
      EXPECT_EQ(built[index].need, search.getNeeds()[index]);
      EXPECT_LE(built[index].need, limit) << "seed " << seed;
      stored += static_cast<double>(built[index].stored);
      could += static_cast<double>(possible[index]);
    }
  }
  EXPECT_GE(stored, 0.98 * could);
}

TEST(BudgetSearch, LooksBetweenWhatWasTried) {
  // Storing less needs less down to some point, more so than by its slots, and
  // then more, as what runs again takes temporaries.
  int found = 0, possible = 0;
  for (int64_t valley = 500; valley <= 9500; valley += 500) {
    auto need = [&](int64_t stored) {
      return 20'000 + std::max(6 * (stored - valley), 3 * (valley - stored));
    };
    BudgetSearch search(22'000, [&](llvm::ArrayRef<int64_t> budgets) {
      int64_t stored =
          budgets.empty() || budgets[0] < 0 ? 10'000 : budgets[0] / 10 * 10;
      return std::optional(
          std::vector<BuiltStage>{{need(stored), stored, /*slots=*/4}});
    });
    ASSERT_TRUE(search.lower());
    found += search.fits();
    ++possible;
  }
  RecordProperty("found", found);
  // By halves, and not for ever.
  EXPECT_GE(found, possible * 3 / 4);
}

/// Nor is anything tried that cannot help.
TEST(BudgetSearch, IsOverWhereWhatIsFixedDoesNotFit) {
  int builds = 0;
  BudgetSearch search(/*limit=*/100, [&](llvm::ArrayRef<int64_t> budgets) {
    ++builds;
    return std::vector<BuiltStage>{
        {/*need=*/200, /*stored=*/40, /*slots=*/2, /*fixed=*/110}};
  });
  EXPECT_TRUE(search.lower());
  EXPECT_FALSE(search.fits());
  EXPECT_EQ(builds, 1);
}
