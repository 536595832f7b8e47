//===- LinearProgram.h - A compiled program, written by hand ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// z = (x . w1) . w2 under a squared error, cut between the products: two
// devices under 1F1B, an evaluation, and a one-device replay. It stands where
// the compiler's output would, against the same ABI.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_LINEARPROGRAM_H
#define PENSTOCK_TEST_UNIT_RUNTIME_LINEARPROGRAM_H

#include "TestFiles.h"
#include "penstock/abi.h"

namespace penstock::test {

/// Sizes: samples of a microbatch, inputs, hidden, outputs, microbatches.
constexpr int kB = 3, kI = 4, kH = 5, kO = 2, kM = 4;

/// Mistakes of the device functions, for tests of failures.
struct Faults {
  int64_t hangAtUpdate = -1;   // device 1 stops before this update
  int64_t wrongReplayAt = -1;  // the replay's update uses another rate
  int64_t infiniteLossAt = -1; // this microbatch
  bool updatesNothing = false; // neither does the replay
};
extern Faults faults;

class LinearProgram {
public:
  enum class Weights { Inline, External };
  /// Writes the model and 20 samples of data into `folder`.
  LinearProgram(const std::string &folder, Weights weights = Weights::Inline);

  const penstock_program *operator&() const { return &program; }
  /// The one-device program.
  const penstock_program *oneDevice() const { return &replay; }

  std::string modelPath, weightsPath, indicesPath, dataPath, labelsPath;
  std::string modelText, weightsText, indicesText = "indices";
  uint64_t w1Offset, w2Offset; // in the file that holds the weights
  std::vector<float> w1, w2, x, y;
  static constexpr int64_t kSamples = 26; // two updates and a rest

  /// The same mathematics in one loop: the loss of each microbatch; trains
  /// `w1` and `w2`.
  std::vector<float> trainSerially(int64_t updates, float rate,
                                   std::vector<float> &w1,
                                   std::vector<float> &w2) const;

  penstock_program program, replay;
  std::vector<penstock_file> files;
  std::vector<penstock_variable> variables, replayVariables;
  std::vector<penstock_channel> channels, replayChannels;
  std::vector<penstock_device_descriptor> devices, replayDevices;

private:
  void writeModel(const std::string &folder, Weights weights);
  void writeData(const std::string &folder);
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_LINEARPROGRAM_H
