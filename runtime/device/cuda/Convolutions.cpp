//===- Convolutions.cpp - The convolutions of a GPU -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prepares those of this device within the scratch that was planned: by the
// choice of a tuning, by the engine that was planned, by cuDNN's heuristics.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Convolutions.h"
#include "penstock/severity.h"

#include "runtime/device/LibraryCalls.h"
#include "runtime/device/cuda/Cudnn.h"
#include "runtime/device/cuda/Tuning.h"

#include <charconv>
#include <cstdio>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

/// As cuDNN is called where choices are kept.
static constexpr char kCudnn[] = "cuDNN";
/// Engines that are measured, at most.
static constexpr size_t kCandidates = 8;

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

//===----------------------------------------------------------------------===//
// Choices that are kept
//===----------------------------------------------------------------------===//

/// "ENGINE KNOB:VALUE ..".
static std::string print(const ConvolutionPlan &plan) {
  std::string text = format("%lld", (long long)plan.engine);
  for (const penstock_cuda_knob &knob : plan.knobs)
    text += format(" %lld:%lld", (long long)knob.type, (long long)knob.value);
  return text;
}

static bool parse(const std::string &text, ConvolutionPlan &plan) {
  const char *at = text.data(), *last = at + text.size();
  auto take = [&](int64_t &number) {
    auto [stop, status] = std::from_chars(at, last, number);
    at = stop;
    return status == std::errc();
  };
  auto skip = [&](char character) { return at != last && *at++ == character; };
  if (!take(plan.engine))
    return false;
  while (at != last) {
    penstock_cuda_knob &knob = plan.knobs.emplace_back();
    if (!skip(' ') || !take(knob.type) || !skip(':') || !take(knob.value))
      return false;
  }
  return true;
}

/// All that the choice of an engine depends on.
static std::string getKey(const penstock_conv_descriptor &conv,
                          EngineFilter filter, uint64_t workspaceBytes) {
  std::string key = describe(conv);
  auto add = [&](const char *name, const int64_t *values) {
    key += format(" %s", name);
    for (uint32_t i = 0; i < conv.spatial_rank; ++i)
      key += format("%c%lld", i ? ',' : ' ', (long long)values[i]);
  };
  add("output", conv.output);
  add("stride", conv.stride);
  add("dilation", conv.dilation);
  add("before", conv.pad_before);
  add("after", conv.pad_after);
  return key + format(" groups %lld %s%s workspace %llu",
                      (long long)conv.groups,
                      conv.element == PENSTOCK_BF16 ? "bf16"
                      : filter.isTf32               ? "tf32"
                                                    : "f32",
                      filter.isDirect ? " direct" : "",
                      (unsigned long long)workspaceBytes);
}

/// Takes the engine that a tuning has for a convolution, or measures; false
/// where there is none.
bool Convolutions::tune(const penstock_conv_descriptor &conv,
                        EngineFilter filter, Tuning &tuning,
                        ConvolutionGraph &graph) {
  uint64_t workspaceBytes = getWorkspaceBytes(conv.scratch.bytes);
  std::string key = getKey(conv, filter, workspaceBytes);

  // Memory for a workspace and the three tensors.
  uint64_t element = conv.element == PENSTOCK_BF16 ? 2 : 4;
  uint64_t input = uint64_t(conv.batch * conv.input_channels) * element;
  uint64_t weights =
      uint64_t(conv.output_channels * (conv.input_channels / conv.groups)) *
      element;
  uint64_t output = uint64_t(conv.batch * conv.output_channels) * element;
  for (uint32_t i = 0; i < conv.spatial_rank; ++i) {
    input *= uint64_t(conv.input[i]);
    weights *= uint64_t(conv.kernel[i]);
    output *= uint64_t(conv.output[i]);
  }
  uint64_t begins[4] = {};
  const uint64_t sizes[] = {workspaceBytes, input, weights, output};
  uint64_t bytes = 0;
  for (size_t i = 0; i < std::size(sizes); ++i) {
    begins[i] = bytes;
    bytes += sizes[i] + -sizes[i] % kWorkspaceAlignment;
  }

  std::string choice = tuning.choose(
      kCudnn, int64_t(library->cudnnGetVersion()), key, bytes,
      [&](Address memory) {
        std::vector<Candidate> candidates;
        for (const ConvolutionPlan &plan :
             graph.list(workspaceBytes, filter, kCandidates)) {
          // Plans are made one at a time, the first time that each is called.
          auto run = [&, plan, isMade = false, memory,
                      begins](Stream on) mutable {
            if (!isMade &&
                !graph.restore(plan.engine, plan.knobs, workspaceBytes, filter)
                     .empty())
              return false;
            isMade = true;
            return !setStream(on) &&
                   graph
                       .run(memory + begins[1], memory + begins[2],
                            memory + begins[3], memory + begins[0])
                       .empty();
          };
          candidates.push_back({print(plan), run});
        }
        return candidates;
      });
  if (choice.empty())
    return false;
  ConvolutionPlan plan;
  if (parse(choice, plan) &&
      graph.restore(plan.engine, plan.knobs, workspaceBytes, filter).empty())
    return true;
  tuning.reject(kCudnn, key);
  return false;
}

Error Convolutions::prepare(const penstock_conv_descriptor &conv,
                            Address scratch, Tuning *tuning, Prepared &result) {
  uint64_t workspaceBytes = getWorkspaceBytes(conv.scratch.bytes);
  result.workspace = getWorkspace(scratch);
  std::string error = result.graph.describe(conv, handle, /*facts=*/nullptr);
  auto *config = static_cast<const penstock_cuda_conv *>(conv.config);
  EngineFilter filter;
  if (config)
    filter = {config->is_direct != 0, config->is_tf32 != 0};
  if (error.empty() && tuning && tune(conv, filter, *tuning, result.graph))
    return {};
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
                            Address arena, Tuning *tuning) {
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
                              tuning, convolutions[i]))
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

int Convolutions::setStream(Stream on) {
  int status = on == stream ? 0 : library->cudnnSetStream(handle, on);
  if (!status)
    stream = on;
  return status;
}

Error Convolutions::run(uint32_t id, Address input, Address weights,
                        Address output, Stream on) {
  if (int status = setStream(on))
    return defect("cudnnSetStream failed: %s",
                  library->cudnnGetErrorString(status));
  const Prepared &conv = convolutions[id];
  std::string error = conv.graph.run(input, weights, output, conv.workspace);
  if (!error.empty())
    return defect("convolution %u failed: %s", id, error.c_str());
  return {};
}
