//===- Convolutions.cpp - The convolutions of a GPU -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prepares those of this device within the scratch that was planned.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Convolutions.h"
#include "penstock/severity.h"

#include "runtime/device/LibraryCalls.h"
#include "runtime/device/cuda/Cudnn.h"

#include <cstdio>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

Convolutions::Convolutions() = default;
Convolutions::~Convolutions() { clear(); }

void Convolutions::clear() {
  convolutions.clear();
  if (handle)
    library->cudnnDestroy(handle);
  handle = nullptr;
  stream = nullptr;
}

static std::string describe(const penstock_conv_descriptor &conv) {
  auto sizes = [&](int64_t first, int64_t second, const int64_t *spatial) {
    std::string text =
        format("%lld x %lld", (long long)first, (long long)second);
    for (uint32_t i = 0; i < conv.spatial_rank; ++i)
      text += format(" x %lld", (long long)spatial[i]);
    return text;
  };
  const char *kind = conv.kind == PENSTOCK_CONV_FORWARD ? "convolution"
                     : conv.kind == PENSTOCK_CONV_INPUT_GRAD
                         ? "input gradient of the convolution"
                         : "weight gradient of the convolution";
  return format("%s of %s by %s", kind,
                sizes(conv.batch, conv.input_channels, conv.input).c_str(),
                sizes(conv.output_channels, conv.input_channels / conv.groups,
                      conv.kernel)
                    .c_str());
}

Error Convolutions::prepare(const penstock_conv_descriptor &conv,
                            Address scratch, Prepared &result) {
  uint64_t workspaceBytes = getWorkspaceBytes(conv.scratch.bytes);
  result.workspace = getWorkspace(scratch);
  std::string error = result.graph.describe(conv, handle, /*facts=*/nullptr);
  auto *config = static_cast<const penstock_cuda_conv *>(conv.config);
  EngineFilter filter;
  if (config)
    filter = {config->is_direct != 0, config->is_tf32 != 0};
  bool wasPlanned = config && config->engine >= 0;
  bool isPlanned = wasPlanned &&
                   config->cudnn_version == int64_t(library->cudnnGetVersion());
  if (error.empty() && isPlanned) {
    auto *knobs = reinterpret_cast<const penstock_cuda_knob *>(config + 1);
    isPlanned =
        result.graph
            .restore(config->engine, {knobs, knobs + config->knob_count},
                     workspaceBytes, filter)
            .empty();
  }
  if (error.empty() && !isPlanned)
    error = result.graph.choose(workspaceBytes, filter);
  replanned += wasPlanned && !isPlanned;
  if (!error.empty())
    return userError("the %s: %s; compile where this version of cuDNN is "
                     "installed, or with a larger --library-workspace",
                     describe(conv).c_str(), error.c_str());
  return {};
}

Error Convolutions::prepare(const penstock_program &program, uint32_t device,
                            Address arena) {
  convolutions.resize(program.conv_count);
  replanned = 0;
  for (uint32_t i = 0; i < program.conv_count; ++i) {
    const penstock_conv_descriptor &conv = program.convs[i];
    if (!isCalledOn(conv, device))
      continue;
    if (!handle) {
      std::string error = loadCudnn(library);
      if (!error.empty())
        return userError("%s", error.c_str());
      if (int status = library->cudnnCreate(&handle))
        return userError("cuDNN %zu cannot use the GPU of device %u: %s",
                         library->cudnnGetVersion(), device,
                         library->cudnnGetErrorString(status));
    }
    if (Error error = prepare(conv, arena + scratchOffset(conv.scratch, device),
                              convolutions[i]))
      return error;
  }
  if (replanned)
    std::fprintf(stderr,
                 "%sdevice %u: cuDNN %zu does not take the engines "
                 "planned for %u convolutions and chose others\n",
                 penstock::getSeverityText(penstock::Severity::Warning), device,
                 library->cudnnGetVersion(), replanned);
  return {};
}

Error Convolutions::run(uint32_t id, Address input, Address weights,
                        Address output, Stream on) {
  if (on != stream) {
    if (int status = library->cudnnSetStream(handle, on))
      return defect("cudnnSetStream failed: %s",
                    library->cudnnGetErrorString(status));
    stream = on;
  }
  const Prepared &conv = convolutions[id];
  std::string error = conv.graph.run(input, weights, output, conv.workspace);
  if (!error.empty())
    return defect("convolution %u failed: %s", id, error.c_str());
  return {};
}
