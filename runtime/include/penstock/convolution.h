//===- convolution.h - A convolution by oneDNN ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler asks which implementation there is and how much scratch it
// needs, the runtime prepares and runs it. Both use this one piece of code, so
// that what was planned is what runs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_CONVOLUTION_H
#define PENSTOCK_CONVOLUTION_H

#include "penstock/cpu.h"

#include <memory>
#include <string>

namespace penstock::runtime {

class Convolution {
public:
  Convolution();
  Convolution(Convolution &&);
  Convolution &operator=(Convolution &&);
  ~Convolution();

  /// Chooses an implementation; says what is wrong, or nothing. A reference
  /// implementation, which is hundreds of times slower, is wrong.
  std::string plan(const ConvolutionCall &descriptor);
  /// The name of the implementation that was planned.
  std::string getImplementation() const;
  uint64_t getScratchBytes() const;
  /// Returns the bytes of the weights in the library's blocked layout; 0 where
  /// that is the layout that they have, or they are computed, or nothing else
  /// is faster.
  uint64_t getPrepackedBytes() const;
  /// Makes what was planned ready to run with this scratch.
  std::string prepare(char *scratch);
  /// The tensors in their roles, whichever of them is computed. Where the
  /// descriptor says PREPACK, the weights' other form is the output.
  bool run(const float *input, const float *weights, const float *output);

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Sets `layout` to the one that is faster, of those that add up the products
/// of the definition where `isDirect`; says what is wrong, or nothing.
std::string chooseConvolutionLayout(ConvolutionCall &descriptor,
                                    bool isDirect = false);

/// The number of threads of this thread's calls of the library.
void setConvolutionThreads(int threads);

/// The convolution in words, for messages.
std::string describe(const penstock_conv_descriptor &descriptor);

} // namespace penstock::runtime

#endif // PENSTOCK_CONVOLUTION_H
