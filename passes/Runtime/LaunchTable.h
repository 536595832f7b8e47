//===- LaunchTable.h - The kernels that the host starts ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel has one number and one grid, wherever it is launched. Its code is in
// an image that the target adds when the object file is written. Beside
// kernels, the device has constants.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_LAUNCHTABLE_H
#define PENSTOCK_PASSES_RUNTIME_LAUNCHTABLE_H

#include "dialects/Kernel/Kernel.h"
#include "passes/Runtime/Constants.h"
#include "passes/Runtime/RuntimeCalls.h"

#include "llvm/ADT/MapVector.h"

#include <vector>

namespace penstock {

class LaunchTable {
public:
  /// Numbers all kernels and constants. Fails where one kernel is launched with
  /// two grids.
  mlir::LogicalResult collect(mlir::ModuleOp root);

  /// Puts calls of the runtime into the place of launches and constants.
  mlir::LogicalResult convert(RuntimeCalls &runtime) const;

  bool hasKernels() const { return !kernels.empty(); }
  std::vector<Constant> getKernels(ConstantBuilder &constants) const;
  /// The constants that devices have.
  std::vector<Constant> getConstants(ConstantBuilder &builder) const;

private:
  uint32_t getNumber(kernel::LaunchOp launch) const {
    return kernels.find(launch.getKernelAttr()) - kernels.begin();
  }

  /// The first launch of a kernel, by name.
  struct Kernel {
    llvm::SmallVector<int64_t, 3> grid, block;
    size_t parameters;
  };
  llvm::MapVector<mlir::Attribute, Kernel> kernels;
  /// A constant, by the name of the global.
  struct DeviceConstant {
    int64_t bytes;
    mlir::DenseElementsAttr values;
  };
  llvm::MapVector<mlir::Attribute, DeviceConstant> constants;

  void convert(RuntimeCalls &runtime, kernel::LaunchOp launch) const;
  void convert(RuntimeCalls &runtime, kernel::ConstantOp constant) const;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_LAUNCHTABLE_H
