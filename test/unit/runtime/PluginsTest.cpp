//===- PluginsTest.cpp - Libraries that a program loads -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of cores on a machine that hwloc makes up, and without the library
// that knows it.
//===----------------------------------------------------------------------===//

#include "runtime/job/Plugins.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

using namespace penstock::runtime;
using Cores = std::vector<int32_t>;

namespace {

Cores order(Cores cores) {
  orderCores(cores);
  return cores;
}

TEST(Plugins, AreLookedForInSeveralFolders) {
  setenv("PENSTOCK_LIBRARY_PATH", "/first:/second", 1);
  std::vector<std::string> folders = listPluginFolders();
  ASSERT_GE(folders.size(), 3u);
  EXPECT_EQ(folders[0], "/first");
  EXPECT_EQ(folders[1], "/second");
  EXPECT_EQ(folders[2],
            std::filesystem::read_symlink("/proc/self/exe").parent_path());
}

TEST(Plugins, OrderCoresByTheirNumbers) {
  setenv("PENSTOCK_LIBRARY_PATH", "/nowhere", 1);
  EXPECT_EQ(order({5, 2, 0, 4}), (Cores{0, 2, 4, 5}));
}

// Two packages of two cores, whose second threads come behind all first ones.
TEST(Plugins, OrderCoresByWhatTheyShare) {
  if (!std::filesystem::exists(PENSTOCK_PLUGINS "/libpenstock-topology.so"))
    GTEST_SKIP() << "there was no hwloc to build libpenstock-topology.so";
  setenv("PENSTOCK_LIBRARY_PATH", PENSTOCK_PLUGINS, 1);
  setenv("HWLOC_SYNTHETIC", "pack:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)", 1);
  EXPECT_EQ(order({7, 6, 5, 4, 3, 2, 1, 0}), (Cores{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(order({5, 2, 0, 4}), (Cores{0, 4, 2, 5}));
  // One that is not there.
  EXPECT_EQ(order({9, 5, 2}), (Cores{2, 5, 9}));
}

} // namespace
