//===- GradientNormalizeTest.cpp - Derivatives of normalizations ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Over leading, trailing and scattered dimensions.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

/// Over every choice of axes, through each result alone and through all.
TEST(Gradient, Normalizations) {
  Cases cases;
  const std::string full = "tensor<2x3x5xf64>";
  const std::pair<std::string, std::string> choices[] = {
      {"[2]", "2x3"}, {"[1]", "2x5"}, {"[0, 2]", "3"}, {"[0, 1, 2]", ""}};
  for (const auto &[dims, shape] : choices)
    for (const char *role : {"d", "p"}) {
      std::string row = tensor(shape);
      std::string norm = " = nn.normalize %x dims " + dims +
                         " epsilon(1.0e-2) : " + full + " -> " + row + "\n";
      std::string rms = " = nn.rms_normalize %x dims " + dims +
                        " epsilon(1.0e-2) : " + full + " -> " + row + "\n";
      auto add = [&](const std::string &name, const std::string &op,
                     const std::string &names, const std::string &returned,
                     const std::string &types) {
        cases.push_back({name + " over " + dims,
                         "func.func @f(%x: " + full + ") -> (" + types +
                             ") {\n  " + names + op + "  return " + returned +
                             " : " + types + "\n}\n",
                         role, -2, 2, 3, 0, true});
      };
      add("normalize", norm, "%y, %m, %v", "%y", full);
      add("mean", norm, "%y, %m, %v", "%m", row);
      add("variance", norm, "%y, %m, %v", "%v", row);
      add("all of normalize", norm, "%y, %m, %v", "%y, %m, %v",
          full + ", " + row + ", " + row);
      add("rms_normalize", rms, "%y, %s", "%y", full);
      add("all of rms_normalize", rms, "%y, %s", "%y, %s", full + ", " + row);
    }
  checkAll("normalizations", cases);
}
