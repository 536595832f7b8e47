//===- Kernels.h - Compiles and runs kernels in tests -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes tensor functions through the whole chain, from bufferization to an
// object file in memory, and calls them. Products and threads are played by the
// test itself: a reference in double, and parts run in reverse order. The
// kernels of a GPU run on the emulated one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_LOWERING_KERNELS_H
#define PENSTOCK_TEST_UNIT_LOWERING_KERNELS_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/abi.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

/// A mistake that a compiler could make, in all kernels of a GPU.
enum class KernelFault {
  None,
  NoBarriers,
  /// The first 16 threads of a block alone wait.
  BarriersInABranch
};

struct KernelOptions {
  int64_t threads = 1;
  /// Loop iterations from which on an op is split over the threads.
  int64_t threshold = 1;
  int64_t width = 16;
  bool fuse = true;
  /// For the emulated GPU in place of a CPU.
  bool gpu = false;
  /// With a thread per element there.
  bool plain = false;
  KernelFault fault = KernelFault::None;
};

/// A kernel.gemm, as the runtime would know it.
struct ProductDescriptor {
  std::vector<int64_t> sizes, stridesA, stridesB, stridesC;
  bool accumulate;
};

/// A kernel that the host launches, as the runtime would know it.
struct LaunchedKernel {
  const penstock_emulated_kernel *code = nullptr;
  std::string name;
  std::array<int64_t, 3> grid, block;
  /// True for parameters that are addresses.
  std::vector<bool> isBuffer;
};

class Kernels {
public:
  /// Null, after diagnostics on stderr, when something does not compile.
  static std::unique_ptr<Kernels> compile(const std::string &source,
                                          KernelOptions options = {});
  /// The same for the functions of a module at level graph, which it consumes.
  static std::unique_ptr<Kernels> compile(mlir::ModuleOp module,
                                          KernelOptions options = {});
  /// Registers what such a module's context needs.
  static void registerDialects(mlir::DialectRegistry &registry);

  /// Calls a kernel: buffers and integers in order, then the scalars in order.
  /// Adds the device and the scratch memory.
  void call(const std::string &name, std::vector<void *> arguments,
            std::vector<float> scalars = {});
  bool has(const std::string &name) const {
    return scratchBytes.count(name) != 0;
  }

  std::vector<ProductDescriptor> products;
  std::vector<LaunchedKernel> launches;
  /// Buffers that products read in place of an argument.
  std::vector<std::vector<float>> constants;
  /// In which the emulated GPU runs threads and blocks: up, down, by a seed.
  uint64_t order = 0;
  int64_t parallelCalls = 0;
  int64_t scratchOf(const std::string &name) { return scratchBytes[name]; }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::StringMap<int64_t> scratchBytes;
};

/// Reproducible values in [-1, 1), scaled.
inline std::vector<float> randomVector(size_t size, unsigned seed,
                                       float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::vector<float> result(size);
  for (float &value : result)
    value = (static_cast<float>(generator() >> 8) / 8388608.0f - 1.0f) * scale;
  return result;
}

#endif // PENSTOCK_TEST_UNIT_LOWERING_KERNELS_H
