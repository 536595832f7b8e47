//===- SumKernelsTest.cpp - The kernels that add up sums ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The installed ptxas takes the text for every architecture that programs are
// compiled for. That the emulated ones add up, EmulatedNccl tests.
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "runtime/transport/nccl/Sum.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

TEST(SumKernels, AddWithoutAtomicsAndRoundOnce) {
  std::string text = cuda::kSumPtx;
  for (const char *bad :
       {"atom.", "red.", ".approx", "fma", "add.f32", "add.ftz"})
    EXPECT_EQ(text.find(bad), text.npos) << bad;
  EXPECT_NE(text.find("add.rn.ftz.f32"), text.npos);
  EXPECT_NE(text.find("add.rn.f64"), text.npos);
}

TEST(SumKernels, PtxasTakesThem) {
  std::string ptxas = "/usr/local/cuda/bin/ptxas";
  if (std::system((ptxas + " --version > /dev/null 2>&1").c_str()))
    GTEST_SKIP() << ptxas << " is not there";
  ScratchFolder folder;
  std::string file = folder / "sum.ptx", log = folder / "log";
  std::ofstream(file) << cuda::kSumPtx;
  for (const char *arch : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    std::string command = ptxas + " -v -arch=" + arch + " " + file +
                          " -o /dev/null > " + log + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << arch << readText(log);
    EXPECT_NE(readText(log).find("0 bytes spill stores"), std::string::npos)
        << readText(log);
  }
}

} // namespace
