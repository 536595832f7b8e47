//===- Cudnn.cpp - cuDNN of the emulated GPU ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs of one convolution of f32 tensors with any strides, from descriptors
// whose attributes are checked as the documentation says: their types, that all
// are there and fit, and that what a descriptor is made of is finalized. Some
// of its engines are traps: those that do not compute in f32 do not compute at
// all.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Cudnn.h"

#include "runtime/device/emulated/Enqueue.h"
#include "runtime/device/emulated/Libraries.h"
#include "runtime/support/Bf16.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <vector>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;
using emulated::atAddress;

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

namespace {

struct Descriptor;

struct Attribute {
  int64_t count = 0;
  std::vector<char> bytes;
  std::vector<std::shared_ptr<const Descriptor>> descriptors;

  template <typename T> std::vector<T> get() const {
    std::vector<T> values(static_cast<size_t>(count));
    if (count)
      std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

struct Descriptor {
  int type;
  bool isFinalized = false;
  std::map<int, Attribute> attributes;

  bool has(int attribute) const { return attributes.count(attribute) != 0; }
  template <typename T> std::vector<T> getAll(int attribute) const {
    auto found = attributes.find(attribute);
    return found == attributes.end() ? std::vector<T>()
                                     : found->second.get<T>();
  }
  /// Returns the value of an attribute that is set.
  template <typename T> T get(int attribute) const {
    return attributes.at(attribute).get<T>().front();
  }
  const Descriptor &getDescriptor(int attribute) const {
    return *attributes.at(attribute).descriptors.front();
  }
};

/// An attribute that can be set: its type, and whether it must be.
struct Row {
  int descriptor, attribute, type;
  bool isRequired;
};

/// Those that we set; others may be, in the real library.
constexpr Row kRows[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE,
     CUDNN_TYPE_DATA_TYPE, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
     CUDNN_TYPE_INT64, true},

    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
     CUDNN_TYPE_DATA_TYPE, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     CUDNN_TYPE_CONVOLUTION_MODE, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS,
     CUDNN_TYPE_INT64, true},

#define PENSTOCK_OPERATION(type, prefix, input, weights, output)               \
  {type, prefix##_##input, CUDNN_TYPE_BACKEND_DESCRIPTOR, true},               \
      {type, prefix##_##weights, CUDNN_TYPE_BACKEND_DESCRIPTOR, true},         \
      {type, prefix##_##output, CUDNN_TYPE_BACKEND_DESCRIPTOR, true},          \
      {type, prefix##_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, true},         \
      {type, prefix##_ALPHA, CUDNN_TYPE_FLOAT, true}, {                        \
    type, prefix##_BETA, CUDNN_TYPE_FLOAT, true                                \
  }
    PENSTOCK_OPERATION(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD, X, W, Y),
    PENSTOCK_OPERATION(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA, DX, W, DY),
    PENSTOCK_OPERATION(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER, X, DW, DY),
#undef PENSTOCK_OPERATION

    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
     CUDNN_TYPE_HANDLE, true},

    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE,
     CUDNN_TYPE_HEUR_MODE, true},

    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
     CUDNN_TYPE_KNOB_TYPE, true},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, false},

    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
     true},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
     CUDNN_TYPE_HANDLE, true},

    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
     CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
     CUDNN_TYPE_VOID_PTR, true},
};

/// An engine: its notes, and the workspace that it needs for each value of its
/// one knob, which is then at most 3.
struct Engine {
  int index;
  uint32_t notes;
  size_t workspaceBytes;
  bool isCompiled;

  bool computes() const {
    return !(notes & 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  }
  bool rounds() const { return notes & 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE; }
};

constexpr int kKnob = 2;
constexpr int64_t kKnobValue = 3, kKnobDefault = 1;

/// Engines by index.
constexpr Engine kEngines[] = {
    {0, 0, 0, false},
    {1, 0, 1 << 10, false},
    {2, 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0, false},
    {3, 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 0, false},
    {4, 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD, 0, false},
    {5, 0, 1 << 11, true}};
/// The fastest first.
constexpr int kByHeuristics[] = {2, 5, 3, 1, 4}, kFallback[] = {2, 0};

} // namespace

struct cuda::CudnnState {
  Stream stream = nullptr;
};

struct cuda::CudnnDescriptorState {
  std::shared_ptr<Descriptor> descriptor;
};

static size_t getElementSize(int type) {
  switch (type) {
  case CUDNN_TYPE_CHAR:
    return 1;
  case CUDNN_TYPE_FLOAT:
  case CUDNN_TYPE_DATA_TYPE:
  case CUDNN_TYPE_CONVOLUTION_MODE:
  case CUDNN_TYPE_HEUR_MODE:
  case CUDNN_TYPE_KNOB_TYPE:
  case CUDNN_TYPE_NUMERICAL_NOTE:
  case CUDNN_TYPE_BEHAVIOR_NOTE:
    return 4;
  default:
    return 8;
  }
}

static size_t getCudnnVersion() { return 91900; }

static const char *getErrorString(int status) {
  return status == CUDNN_STATUS_SUCCESS     ? "CUDNN_STATUS_SUCCESS"
         : status == CUDNN_STATUS_BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM"
                                            : "CUDNN_STATUS_NOT_SUPPORTED";
}

static int create(CudnnHandle *result) {
  *result = new CudnnState;
  return CUDNN_STATUS_SUCCESS;
}

static int destroy(CudnnHandle handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

static int setStream(CudnnHandle handle, Stream stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

static int createDescriptor(int type, CudnnDescriptor *result) {
  bool isKnown =
      std::any_of(std::begin(kRows), std::end(kRows),
                  [&](const Row &row) { return row.descriptor == type; });
  if (!isKnown)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *result = new CudnnDescriptorState{
      std::make_shared<Descriptor>(Descriptor{type, false, {}})};
  return CUDNN_STATUS_SUCCESS;
}

static int destroyDescriptor(CudnnDescriptor descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

static int setAttribute(CudnnDescriptor state, int attribute, int type,
                        int64_t count, const void *values) {
  Descriptor &descriptor = *state->descriptor;
  auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row &row) {
        return row.descriptor == descriptor.type && row.attribute == attribute;
      });
  if (row == std::end(kRows))
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (descriptor.isFinalized || row->type != type || count < 1 || !values)
    return CUDNN_STATUS_BAD_PARAM;
  Attribute set;
  set.count = count;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto *handles = static_cast<const CudnnDescriptor *>(values);
    for (int64_t i = 0; i < count; ++i) {
      if (!handles[i]->descriptor->isFinalized)
        return CUDNN_STATUS_BAD_PARAM;
      set.descriptors.push_back(handles[i]->descriptor);
    }
  } else {
    auto *from = static_cast<const char *>(values);
    set.bytes.assign(from, from + size_t(count) * getElementSize(type));
  }
  descriptor.attributes[attribute] = std::move(set);
  return CUDNN_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

namespace {

/// A tensor with three spatial dimensions; the first are 1 where it has fewer.
struct Tensor {
  std::array<int64_t, 5> sizes = {1, 1, 1, 1, 1}, strides = {};
  int64_t id = 0, alignment = 1;
  bool isBf16 = false;

  static bool read(const Descriptor &from, Tensor &result);
  /// One more than the offset of its last element.
  size_t getSpan() const {
    int64_t last = 0;
    for (size_t i = 0; i < sizes.size(); ++i)
      last += (sizes[i] - 1) * strides[i];
    return size_t(last) + 1;
  }
  /// Calls body(offset) for every element.
  template <typename Body> void forEach(Body body) const {
    for (int64_t n = 0; n < sizes[0]; ++n)
      for (int64_t c = 0; c < sizes[1]; ++c)
        for (int64_t z = 0; z < sizes[2]; ++z)
          for (int64_t y = 0; y < sizes[3]; ++y)
            for (int64_t x = 0; x < sizes[4]; ++x)
              body(n * strides[0] + c * strides[1] + z * strides[2] +
                   y * strides[3] + x * strides[4]);
  }
};

/// The elements of a tensor as f32, which it is if it is not of bf16.
class AsFloats {
public:
  AsFloats(const Tensor &tensor, void *data) : tensor(tensor), data(data) {
    if (!tensor.isBf16)
      return;
    floats.resize(tensor.getSpan());
    tensor.forEach([&](int64_t offset) {
      floats[size_t(offset)] =
          fromBf16(static_cast<const uint16_t *>(data)[offset]);
    });
  }
  float *get() {
    return tensor.isBf16 ? floats.data() : static_cast<float *>(data);
  }
  /// Rounds what was computed.
  void store() {
    if (tensor.isBf16)
      tensor.forEach([&](int64_t offset) {
        static_cast<uint16_t *>(data)[offset] =
            roundToBf16(floats[size_t(offset)]);
      });
  }

private:
  const Tensor &tensor;
  void *data;
  std::vector<float> floats;
};

struct Convolution {
  enum Kind { Forward, InputGrad, WeightGrad } kind;
  Tensor input, weights, output;
  std::array<int64_t, 3> strides = {1, 1, 1}, dilations = {1, 1, 1}, pads = {};
  double alpha, beta;

  static bool read(const Descriptor &operation, Convolution &result);
  const Tensor &getResult() const {
    return kind == Forward ? output : kind == InputGrad ? input : weights;
  }
  /// `rounds`: reads operands as tf32.
  void run(const float *x, const float *w, const float *y, float *result,
           bool rounds) const;
};

} // namespace

bool Tensor::read(const Descriptor &from, Tensor &result) {
  auto sizes = from.getAll<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  auto strides = from.getAll<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  if (sizes.size() != strides.size() || sizes.size() < 4 || sizes.size() > 5 ||
      *std::min_element(sizes.begin(), sizes.end()) < 1 ||
      *std::min_element(strides.begin(), strides.end()) < 1)
    return false;
  int32_t type = from.get<int32_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_BFLOAT16)
    return false;
  result.isBf16 = type == CUDNN_DATA_BFLOAT16;
  // Batch and channels come first, the spatial dimensions last.
  for (size_t i = 0; i < sizes.size(); ++i) {
    size_t to = i < 2 ? i : i + 5 - sizes.size();
    result.sizes[to] = sizes[i];
    result.strides[to] = strides[i];
  }
  result.id = from.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  result.alignment = from.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  return result.alignment > 0;
}

bool Convolution::read(const Descriptor &operation, Convolution &result) {
  // The six attributes of each kind, in the order of their numbers.
  struct Names {
    int input, weights, output, alpha, beta, convolution;
  } names;
  switch (operation.type) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    result.kind = Forward;
    names = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC};
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    result.kind = InputGrad;
    names = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC};
    break;
  default:
    result.kind = WeightGrad;
    names = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC};
  }
  const Descriptor &convolution = operation.getDescriptor(names.convolution);
  auto rank =
      size_t(convolution.get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  auto strides =
      convolution.getAll<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  auto dilations =
      convolution.getAll<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  auto before =
      convolution.getAll<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  auto after =
      convolution.getAll<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  if (!Tensor::read(operation.getDescriptor(names.input), result.input) ||
      !Tensor::read(operation.getDescriptor(names.weights), result.weights) ||
      !Tensor::read(operation.getDescriptor(names.output), result.output))
    return false;
  const auto &in = result.input.sizes, &window = result.weights.sizes,
             &out = result.output.sizes;
  for (size_t i = 0; i < rank; ++i) {
    size_t at = i + 3 - rank;
    result.strides[at] = strides[i];
    result.dilations[at] = dilations[i];
    result.pads[at] = before[i];
    int64_t extent = (window[at + 2] - 1) * dilations[i] + 1;
    if (out[at + 2] !=
        1 + (in[at + 2] + before[i] + after[i] - extent) / strides[i])
      return false;
  }
  result.alpha = operation.get<float>(names.alpha);
  result.beta = operation.get<float>(names.beta);
  // All tensors have one type; the library has engines for nothing else. The
  // weights have the input channels of one group.
  return result.input.isBf16 == result.output.isBf16 &&
         result.input.isBf16 == result.weights.isBf16 && in[0] == out[0] &&
         window[0] == out[1] && in[1] % window[1] == 0 &&
         out[1] % (in[1] / window[1]) == 0;
}

void Convolution::run(const float *x, const float *w, const float *y,
                      float *result, bool rounds) const {
  const auto &in = input.sizes, &window = weights.sizes, &out = output.sizes;
  std::vector<double> sums(getResult().getSpan(), 0.0);
  int64_t groups = in[1] / window[1];
  auto multiply = [&](float left, float right) {
    if (rounds) {
      left = emulated::roundToTf32(left);
      right = emulated::roundToTf32(right);
    }
    return double(left) * right;
  };
  // Windows of one tap along the last dimension that lie in the input: `begin`
  // to before `end`.
  auto findWindows = [&](int64_t tap, int64_t &begin, int64_t &end) {
    int64_t first = tap * dilations[2] - pads[2];
    begin = first < 0 ? (-first + strides[2] - 1) / strides[2] : 0;
    end = std::min(out[4], (in[4] - first + strides[2] - 1) / strides[2]);
  };
  auto addRow = [&](int64_t n, int64_t k, int64_t c, const int64_t *tap,
                    int64_t z, int64_t row) {
    int64_t inZ = z * strides[0] + tap[0] * dilations[0] - pads[0];
    int64_t inY = row * strides[1] + tap[1] * dilations[1] - pads[1];
    if (inZ < 0 || inZ >= in[2] || inY < 0 || inY >= in[3])
      return;
    int64_t begin, end;
    findWindows(tap[2], begin, end);
    int64_t channel = k / (out[1] / groups) * window[1] + c;
    int64_t atInput = n * input.strides[0] + channel * input.strides[1] +
                      inZ * input.strides[2] + inY * input.strides[3] +
                      (begin * strides[2] + tap[2] * dilations[2] - pads[2]) *
                          input.strides[4];
    int64_t atWeights = k * weights.strides[0] + c * weights.strides[1] +
                        tap[0] * weights.strides[2] +
                        tap[1] * weights.strides[3] +
                        tap[2] * weights.strides[4];
    int64_t atOutput = n * output.strides[0] + k * output.strides[1] +
                       z * output.strides[2] + row * output.strides[3] +
                       begin * output.strides[4];
    int64_t inputStep = strides[2] * input.strides[4],
            outputStep = output.strides[4];
    for (int64_t i = begin; i < end;
         ++i, atInput += inputStep, atOutput += outputStep)
      if (kind == Forward)
        sums[size_t(atOutput)] += multiply(x[atInput], w[atWeights]);
      else if (kind == InputGrad)
        sums[size_t(atInput)] += multiply(y[atOutput], w[atWeights]);
      else
        sums[size_t(atWeights)] += multiply(x[atInput], y[atOutput]);
  };
  for (int64_t n = 0; n < in[0]; ++n)
    for (int64_t k = 0; k < out[1]; ++k)
      for (int64_t c = 0; c < window[1]; ++c)
        for (int64_t taps = 0; taps < window[2] * window[3] * window[4];
             ++taps) {
          int64_t tap[] = {taps / (window[3] * window[4]),
                           taps / window[4] % window[3], taps % window[4]};
          for (int64_t z = 0; z < out[2]; ++z)
            for (int64_t row = 0; row < out[3]; ++row)
              addRow(n, k, c, tap, z, row);
        }
  getResult().forEach([&](int64_t offset) {
    // With beta = 0, the result is not read: it may hold anything.
    double added = beta == 0.0 ? 0.0 : beta * result[offset];
    result[offset] = float(alpha * sums[size_t(offset)] + added);
  });
}

//===----------------------------------------------------------------------===//
// Graphs and plans
//===----------------------------------------------------------------------===//

static const Engine &getEngine(const Descriptor &engine) {
  return kEngines[engine.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)];
}

/// The workspace that a configuration of an engine needs.
static size_t getWorkspaceBytes(const Descriptor &config) {
  int64_t value = kKnobDefault;
  if (config.has(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES))
    value = config.getDescriptor(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)
                .get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
  return getEngine(config.getDescriptor(CUDNN_ATTR_ENGINECFG_ENGINE))
             .workspaceBytes *
         size_t(value);
}

static bool isValidConvolution(const Descriptor &convolution) {
  int64_t rank = convolution.get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  for (int attribute : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
                        CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                        CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                        CUDNN_ATTR_CONVOLUTION_DILATIONS}) {
    bool isPadding = attribute == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS ||
                     attribute == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS;
    auto values = convolution.getAll<int64_t>(attribute);
    if (int64_t(values.size()) != rank ||
        *std::min_element(values.begin(), values.end()) < (isPadding ? 0 : 1))
      return false;
  }
  return (rank == 2 || rank == 3) &&
         convolution.get<int32_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) ==
             CUDNN_DATA_FLOAT &&
         convolution.get<int32_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) ==
             CUDNN_CROSS_CORRELATION;
}

static bool isValid(const Descriptor &descriptor) {
  for (const Row &row : kRows)
    if (row.descriptor == descriptor.type && row.isRequired &&
        !descriptor.has(row.attribute))
      return false;
  switch (descriptor.type) {
  case CUDNN_BACKEND_TENSOR_DESCRIPTOR: {
    Tensor tensor;
    return Tensor::read(descriptor, tensor);
  }
  case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
    return isValidConvolution(descriptor);
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: {
    Convolution convolution;
    return Convolution::read(descriptor, convolution);
  }
  case CUDNN_BACKEND_ENGINE_DESCRIPTOR: {
    int64_t index = descriptor.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    return index >= 0 && index < int64_t(std::size(kEngines));
  }
  case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR: {
    int64_t value = descriptor.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    return descriptor.get<int32_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) == kKnob &&
           value > 0 && value <= kKnobValue;
  }
  case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
    return descriptor.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count ==
           descriptor.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
               .count;
  default:
    return true;
  }
}

static int finalize(CudnnDescriptor state) {
  Descriptor &descriptor = *state->descriptor;
  if (descriptor.isFinalized || !isValid(descriptor))
    return CUDNN_STATUS_BAD_PARAM;
  descriptor.isFinalized = true;
  return CUDNN_STATUS_SUCCESS;
}

/// Lists the configurations that heuristics offer: engines with their knob.
static std::vector<std::shared_ptr<const Descriptor>>
listConfigurations(const Descriptor &heuristic) {
  auto add = [](Descriptor &to, int attribute, auto value) {
    Attribute set;
    set.count = 1;
    set.bytes.resize(sizeof(value));
    std::memcpy(set.bytes.data(), &value, sizeof(value));
    to.attributes[attribute] = std::move(set);
  };
  auto addDescriptor = [](Descriptor &to, int attribute, Descriptor value) {
    value.isFinalized = true;
    Attribute set;
    set.count = 1;
    set.descriptors.push_back(std::make_shared<Descriptor>(std::move(value)));
    to.attributes[attribute] = std::move(set);
  };
  bool isFallback = heuristic.get<int32_t>(CUDNN_ATTR_ENGINEHEUR_MODE) ==
                    CUDNN_HEUR_MODE_FALLBACK;
  std::vector<int> indices(std::begin(kFallback), std::end(kFallback));
  if (!isFallback)
    indices.assign(std::begin(kByHeuristics), std::end(kByHeuristics));
  std::vector<std::shared_ptr<const Descriptor>> result;
  for (int index : indices) {
    Descriptor engine = {CUDNN_BACKEND_ENGINE_DESCRIPTOR, false, {}};
    engine.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
        heuristic.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    add(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, int64_t(index));
    Descriptor knob = {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, false, {}};
    add(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, int32_t(kKnob));
    add(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, kKnobValue);
    Descriptor config = {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, true, {}};
    addDescriptor(config, CUDNN_ATTR_ENGINECFG_ENGINE, std::move(engine));
    addDescriptor(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::move(knob));
    result.push_back(std::make_shared<Descriptor>(std::move(config)));
  }
  return result;
}

/// Copies up to `room` values.
template <typename T>
static int give(const std::vector<T> &from, int64_t room, int64_t *count,
                void *values) {
  *count = int64_t(from.size());
  size_t copied = size_t(std::min<int64_t>(*count, room));
  if (copied)
    std::memcpy(values, from.data(), copied * sizeof(T));
  return CUDNN_STATUS_SUCCESS;
}

/// Sets up to `room` descriptors, which the caller made, to these.
static int give(const std::vector<std::shared_ptr<const Descriptor>> &from,
                int64_t room, int64_t *count, void *values) {
  *count = int64_t(from.size());
  auto *handles = static_cast<CudnnDescriptor *>(values);
  for (int64_t i = 0; i < std::min<int64_t>(*count, room); ++i) {
    if (handles[i]->descriptor->type != from[size_t(i)]->type)
      return CUDNN_STATUS_BAD_PARAM;
    handles[i]->descriptor = std::make_shared<Descriptor>(*from[size_t(i)]);
  }
  return CUDNN_STATUS_SUCCESS;
}

static int getAttribute(CudnnDescriptor state, int attribute, int type,
                        int64_t room, int64_t *count, void *values) {
  const Descriptor &descriptor = *state->descriptor;
  if (!descriptor.isFinalized)
    return CUDNN_STATUS_BAD_PARAM;
  auto isAsked = [&](int name, int ofType) {
    return attribute == name && type == ofType;
  };
  if (isAsked(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR))
    return give(listConfigurations(descriptor), room, count, values);
  if (isAsked(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64))
    return give(
        std::vector<int64_t>{int64_t(getWorkspaceBytes(descriptor.getDescriptor(
            CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)))},
        room, count, values);
  if (isAsked(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE)) {
    std::vector<int32_t> notes;
    for (int32_t note = 0; note < 32; ++note)
      if (getEngine(descriptor).notes >> note & 1)
        notes.push_back(note);
    return give(notes, room, count, values);
  }
  if (isAsked(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE)) {
    std::vector<int32_t> notes;
    if (getEngine(descriptor).isCompiled)
      notes.push_back(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
    return give(notes, room, count, values);
  }
  // What was set.
  auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row &row) {
        return row.descriptor == descriptor.type &&
               row.attribute == attribute && row.type == type;
      });
  if (row == std::end(kRows))
    return CUDNN_STATUS_NOT_SUPPORTED;
  auto found = descriptor.attributes.find(attribute);
  Attribute none;
  const Attribute &set =
      found == descriptor.attributes.end() ? none : found->second;
  // Knobs are not counted, as in the real library.
  if (attribute == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES && room == 0) {
    *count = 0;
    return CUDNN_STATUS_SUCCESS;
  }
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return give(set.descriptors, room, count, values);
  return getElementSize(type) == 4
             ? give(set.get<int32_t>(), room, count, values)
             : give(set.get<int64_t>(), room, count, values);
}

static int execute(CudnnHandle handle, CudnnDescriptor planState,
                   CudnnDescriptor packState) {
  const Descriptor &plan = *planState->descriptor,
                   &pack = *packState->descriptor;
  if (!plan.isFinalized || !pack.isFinalized)
    return CUDNN_STATUS_BAD_PARAM;
  const Descriptor &config =
      plan.getDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Descriptor &engine = config.getDescriptor(CUDNN_ATTR_ENGINECFG_ENGINE);
  if (!getEngine(engine).computes())
    return CUDNN_STATUS_NOT_SUPPORTED;
  Convolution convolution;
  if (!Convolution::read(engine.getDescriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)
                             .getDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS),
                         convolution))
    return CUDNN_STATUS_BAD_PARAM;

  auto ids = pack.getAll<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto pointers = pack.getAll<float *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto find = [&](const Tensor &tensor) -> float * {
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == tensor.id && reinterpret_cast<uint64_t>(pointers[i]) %
                                         uint64_t(tensor.alignment) ==
                                     0)
        return pointers[i];
    return nullptr;
  };
  float *x = find(convolution.input), *w = find(convolution.weights),
        *y = find(convolution.output);
  auto *workspace = pack.get<float *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  size_t workspaceBytes = getWorkspaceBytes(config);
  if (!x || !w || !y ||
      (workspaceBytes && reinterpret_cast<uint64_t>(workspace) % 256))
    return CUDNN_STATUS_BAD_PARAM;
  bool rounds = getEngine(engine).rounds();
  // Which of them is first depends on the workspace; the fallback is none.
  bool isOffered = std::count(std::begin(kByHeuristics),
                              std::end(kByHeuristics), getEngine(engine).index);
  emulated::enqueue(handle->stream, [=] {
    if (isOffered)
      emulated::beSlow();
    if (workspaceBytes)
      std::fill_n(atAddress(workspace), workspaceBytes / sizeof(float),
                  std::numeric_limits<float>::quiet_NaN());
    AsFloats tensors[] = {{convolution.output, atAddress(y)},
                          {convolution.input, atAddress(x)},
                          {convolution.weights, atAddress(w)}};
    AsFloats &result = tensors[convolution.kind];
    convolution.run(tensors[1].get(), tensors[2].get(), tensors[0].get(),
                    result.get(), rounds);
    result.store();
  });
  return CUDNN_STATUS_SUCCESS;
}

constinit const Cudnn emulated::cudnn = {
    getCudnnVersion,  getErrorString,    create,       destroy,      setStream,
    createDescriptor, destroyDescriptor, setAttribute, getAttribute, finalize,
    execute};
