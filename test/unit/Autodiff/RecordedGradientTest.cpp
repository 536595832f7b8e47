//===- RecordedGradientTest.cpp - Gradients as PyTorch has them -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cases of test/fixtures/gradients.json: nodes of ONNX in f64, their
// outputs and gradients beside those that PyTorch computed, and beside central
// differences. How the file was made says record_gradients.py next to it.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <cstdio>
#include <map>

using namespace penstock::test;

namespace {

struct Family {
  size_t cases = 0;
  double recorded = 0, differences = 0, adjoint = 0;
};

std::vector<std::vector<double>> readLists(const llvm::json::Array *lists) {
  std::vector<std::vector<double>> result;
  for (const llvm::json::Value &list : *lists) {
    result.emplace_back();
    for (const llvm::json::Value &number : *list.getAsArray())
      result.back().push_back(*number.getAsNumber());
  }
  return result;
}

} // namespace

TEST(Gradient, RecordedInPyTorch) {
  auto buffer = llvm::MemoryBuffer::getFile(PENSTOCK_RECORDED_GRADIENTS);
  ASSERT_TRUE(static_cast<bool>(buffer));
  llvm::Expected<llvm::json::Value> file =
      llvm::json::parse((*buffer)->getBuffer());
  ASSERT_TRUE(static_cast<bool>(file)) << llvm::toString(file.takeError());
  std::map<std::string, Family> families;
  Family all;
  for (const llvm::json::Value &entry :
       *file->getAsObject()->getArray("cases")) {
    const llvm::json::Object &object = *entry.getAsObject();
    RecordedValues recorded{readLists(object.getArray("outputs")),
                            readLists(object.getArray("gradients"))};
    GradientCase testCase;
    testCase.name = object.getString("name")->str();
    testCase.text = object.getString("text")->str();
    testCase.roles = std::string(*object.getInteger("arguments"), 'd');
    testCase.low = *object.getNumber("low");
    testCase.high = *object.getNumber("high");
    testCase.frozen = *object.getBoolean("frozen");
    testCase.recorded = &recorded;
    testCase.differences = testCase.low != testCase.high && testCase.high < 50;
    GradientResult result = checkGradient(testCase);
    EXPECT_EQ(result.error, "") << testCase.name << "\n" << testCase.text;
    // The file has 12 digits of each number.
    EXPECT_LT(result.recordedError, 1e-10) << testCase.name;
    EXPECT_LT(result.largestError, 1e-7) << testCase.name;
    EXPECT_LT(result.adjointError, 1e-7) << testCase.name;
    for (Family *family :
         {&families[object.getString("family")->str()], &all}) {
      ++family->cases;
      family->recorded = std::max(family->recorded, result.recordedError);
      family->differences = std::max(family->differences, result.largestError);
      family->adjoint = std::max(family->adjoint, result.adjointError);
    }
  }
  EXPECT_GT(all.cases, 250u);
  auto print = [](const std::string &name, const Family &family) {
    std::printf("[ gradient ] %-34s %3zu cases, largest error %.1e from "
                "PyTorch, %.1e by differences, %.1e by the adjoint identity\n",
                name.c_str(), family.cases, family.recorded, family.differences,
                family.adjoint);
  };
  for (const auto &[name, family] : families)
    print(name, family);
  print(std::to_string(families.size()) + " families in all", all);
}
