//===- Convolutions.cpp - Convolutions by cuDNN ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills the runtime's descriptor and asks the code that the runtime will use,
// with the facts of a GPU in place of the GPU.
//===----------------------------------------------------------------------===//

#include "GpuFacts.h"
#include "Library.h"
#include "penstock/cuda_convolution.h"

#include <mutex>

using namespace mlir;
using namespace penstock;
using namespace penstock::cuda;

/// The first version that plans by facts.
static constexpr int64_t kPlansByFacts = 90800;

/// Returns the facts of the one GPU that the target is for; nothing where there
/// are several, or nobody could plan with them.
static std::string findFacts(TargetAttr target) {
  SmallVector<StringRef> archs = target.getArchList();
  if (archs.size() != 1 || runtime::cuda::getCudnnVersion() < kPlansByFacts)
    return "";
  return getGpuFacts(static_cast<int>(findGpuArch(archs.front())->number));
}

FailureOr<LibraryPlan>
cuda::planConvolution(TargetAttr target, const kernel::ConvolutionShape &shape,
                      ConvAttr config, bool isDirect, std::string &reason) {
  std::optional<penstock_conv_descriptor> shapes = describeShapes(shape);
  if (!shapes) {
    reason =
        "not a dense convolution of f32 or bf16 in one to three dimensions";
    return failure();
  }
  reason = runtime::cuda::checkConvolution(*shapes);
  if (!reason.empty())
    return failure();
  if (config)
    return LibraryPlan{config, config.getWorkspace()};

  MLIRContext *context = target.getContext();
  auto leaveToRuntime = [&](int64_t workspace) {
    return LibraryPlan{ConvAttr::get(context, isDirect, target.getTf32(),
                                     /*engine=*/-1,
                                     /*knobs=*/{}, /*cudnn=*/0, workspace),
                       workspace};
  };
  // The emulated library needs none.
  if (target.isEmulated())
    return leaveToRuntime(0);
  // The library is asked by one thread at a time.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::string facts = findFacts(target);
  if (facts.empty()) {
    if (runtime::cuda::isCommonConvolution(*shapes))
      return leaveToRuntime(target.getWorkspace());
    reason = "unequal padding, or groups in three dimensions, are planned for "
             "one architecture, where cuDNN 9.8 or later is installed";
    return failure();
  }

  runtime::cuda::ConvolutionGraph graph;
  reason = graph.describe(*shapes, /*handle=*/nullptr, facts.c_str());
  if (reason.empty())
    reason = graph.choose(runtime::cuda::getWorkspaceBytes(
                              static_cast<uint64_t>(target.getWorkspace())),
                          {isDirect, target.getTf32()});
  if (!reason.empty())
    return failure();
  const runtime::cuda::ConvolutionPlan &plan = graph.getPlan();
  SmallVector<int64_t> knobs;
  for (const penstock_cuda_knob &knob : plan.knobs)
    knobs.append({knob.type, knob.value});
  auto scratch =
      static_cast<int64_t>(runtime::cuda::getScratchBytes(plan.workspaceBytes));
  return LibraryPlan{ConvAttr::get(context, isDirect, target.getTf32(),
                                   plan.engine, knobs,
                                   runtime::cuda::getCudnnVersion(), scratch),
                     scratch};
}

std::optional<CallDescriptor> cuda::describeConvolution(kernel::ConvOp conv) {
  auto config = dyn_cast_or_null<ConvAttr>(conv.getConfigAttr());
  std::optional<penstock_conv_descriptor> shapes =
      describeShapes(kernel::ConvolutionShape::get(conv));
  if (!config || !shapes)
    return std::nullopt;
  ArrayRef<int64_t> knobs = config.getKnobs();
  std::vector<int64_t> words = CallDescriptor::toWords(penstock_cuda_conv{
      config.getDirect(), config.getTf32(), config.getEngine(),
      config.getCudnn(), static_cast<int64_t>(knobs.size() / 2)});
  words.insert(words.end(), knobs.begin(), knobs.end());
  return CallDescriptor{*shapes, std::move(words)};
}
