//===- Target.h - What the compiler asks a kind of device -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kind of device is a dialect with a target attribute and an implementation
// of this interface. Shared passes plan library calls, estimate costs and make
// code through it, and name no kind. A new kind is registered beside the others
// in lib/Driver/Registration.cpp.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_TARGET_H
#define PENSTOCK_TARGET_TARGET_H

#include "dialects/Kernel/Kernel.h"
#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Cost/AnalyticCost.h"
#include "penstock/abi.h"

#include "mlir/IR/DialectInterface.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm
namespace mlir {
class OpPassManager;
} // namespace mlir

namespace penstock {

using pipeline::TargetAttrInterface;

/// The symbol of the code of a program's kernels, a penstock_device_code. The
/// target of the devices that launch them defines it.
inline constexpr llvm::StringLiteral kDeviceCodeSymbol = "penstock_device_code";

/// A plan for a library call to read its weights packed.
struct WeightPacking {
  kernel::PackingAttrInterface order;
  /// The config of the call when it reads packed weights.
  kernel::LibraryConfigAttrInterface config;
  /// Size of the packed weights in elements.
  int64_t elements = 0;
  /// True if packing is faster once at least `calls` calls read the weights
  /// between two updates.
  bool pays = false;
  int64_t calls = 0;
};

/// Weights that an update packs for the calls that read them, before there are
/// buffers.
struct PackedWeights {
  /// That are read and written for it.
  double bytes = 0;
  /// So many calls between two updates make it pay.
  int64_t calls = 0;
};

/// A product of dense matrices, m x k by k x n.
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  /// From one row of the right factor to the next, and from one column.
  int64_t strides[2] = {};
};

/// A plan for a vendor library to compute a call, with its scratch in bytes.
struct LibraryPlan {
  kernel::LibraryConfigAttrInterface config;
  int64_t scratchBytes = 0;
};

/// A call as the runtime gets it, without device and scratch.
struct CallDescriptor {
  std::variant<penstock_gemm_descriptor, penstock_conv_descriptor> call;
  /// The struct that `config` points to, which only such devices read, in
  /// words. Empty where it is null.
  std::vector<int64_t> config;

  /// Copies a struct of whole words.
  template <typename Config>
  static std::vector<int64_t> toWords(const Config &config) {
    static_assert(sizeof(Config) % sizeof(int64_t) == 0 &&
                  std::is_trivially_copyable_v<Config>);
    std::vector<int64_t> words(sizeof(Config) / sizeof(int64_t));
    std::memcpy(words.data(), &config, sizeof(Config));
    return words;
  }
};

/// The description of a device in the tables of the runtime.
struct DeviceDescription {
  /// The name of its kind.
  std::string kind;
  /// Those of the host that work for it.
  int64_t threads = 1;
  /// The processor that the code is for, and the features that it must have, as
  /// "+avx2,+fma".
  std::string processor, features;
};

/// The tools of a vendor on this machine.
struct Toolkit {
  /// Where they are installed.
  std::string path;
  /// The assembler; empty: that of the toolkit, or in PATH; "none".
  std::string assembler;
};

/// One kind of device, found by the dialect of a target attribute. `target` is
/// always an attribute of that dialect.
class Target : public mlir::DialectInterface::Base<Target> {
public:
  explicit Target(mlir::Dialect *dialect) : Base(dialect) {}

  /// Returns the implementation of the dialect of `attribute`: a target, a
  /// config or an order of packed weights. Null if it has none.
  static const Target *get(mlir::Attribute target);

  /// Plans a product or convolution. A call that has a config keeps it. Fails
  /// without a diagnostic, with a reason, when the library cannot be loaded or
  /// has no fast implementation.
  virtual mlir::FailureOr<LibraryPlan> plan(TargetAttrInterface target,
                                            kernel::LibraryCallOpInterface call,
                                            std::string &reason) const = 0;

  /// Plans how a call could read its weights packed; none where it has no
  /// weights, reads packed ones, or gains nothing in any case. Fails like
  /// `plan`.
  virtual mlir::FailureOr<std::optional<WeightPacking>>
  planPacking(TargetAttrInterface target, kernel::LibraryCallOpInterface call,
              std::string &reason) const = 0;

  /// Returns whether the library computes such a convolution, before there are
  /// buffers; a reason if not. `isDirect`: by algorithms that add up the
  /// products of the definition.
  virtual bool takesConvolution(TargetAttrInterface target,
                                const kernel::ConvolutionShape &shape,
                                bool isDirect, std::string &reason) const = 0;

  /// Returns the descriptor of a call that has a config; none where the runtime
  /// has no place for it.
  virtual std::optional<CallDescriptor>
  describe(kernel::LibraryCallOpInterface call) const = 0;
  /// Returns the descriptor of the call that packs weights in this order, from
  /// its second operand to its third.
  virtual std::optional<CallDescriptor>
  describe(kernel::PackingAttrInterface order) const = 0;

  /// Returns what the addresses of the operands of a call are multiples of, in
  /// bytes.
  virtual int64_t getAlignment(kernel::LibraryCallOpInterface call) const {
    return 1;
  }

  /// Returns whether loops run faster in parallel even where that takes more
  /// work, as more index arithmetic per element.
  virtual bool prefersParallelLoops(TargetAttrInterface target) const {
    return false;
  }

  /// Returns whether the library multiplies bf16 factors, with sums in f32,
  /// faster than f32 ones.
  virtual bool multipliesBf16(TargetAttrInterface target) const {
    return false;
  }

  /// Returns whether a long sum takes less time in two steps, the first of
  /// which computes partial sums in parallel.
  virtual bool splitsLongSums(TargetAttrInterface target) const {
    return false;
  }

  /// Returns what a convolution takes by the algorithm that will compute it.
  /// Unless the target knows better: by its definition.
  virtual OpCost getConvolutionCost(TargetAttrInterface target,
                                    const kernel::ConvolutionShape &shape,
                                    bool isDirect) const;

  /// Returns what an update does to pack the weights of such a call, where that
  /// pays; none where each call reads them as they are.
  virtual std::optional<PackedWeights>
  getPackedWeights(TargetAttrInterface target,
                   const kernel::ConvolutionShape &shape, bool isDirect) const {
    return std::nullopt;
  }
  virtual std::optional<PackedWeights>
  getPackedWeights(TargetAttrInterface target,
                   const ProductShape &shape) const {
    return std::nullopt;
  }

  /// Returns how many f32 values a vector instruction of a device computes; 1
  /// where threads, not vectors, compute in parallel.
  virtual int64_t countLanes(TargetAttrInterface target) const { return 1; }

  /// Returns the rates of a device, for the cost model.
  virtual MachineRates getRates(TargetAttrInterface target) const = 0;

  /// Returns what the runtime is told of a device; emits an error at `loc` if
  /// the target names an unknown processor.
  virtual mlir::FailureOr<DeviceDescription>
  describe(TargetAttrInterface target, mlir::Location loc) const = 0;

  /// Returns the processor that the host's code is for, as --march names it;
  /// empty where any will do.
  virtual std::string getHostProcessor(TargetAttrInterface target) const = 0;

  /// Adds the code of the kernels that the host launches to the host's code,
  /// under kDeviceCodeSymbol. Kinds whose kernels the host calls have none.
  virtual mlir::LogicalResult addKernelCode(TargetAttrInterface target,
                                            mlir::ModuleOp module,
                                            const Toolkit &toolkit,
                                            llvm::Module &host) const {
    return mlir::success();
  }
  /// Prints that code as text, where it is code of another processor.
  virtual mlir::LogicalResult printKernelCode(TargetAttrInterface target,
                                              mlir::ModuleOp module,
                                              const Toolkit &toolkit,
                                              llvm::raw_ostream &output) const {
    return mlir::success();
  }

  /// Returns what executables with such devices are linked with: libraries of
  /// the runtime by name (libpenstock_*.a), and flags.
  virtual std::vector<std::string>
  getLinkLibraries(TargetAttrInterface target) const = 0;
};

/// Plans a call, or its packing, for the target of its function. Emits an error
/// at the call if the function has none, or the library does not compute it.
mlir::FailureOr<LibraryPlan> planCall(kernel::LibraryCallOpInterface call);
mlir::FailureOr<std::optional<WeightPacking>>
planPacking(kernel::LibraryCallOpInterface call);

/// Returns what the target of the function of `op` says; that of a CPU where it
/// has none.
bool prefersParallelLoops(mlir::Operation *op);
bool splitsLongSums(mlir::Operation *op);

/// Returns what every target tells the runtime of a product or convolution: its
/// shapes and element types, f32 or bf16. None where the runtime has no place
/// for it.
std::optional<penstock_gemm_descriptor> describeShapes(kernel::GemmOp gemm);
std::optional<penstock_conv_descriptor>
describeShapes(const kernel::ConvolutionShape &shape);

/// Returns whether the program asks for convolutions that add up the products
/// of the definition.
bool asksForDirectConvolution(mlir::Operation *op);

/// Appends the passes that lower the kernels of one kind of device. They leave
/// functions of other kinds alone.
using KernelPipelineBuilder = void (*)(mlir::OpPassManager &manager);

/// Registers the pipeline of the kind `dialect`; once per kind, in the order in
/// which the pipelines run.
void registerKernelPipeline(llvm::StringRef dialect,
                            KernelPipelineBuilder build);

/// Appends the pipelines of `kinds`, or of all registered kinds if there are
/// none. The first registered one is always there: it also lowers functions
/// without a target.
void buildKernelPipelines(mlir::OpPassManager &manager,
                          llvm::ArrayRef<std::string> kinds);

} // namespace penstock

#endif // PENSTOCK_TARGET_TARGET_H
