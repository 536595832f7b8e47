//===- ConvolutionGraph.cpp - Convolutions by cuDNN -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The backend API of cuDNN: descriptors with attributes, finalized one after
// the other. Three tensors and a convolution make an operation, which makes a
// graph, for which heuristics list configurations of engines, the fastest
// first. Their notes say which of them compute in f32, and the same bits each
// time.
//===----------------------------------------------------------------------===//

#include "penstock/cuda_convolution.h"

#include "runtime/device/cuda/Cudnn.h"

#include <algorithm>
#include <cstdint>
#include <utility>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

/// More than there are types of knobs. cuDNN does not count them when asked.
static constexpr int64_t kKnobs = 64;

/// Names of the tensors in a graph.
enum : int64_t { kInput = 1, kWeights = 2, kOutput = 3 };

namespace {

/// The descriptor of one of the three operations, and its attributes.
struct OperationNames {
  int type, input, weights, output, convolution, alpha, beta;
};

} // namespace

static const OperationNames &getNames(uint32_t kind) {
  static constexpr OperationNames forward = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static constexpr OperationNames inputGrad = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  static constexpr OperationNames weightGrad = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  return kind == PENSTOCK_CONV_FORWARD      ? forward
         : kind == PENSTOCK_CONV_INPUT_GRAD ? inputGrad
                                            : weightGrad;
}

//===----------------------------------------------------------------------===//
// What cuDNN is asked
//===----------------------------------------------------------------------===//

/// Returns a padding after a dimension that gives as many windows as there are;
/// negative where there is none. Windows leave out up to stride - 1 elements at
/// the end, padding or not, so there is a choice: that before it, if possible.
static int64_t getPaddingAfter(const penstock_conv_descriptor &conv,
                               uint32_t i) {
  int64_t window = (conv.kernel[i] - 1) * conv.dilation[i] + 1;
  int64_t smallest = (conv.output[i] - 1) * conv.stride[i] + window -
                     conv.input[i] - conv.pad_before[i];
  int64_t before = conv.pad_before[i];
  if (before >= smallest && before < smallest + conv.stride[i])
    return before;
  return smallest + conv.stride[i] > 0 ? std::max<int64_t>(smallest, 0) : -1;
}

std::string cuda::checkConvolution(const penstock_conv_descriptor &conv) {
  if (conv.element != PENSTOCK_F32 && conv.element != PENSTOCK_BF16)
    return "it is neither f32 nor bf16";
  int64_t inputs = conv.batch * conv.input_channels;
  int64_t outputs = conv.batch * conv.output_channels;
  int64_t weights = conv.output_channels * (conv.input_channels / conv.groups);
  for (uint32_t i = 0; i < conv.spatial_rank; ++i) {
    if (getPaddingAfter(conv, i) < 0)
      return "its windows leave out elements at the end";
    inputs *= conv.input[i];
    outputs *= conv.output[i];
    weights *= conv.kernel[i];
  }
  if (std::max({inputs, outputs, weights}) > INT32_MAX)
    return "a tensor has more than 2^31 elements";
  return "";
}

bool cuda::isCommonConvolution(const penstock_conv_descriptor &conv) {
  for (uint32_t i = 0; i < conv.spatial_rank; ++i)
    if (getPaddingAfter(conv, i) != conv.pad_before[i])
      return false;
  return conv.spatial_rank <= 2 || conv.groups == 1;
}

int64_t cuda::getCudnnVersion() {
  const Cudnn *library = nullptr;
  return loadCudnn(library).empty() ? int64_t(library->cudnnGetVersion()) : 0;
}

/// Returns whether the numbers are those of f32, or of tf32 if they may be, and
/// the same each time. Of f32 operands, tensor cores read tf32.
static bool isAccepted(uint32_t notes, EngineFilter filter) {
  auto has = [&](int note) { return notes >> note & 1; };
  if ((has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) && !filter.isTf32) ||
      has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
      has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) ||
      has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) ||
      has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) ||
      has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13))
    return false;
  return !filter.isDirect || !(has(CUDNN_NUMERICAL_NOTE_FFT) ||
                               has(CUDNN_NUMERICAL_NOTE_WINOGRAD) ||
                               has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4));
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

namespace {

/// A descriptor, or none. Once something fails, nothing more is done with it.
class Descriptor {
public:
  Descriptor() = default;
  Descriptor(const Cudnn &library, int type) : library(&library) {
    status = library.cudnnBackendCreateDescriptor(type, &descriptor);
  }
  Descriptor(Descriptor &&other) noexcept
      : library(other.library), status(other.status),
        descriptor(std::exchange(other.descriptor, nullptr)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(library, other.library);
    std::swap(status, other.status);
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Descriptor() {
    if (descriptor)
      library->cudnnBackendDestroyDescriptor(descriptor);
  }

  template <typename T>
  void set(int attribute, int type, const T *values, size_t count) {
    if (!status)
      status = library->cudnnBackendSetAttribute(descriptor, attribute, type,
                                                 int64_t(count), values);
  }
  template <typename T>
  void set(int attribute, int type, const std::vector<T> &values) {
    set(attribute, type, values.data(), values.size());
  }
  template <typename T> void set(int attribute, int type, T value) {
    set(attribute, type, &value, 1);
  }
  void set(int attribute, const Descriptor &other) {
    set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.descriptor);
  }

  /// Returns the status of all that was done.
  int finalize() {
    if (!status)
      status = library->cudnnBackendFinalize(descriptor);
    return status;
  }

  /// Reads up to `room` values; false where cuDNN does not give the attribute.
  template <typename T>
  bool get(int attribute, int type, size_t room, std::vector<T> &values) const {
    values.resize(room);
    int64_t count = 0;
    if (library->cudnnBackendGetAttribute(descriptor, attribute, type,
                                          int64_t(room), &count, values.data()))
      return false;
    values.resize(std::min(room, size_t(count)));
    return true;
  }
  /// Returns a number; -1 where there is none.
  template <typename T> int64_t getNumber(int attribute, int type) const {
    std::vector<T> values;
    bool isThere = get(attribute, type, 1, values) && !values.empty();
    return isThere ? int64_t(values.front()) : -1;
  }
  int64_t getInteger(int attribute) const {
    return getNumber<int64_t>(attribute, CUDNN_TYPE_INT64);
  }
  /// Returns the bits of notes, which are small numbers; all of them where
  /// cuDNN does not give the attribute.
  uint32_t getNotes(int attribute, int type) const {
    std::vector<int32_t> notes;
    if (!get(attribute, type, 32, notes))
      return UINT32_MAX;
    uint32_t bits = 0;
    for (int32_t note : notes)
      bits |= 1u << (note & 31);
    return bits;
  }
  /// Returns how many descriptors an attribute lists.
  int64_t countDescriptors(int attribute) const {
    int64_t count = 0;
    library->cudnnBackendGetAttribute(descriptor, attribute,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                      nullptr);
    return count;
  }
  /// Returns up to `count` of the descriptors of this type that it lists.
  std::vector<Descriptor> getDescriptors(int attribute, int type,
                                         int64_t count) const {
    std::vector<Descriptor> result;
    std::vector<CudnnDescriptor> handles;
    for (int64_t i = 0; i < count; ++i)
      handles.push_back(result.emplace_back(*library, type).descriptor);
    int64_t written = 0;
    if (library->cudnnBackendGetAttribute(descriptor, attribute,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                          &written, handles.data()))
      written = 0;
    result.resize(size_t(std::min(count, written)));
    return result;
  }

  CudnnDescriptor get() const { return descriptor; }

private:
  const Cudnn *library = nullptr;
  int status = 0;
  CudnnDescriptor descriptor = nullptr;
};

} // namespace

/// A dense tensor, at least four-dimensional.
static Descriptor describeTensor(const Cudnn &library, int64_t id, bool isBf16,
                                 const std::vector<int64_t> &sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * sizes[i + 1];
  Descriptor tensor(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
             int32_t(isBf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64,
             kTensorAlignment);
  return tensor;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

struct ConvolutionGraph::State {
  const Cudnn *library = nullptr;
  CudnnHandle handle = nullptr;
  bool hasDevice = false;
  /// True if tensors are bf16. Sums are in f32.
  bool isBf16 = false;
  /// In the order in which each needs those before it.
  Descriptor device, input, weights, output, convolution, operation, graph;
  Descriptor engine, config, executionPlan;
  ConvolutionPlan plan;

  std::string explain(const char *what, int status) const {
    return std::string("cuDNN ") + std::to_string(library->cudnnGetVersion()) +
           " takes no " + what + ": " + library->cudnnGetErrorString(status);
  }

  /// Nothing is rounded further where tensor cores read bf16.
  EngineFilter getFilter(EngineFilter filter) const {
    return {filter.isDirect, filter.isTf32 || isBf16};
  }
  const char *getPrecision(EngineFilter filter) const {
    return isBf16 ? "bf16" : filter.isTf32 ? "tf32" : "f32";
  }
  bool take(Descriptor candidateEngine, Descriptor candidate,
            uint64_t workspaceBytes);
};

ConvolutionGraph::ConvolutionGraph() = default;
ConvolutionGraph::ConvolutionGraph(ConvolutionGraph &&) noexcept = default;
ConvolutionGraph &
ConvolutionGraph::operator=(ConvolutionGraph &&) noexcept = default;
ConvolutionGraph::~ConvolutionGraph() = default;

const ConvolutionPlan &ConvolutionGraph::getPlan() const { return state->plan; }

std::string ConvolutionGraph::describe(const penstock_conv_descriptor &conv,
                                       CudnnHandle handle, const char *facts) {
  if (std::string reason = checkConvolution(conv); !reason.empty())
    return reason;
  state = std::make_unique<State>();
  if (std::string error = loadCudnn(state->library); !error.empty())
    return error;
  const Cudnn &library = *state->library;

  // 1. The device.
  state->handle = handle;
  state->isBf16 = conv.element == PENSTOCK_BF16;
  if (facts) {
    state->hasDevice = true;
    state->device = Descriptor(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    state->device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                      CUDNN_TYPE_CHAR, facts, std::string(facts).size() + 1);
    if (int status = state->device.finalize())
      return state->explain("description of the GPU", status);
  }

  // 2. Tensors. One spatial dimension is the second of two.
  std::vector<int64_t> input = {conv.batch, conv.input_channels};
  std::vector<int64_t> weights = {conv.output_channels,
                                  conv.input_channels / conv.groups};
  std::vector<int64_t> output = {conv.batch, conv.output_channels};
  std::vector<int64_t> strides, dilations, padsBefore, padsAfter;
  auto add = [&](int64_t inputSize, int64_t window, int64_t outputSize,
                 int64_t stride, int64_t dilation, int64_t before,
                 int64_t after) {
    input.push_back(inputSize);
    weights.push_back(window);
    output.push_back(outputSize);
    strides.push_back(stride);
    dilations.push_back(dilation);
    padsBefore.push_back(before);
    padsAfter.push_back(after);
  };
  if (conv.spatial_rank == 1)
    add(1, 1, 1, 1, 1, 0, 0);
  for (uint32_t i = 0; i < conv.spatial_rank; ++i)
    add(conv.input[i], conv.kernel[i], conv.output[i], conv.stride[i],
        conv.dilation[i], conv.pad_before[i], getPaddingAfter(conv, i));
  state->input = describeTensor(library, kInput, state->isBf16, input);
  state->weights = describeTensor(library, kWeights, state->isBf16, weights);
  state->output = describeTensor(library, kOutput, state->isBf16, output);
  for (Descriptor *tensor : {&state->input, &state->weights, &state->output})
    if (int status = tensor->finalize())
      return state->explain("such tensor", status);

  // 3. The convolution.
  Descriptor &convolution = state->convolution;
  convolution = Descriptor(library, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
                  int64_t(strides.size()));
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                  int32_t(CUDNN_DATA_FLOAT));
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                  int32_t(CUDNN_CROSS_CORRELATION));
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64,
                  padsBefore);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
                  padsAfter);
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
                  strides);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64,
                  dilations);
  if (int status = convolution.finalize())
    return state->explain("such convolution", status);

  // 4. The operation. The gradient of the weights adds to what is there.
  const OperationNames &names = getNames(conv.kind);
  Descriptor &operation = state->operation;
  operation = Descriptor(library, names.type);
  operation.set(names.input, state->input);
  operation.set(names.weights, state->weights);
  operation.set(names.output, state->output);
  operation.set(names.convolution, convolution);
  // Of the type in which it computes. cuDNN accepts a double, too, and reads
  // its first half: 1.0 is 0.0f then.
  operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
  operation.set(names.beta, CUDNN_TYPE_FLOAT,
                conv.kind == PENSTOCK_CONV_WEIGHT_GRAD ? 1.0f : 0.0f);
  if (int status = operation.finalize())
    return state->explain("such operation", status);

  // 5. The graph.
  state->graph = Descriptor(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  state->graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (handle)
    state->graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
                     handle);
  if (int status = state->graph.finalize())
    return state->explain("such graph", status);
  return "";
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

static uint32_t getNotes(const Descriptor &engine) {
  return engine.getNotes(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                         CUDNN_TYPE_NUMERICAL_NOTE);
}

/// Makes the plan with a configuration; false where it fails, or needs more
/// workspace.
bool ConvolutionGraph::State::take(Descriptor candidateEngine,
                                   Descriptor candidate,
                                   uint64_t workspaceBytes) {
  Descriptor made(*library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  made.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate);
  if (handle)
    made.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
  if (hasDevice)
    made.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  if (made.finalize())
    return false;
  int64_t bytes = made.getInteger(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  if (bytes < 0 || uint64_t(bytes) > workspaceBytes)
    return false;

  plan = {candidateEngine.getInteger(CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
          {},
          uint64_t(bytes),
          getNotes(candidateEngine)};
  for (const Descriptor &choice :
       candidate.getDescriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kKnobs))
    plan.knobs.push_back(
        {choice.getNumber<int32_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                   CUDNN_TYPE_KNOB_TYPE),
         choice.getInteger(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)});
  engine = std::move(candidateEngine);
  config = std::move(candidate);
  executionPlan = std::move(made);
  return true;
}

std::vector<ConvolutionPlan> ConvolutionGraph::list(uint64_t workspaceBytes,
                                                    EngineFilter filter,
                                                    size_t most) {
  const Cudnn &library = *state->library;
  std::vector<ConvolutionPlan> plans;
  // The second list has engines that are always there.
  for (int32_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor heuristic(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, state->graph);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (state->hasDevice)
      heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, state->device);
    if (heuristic.finalize())
      continue;
    struct Candidate {
      Descriptor engine, config;
    };
    std::vector<Candidate> ready, toCompile;
    for (Descriptor &config : heuristic.getDescriptors(
             CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
             heuristic.countDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS))) {
      std::vector<Descriptor> engine = config.getDescriptors(
          CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
      if (engine.empty() ||
          !isAccepted(getNotes(engine.front()), state->getFilter(filter)))
        continue;
      uint32_t behavior = engine.front().getNotes(
          CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
      bool compiles = behavior >> CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION & 1;
      (compiles ? toCompile : ready)
          .push_back({std::move(engine.front()), std::move(config)});
    }
    for (std::vector<Candidate> *list : {&ready, &toCompile})
      for (Candidate &each : *list)
        if (state->take(std::move(each.engine), std::move(each.config),
                        workspaceBytes)) {
          plans.push_back(state->plan);
          if (plans.size() == most)
            return plans;
        }
  }
  return plans;
}

std::string ConvolutionGraph::choose(uint64_t workspaceBytes,
                                     EngineFilter filter) {
  // It takes the last one that it lists.
  if (!list(workspaceBytes, filter, 1).empty())
    return "";
  return "no engine of cuDNN " +
         std::to_string(state->library->cudnnGetVersion()) +
         " computes it in " + state->getPrecision(filter) + " with " +
         std::to_string(workspaceBytes) + " bytes of workspace";
}

std::string
ConvolutionGraph::restore(int64_t index,
                          const std::vector<penstock_cuda_knob> &knobs,
                          uint64_t workspaceBytes, EngineFilter filter) {
  const Cudnn &library = *state->library;
  Descriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, state->graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, index);
  if (state->hasDevice)
    engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, state->device);
  std::string name = "engine " + std::to_string(index);
  if (int status = engine.finalize())
    return state->explain(name.c_str(), status);
  if (!isAccepted(getNotes(engine), state->getFilter(filter)))
    return name + " does not compute in " + state->getPrecision(filter);

  std::vector<Descriptor> choices;
  std::vector<CudnnDescriptor> handles;
  for (const penstock_cuda_knob &knob : knobs) {
    Descriptor &choice =
        choices.emplace_back(library, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
               int32_t(knob.type));
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, knob.value);
    if (int status = choice.finalize())
      return state->explain(("knob of " + name).c_str(), status);
    handles.push_back(choice.get());
  }
  Descriptor config(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!handles.empty())
    config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               handles);
  if (int status = config.finalize())
    return state->explain(("configuration of " + name).c_str(), status);
  if (!state->take(std::move(engine), std::move(config), workspaceBytes))
    return name + " does not run, or needs more than " +
           std::to_string(workspaceBytes) + " bytes of workspace";
  return "";
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

std::string ConvolutionGraph::run(uint64_t input, uint64_t weights,
                                  uint64_t output, uint64_t workspace) const {
  if ((input | weights | output) % kTensorAlignment)
    return "a tensor is not aligned to " + std::to_string(kTensorAlignment) +
           " bytes";
  const Cudnn &library = *state->library;
  Descriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const int64_t ids[] = {kInput, kWeights, kOutput};
  const uint64_t addresses[] = {input, weights, output};
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids, 3);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           addresses, 3);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  int status = pack.finalize();
  if (!status)
    status = library.cudnnBackendExecute(
        state->handle, state->executionPlan.get(), pack.get());
  return status ? library.cudnnGetErrorString(status) : "";
}
