//===- CudaDialect.cpp - The cuda dialect ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the attributes, holds their verifiers, and knows architectures.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"

#include "dialects/AttributeRules.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::cuda;

#include "dialects/Cuda/CudaDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Cuda/CudaAttributes.cpp.inc"

void CudaDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Cuda/CudaAttributes.cpp.inc"
      >();
}

static const AttributeRule rules[] = {
    {kKernelsTargetAttr, isOn<gpu::GPUModuleOp, TargetAttr>,
     "a CUDA target, on a gpu.module"},
    {kPlainAttr, isOn<gpu::GPUFuncOp, UnitAttr>,
     "without a value, on a kernel"},
};

LogicalResult CudaDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attr) {
  return verifyAttribute(rules, op, attr);
}

//===----------------------------------------------------------------------===//
// Architectures
//===----------------------------------------------------------------------===//

/// PTX 8.0 is what drivers from 525 on take. Newer GPUs came with newer
/// versions, below which LLVM has no code for them.
static constexpr GpuArch kArchs[] = {
    {"sm_80", 80, 0, 80},      {"sm_86", 86, 0, 80},    {"sm_89", 89, 0, 80},
    {"sm_90", 90, 0, 80},      {"sm_90a", 90, 'a', 80}, {"sm_100", 100, 0, 86},
    {"sm_100a", 100, 'a', 86}, {"sm_120", 120, 0, 87},  {"emulated", 0, 0, 80},
};

const GpuArch *cuda::findGpuArch(StringRef name) {
  const auto *arch = llvm::find_if(
      kArchs, [&](const GpuArch &arch) { return arch.name == name; });
  return arch == std::end(kArchs) ? nullptr : arch;
}

std::string cuda::listGpuArchs() {
  SmallVector<StringRef> names;
  for (const GpuArch &arch : kArchs)
    names.push_back(arch.name);
  return llvm::join(names, ", ");
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

using EmitError = function_ref<InFlightDiagnostic()>;

SmallVector<StringRef> TargetAttr::getArchList() const {
  SmallVector<StringRef> archs;
  getArchs().split(archs, ',');
  return archs;
}

LogicalResult TargetAttr::verify(EmitError emitError, StringRef archs, bool,
                                 int64_t workspace, bool) {
  SmallVector<StringRef> names;
  archs.split(names, ',');
  llvm::StringSet<> seen;
  for (StringRef name : names) {
    if (!findGpuArch(name))
      return emitError() << "unknown GPU architecture '" << name
                         << "'; there are " << listGpuArchs();
    if (!seen.insert(name).second)
      return emitError() << "GPU architecture " << name << " is named twice";
    if (name == "emulated" && names.size() > 1)
      return emitError() << "the emulated GPU stands alone, not among "
                         << archs;
  }
  if (workspace < 0)
    return emitError() << "a workspace is not negative, got " << workspace;
  return success();
}

//===----------------------------------------------------------------------===//
// Configs
//===----------------------------------------------------------------------===//

LogicalResult GemmAttr::verify(EmitError emitError, bool, int64_t workspace) {
  if (workspace < 0)
    return emitError() << "a workspace is not negative, got " << workspace;
  return success();
}

LogicalResult GemmAttr::verifyCall(Operation *call) const {
  auto gemm = dyn_cast<kernel::GemmOp>(call);
  if (!gemm)
    return call->emitOpError("K5: is no product, but has the config of one: ")
           << *this;
  if (gemm.getPacked())
    return call->emitOpError(
        "K5: reads packed weights, which cuBLASLt does not");
  return success();
}

LogicalResult ConvAttr::verify(EmitError emitError, bool, bool, int64_t engine,
                               ArrayRef<int64_t> knobs, int64_t cudnn,
                               int64_t workspace) {
  if (workspace < 0)
    return emitError() << "a workspace is not negative, got " << workspace;
  bool hasEngine = engine >= 0;
  if (hasEngine != (cudnn > 0) || knobs.size() % 2 ||
      (!hasEngine && !knobs.empty()))
    return emitError() << "an engine has a version of cuDNN and knobs with a "
                          "value each, got engine "
                       << engine << ", version " << cudnn << ", "
                       << knobs.size() << " numbers of knobs";
  return success();
}

LogicalResult ConvAttr::verifyCall(Operation *call) const {
  auto conv = dyn_cast<kernel::ConvOp>(call);
  if (!conv)
    return call->emitOpError(
               "K5: is no convolution, but has the config of one: ")
           << *this;
  if (conv.getPacked())
    return call->emitOpError("K5: reads packed weights, which cuDNN does not");
  return success();
}
