//===- cuda_convolution.h - Convolutions by cuDNN ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler asks for an engine and its workspace, with no GPU there; the
// runtime prepares and runs it. Both describe the convolution by this one piece
// of code, so that what was planned is what runs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_CUDA_CONVOLUTION_H
#define PENSTOCK_CUDA_CONVOLUTION_H

#include "penstock/cuda.h"

#include <memory>
#include <string>
#include <vector>

namespace penstock::runtime::cuda {

struct Cudnn;

/// Alignment of all tensors, in bytes: that of 128-bit accesses.
inline constexpr int64_t kTensorAlignment = 16;

/// Which engines may compute a convolution.
struct EngineFilter {
  /// Those alone that add up the products of the definition.
  bool isDirect = false;
  /// Also those that round f32 operands to tf32.
  bool isTf32 = false;
};

/// How cuDNN computes a convolution.
struct ConvolutionPlan {
  int64_t engine = -1;
  std::vector<penstock_cuda_knob> knobs;
  uint64_t workspaceBytes = 0;
  /// Notes of the engine on its numbers: a bit per CUDNN_NUMERICAL_NOTE_*.
  uint32_t notes = 0;
};

/// Returns why no engine of cuDNN computes such a convolution in f32 or bf16,
/// or an empty string.
std::string checkConvolution(const penstock_conv_descriptor &convolution);

/// Returns whether every version of cuDNN 9 has engines for such a convolution:
/// its padding is symmetric, and it has no groups in three dimensions.
bool isCommonConvolution(const penstock_conv_descriptor &convolution);

/// The version of cuDNN, e.g. 91900; 0 where it is not installed.
int64_t getCudnnVersion();

/// A convolution as an operation graph of cuDNN, and a plan that computes it.
class ConvolutionGraph {
public:
  ConvolutionGraph();
  ConvolutionGraph(ConvolutionGraph &&) noexcept;
  ConvolutionGraph &operator=(ConvolutionGraph &&) noexcept;
  ~ConvolutionGraph();

  /// Describes the convolution for the GPU of `handle`, or for one that has
  /// these `facts`, JSON text of what cuDNN would ask a driver. Returns what is
  /// wrong, or an empty string, as the next two do.
  std::string describe(const penstock_conv_descriptor &convolution,
                       struct CudnnState *handle, const char *facts);
  /// Takes the fastest engine by cuDNN's heuristics that computes in f32, or
  /// tf32 if it may, or of bf16 in f32, the same bits each time, and needs at
  /// most so much workspace.
  std::string choose(uint64_t workspaceBytes, EngineFilter filter);
  /// Returns the plans that `choose` could make, the fastest first by the same
  /// heuristics, so many at most. `restore` takes one of them.
  std::vector<ConvolutionPlan> list(uint64_t workspaceBytes,
                                    EngineFilter filter, size_t most);
  /// Takes this engine with these knobs, if `choose` could have.
  std::string restore(int64_t engine,
                      const std::vector<penstock_cuda_knob> &knobs,
                      uint64_t workspaceBytes, EngineFilter filter);
  /// The plan that one of them made.
  const ConvolutionPlan &getPlan() const;

  /// Puts the convolution on the stream of the handle. Tensors in their roles,
  /// whichever is computed. Returns what failed, or an empty string.
  std::string run(uint64_t input, uint64_t weights, uint64_t output,
                  uint64_t workspace) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_CUDA_CONVOLUTION_H
