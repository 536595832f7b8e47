//===- Convolution.cpp - A convolution by oneDNN --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The convolution primitives through the C API. Tensors come with the spatial
// dimensions last; where the library is faster in layouts of its own, they are
// reordered into scratch memory before and after. Gradients of weights are
// added to what is there.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"
#include "penstock/onednn.h"

#include "runtime/device/cpu/Columns.h"
#include "runtime/device/cpu/Step.h"
#include "runtime/device/cpu/TileConvolution.h"

#include <algorithm>
#include <vector>

using namespace penstock::runtime;

namespace {

/// Makes a descriptor of the shape: row-major, or as the library likes it.
bool makeType(const std::vector<int64_t> &shape, bool any,
              dnnl_memory_desc_t &result) {
  dnnl_dims_t dims, strides;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    dims[i] = shape[i];
    strides[i] = stride;
    stride *= shape[i];
  }
  int rank = static_cast<int>(shape.size());
  if (any)
    return oneDnn().dnnl_memory_desc_init_by_tag(&result, rank, dims, dnnl_f32,
                                                 dnnl_format_tag_any) ==
           dnnl_success;
  return oneDnn().dnnl_memory_desc_init_by_strides(
             &result, rank, dims, dnnl_f32, strides) == dnnl_success;
}

/// One of the three tensors: as we hold it, and as the primitive wants it.
struct Tensor {
  dnnl_memory_desc_t outside, inside;
  dnnl_memory_t outsideMemory = nullptr, insideMemory = nullptr;
  Step reorder;
  bool isReordered = false;
  uint64_t offset = 0; // of the reordered copy in the scratch
};

enum { Input, Weights, Output };

} // namespace

struct Convolution::State {
  penstock_conv_descriptor descriptor;
  Tensor tensors[3];
  Step compute;
  std::string implementation;
  uint64_t stepScratch = 0, scratchBytes = 0;
  dnnl_stream_t stream = nullptr;
  float *rows[3] = {}; // The matrices of a product.
  TileConvolution tiles;

  ~State();
  int computed() const {
    return descriptor.kind == PENSTOCK_CONV_FORWARD      ? Output
           : descriptor.kind == PENSTOCK_CONV_INPUT_GRAD ? Input
                                                         : Weights;
  }
  std::string fail(const std::string &what) const {
    return "oneDNN cannot " + what + " the " + describe(descriptor);
  }
  bool createCompute();
  bool createProduct();
  std::string prepareProduct(char *scratch);
  bool runProduct(const float *input, const float *weights,
                  const float *output);
  std::string plan();
};

Convolution::Convolution() = default;
Convolution::Convolution(Convolution &&) = default;
Convolution &Convolution::operator=(Convolution &&) = default;
Convolution::~Convolution() = default;

Convolution::State::~State() {
  const OneDnn &dnnl = oneDnn();
  compute.destroy();
  for (Tensor &tensor : tensors) {
    tensor.reorder.destroy();
    for (dnnl_memory_t memory : {tensor.outsideMemory, tensor.insideMemory})
      if (memory)
        dnnl.dnnl_memory_destroy(memory);
  }
  if (stream)
    dnnl.dnnl_stream_destroy(stream);
}

/// The descriptor of the convolution, by way of the forward one, which the
/// others want as a hint.
bool Convolution::State::createCompute() {
  const OneDnn &dnnl = oneDnn();
  const penstock_conv_descriptor &conv = descriptor;
  uint32_t rank = conv.spatial_rank;
  std::vector<int64_t> shapes[3] = {
      {conv.batch, conv.input_channels},
      {conv.output_channels / conv.groups, conv.input_channels / conv.groups},
      {conv.batch, conv.output_channels}};
  if (conv.groups != 1)
    shapes[Weights].insert(shapes[Weights].begin(), conv.groups);
  shapes[Input].insert(shapes[Input].end(), conv.input, conv.input + rank);
  shapes[Weights].insert(shapes[Weights].end(), conv.kernel,
                         conv.kernel + rank);
  shapes[Output].insert(shapes[Output].end(), conv.output, conv.output + rank);
  dnnl_memory_desc_t wished[3];
  for (int i = 0; i < 3; ++i)
    if (!makeType(shapes[i], false, tensors[i].outside) ||
        !makeType(shapes[i], conv.layout != PENSTOCK_CONV_PLAIN, wished[i]))
      return false;
  dnnl_dims_t dilates;
  for (uint32_t i = 0; i < rank; ++i)
    dilates[i] = conv.dilation[i] - 1;

  dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
  if (conv.layout == PENSTOCK_CONV_WINOGRAD) {
    algorithm = dnnl_convolution_winograd;
    // The library takes other paddings and computes wrong gradients of the
    // input for them (2.6.3).
    for (uint32_t i = 0; i < rank; ++i)
      if (conv.pad_before[i] != 1 || conv.pad_after[i] != 1)
        return false;
  }
  // As a hint, too, the direct one: its layouts are those of the gradients.
  dnnl_alg_kind_t first =
      conv.kind == PENSTOCK_CONV_FORWARD ? algorithm : dnnl_convolution_direct;
  dnnl_convolution_desc_t operation;
  if (dnnl.dnnl_dilated_convolution_forward_desc_init(
          &operation, dnnl_forward_training, first, &wished[Input],
          &wished[Weights], nullptr, &wished[Output], conv.stride, dilates,
          conv.pad_before, conv.pad_after) != dnnl_success)
    return false;
  dnnl_primitive_attr_t attributes = makeAttributes(false);
  dnnl_primitive_desc_t forward = nullptr;
  bool done =
      dnnl.dnnl_primitive_desc_create(&forward, &operation, attributes,
                                      dnnl.engine, nullptr) == dnnl_success;
  if (done && conv.kind == PENSTOCK_CONV_FORWARD) {
    compute.type = forward;
  } else if (done) {
    dnnl_status_t status =
        conv.kind == PENSTOCK_CONV_INPUT_GRAD
            ? dnnl.dnnl_dilated_convolution_backward_data_desc_init(
                  &operation, algorithm, &wished[Input], &wished[Weights],
                  &wished[Output], conv.stride, dilates, conv.pad_before,
                  conv.pad_after)
            : dnnl.dnnl_dilated_convolution_backward_weights_desc_init(
                  &operation, algorithm, &wished[Input], &wished[Weights],
                  nullptr, &wished[Output], conv.stride, dilates,
                  conv.pad_before, conv.pad_after);
    done = status == dnnl_success && dnnl.dnnl_primitive_desc_create(
                                         &compute.type, &operation, attributes,
                                         dnnl.engine, forward) == dnnl_success;
    dnnl.dnnl_primitive_desc_destroy(forward);
  }
  dnnl.dnnl_primitive_attr_destroy(attributes);
  return done;
}

/// The gradient of the weights as a product that adds to what is there. The
/// matrices take the places of reordered tensors.
bool Convolution::State::createProduct() {
  const OneDnn &dnnl = oneDnn();
  if (descriptor.kind != PENSTOCK_CONV_WEIGHT_GRAD || descriptor.groups != 1)
    return false;
  ColumnSizes sizes = columnSizes(descriptor);
  dnnl_memory_desc_t &a = tensors[Output].inside, &b = tensors[Input].inside,
                     &c = tensors[Weights].outside;
  auto describe = [&](dnnl_memory_desc_t &result, int64_t rows, int64_t columns,
                      int64_t row, int64_t column) {
    dnnl_dims_t dims = {rows, columns}, strides = {row, column};
    return dnnl.dnnl_memory_desc_init_by_strides(&result, 2, dims, dnnl_f32,
                                                 strides) == dnnl_success;
  };
  dnnl_matmul_desc_t operation;
  if (!describe(a, sizes.channels, sizes.windows, sizes.windows, 1) ||
      !describe(b, sizes.windows, sizes.taps, 1, sizes.windows) ||
      !describe(c, sizes.channels, sizes.taps, sizes.taps, 1) ||
      dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr, &c) !=
          dnnl_success)
    return false;
  dnnl_primitive_attr_t attributes = makeAttributes(true);
  bool done =
      dnnl.dnnl_primitive_desc_create(&compute.type, &operation, attributes,
                                      dnnl.engine, nullptr) == dnnl_success;
  dnnl.dnnl_primitive_attr_destroy(attributes);
  tensors[Input].isReordered = tensors[Output].isReordered = true;
  return done;
}

std::string Convolution::State::plan() {
  const OneDnn &dnnl = oneDnn();
  if (!dnnl.error.empty())
    return dnnl.error;
  if (descriptor.element != PENSTOCK_F32 || descriptor.spatial_rank < 1 ||
      descriptor.spatial_rank > PENSTOCK_MAX_SPATIAL_RANK)
    return fail("take");
  if (descriptor.layout >= PENSTOCK_CONV_TILES_2X2) {
    implementation = "tiles";
    if (!tiles.plan(descriptor))
      return fail("compute");
    scratchBytes = tiles.getScratchBytes();
    return "";
  }
  // 1. The primitive, which must be a fast one.
  bool isProduct = descriptor.layout == PENSTOCK_CONV_COLUMNS;
  if (isProduct ? !createProduct() : !createCompute())
    return fail("compute");
  const char *name = "";
  dnnl.dnnl_primitive_desc_query(compute.type, dnnl_query_impl_info_str, 0,
                                 &name);
  implementation = name;
  if (implementation.compare(0, 3, "ref") == 0)
    return "oneDNN has only its slow reference implementation (" +
           implementation + ") for the " + describe(descriptor);

  // 2. How it wants its tensors, and reorders where that is not how they are.
  static constexpr dnnl_query_t kQueries[3][3] = {
      {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
      {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
      {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
  stepScratch = compute.getScratchBytes();
  for (int i = 0; i < 3 && !isProduct; ++i) {
    Tensor &tensor = tensors[i];
    tensor.inside = *compute.query(kQueries[descriptor.kind][i]);
    bool isResult = i == computed();
    bool accumulates = isResult && i == Weights;
    tensor.isReordered = accumulates || !dnnl.dnnl_memory_desc_equal(
                                            &tensor.outside, &tensor.inside);
    if (!tensor.isReordered)
      continue;
    dnnl_primitive_attr_t attributes = makeAttributes(accumulates);
    const dnnl_memory_desc_t *from = &tensor.outside, *to = &tensor.inside;
    if (isResult)
      std::swap(from, to);
    dnnl_status_t status = dnnl.dnnl_reorder_primitive_desc_create(
        &tensor.reorder.type, from, dnnl.engine, to, dnnl.engine, attributes);
    dnnl.dnnl_primitive_attr_destroy(attributes);
    if (status != dnnl_success)
      return fail("reorder the tensors of");
    stepScratch = std::max(stepScratch, tensor.reorder.getScratchBytes());
  }

  // 3. The scratch: that of one primitive at a time, then the copies.
  scratchBytes = aligned(stepScratch);
  for (Tensor &tensor : tensors) {
    if (!tensor.isReordered)
      continue;
    tensor.offset = scratchBytes;
    scratchBytes += aligned(dnnl.dnnl_memory_desc_get_size(&tensor.inside));
  }
  return "";
}

std::string Convolution::plan(const penstock_conv_descriptor &descriptor) {
  state = std::make_unique<State>();
  state->descriptor = descriptor;
  return state->plan();
}

std::string Convolution::getImplementation() const {
  return state->implementation;
}

uint64_t Convolution::getScratchBytes() const { return state->scratchBytes; }

std::string Convolution::prepare(char *scratch) {
  const OneDnn &dnnl = oneDnn();
  static constexpr int kArguments[3][3] = {
      {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
      {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
      {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
  if (dnnl.dnnl_stream_create(&state->stream, dnnl.engine,
                              dnnl_stream_default_flags) != dnnl_success)
    return state->fail("prepare");
  if (state->descriptor.layout == PENSTOCK_CONV_COLUMNS)
    return state->prepareProduct(scratch);
  if (state->descriptor.layout >= PENSTOCK_CONV_TILES_2X2)
    return state->tiles.prepare(scratch) ? "" : state->fail("prepare");
  for (int i = 0; i < 3; ++i) {
    Tensor &tensor = state->tensors[i];
    if (dnnl.dnnl_memory_create(&tensor.outsideMemory, &tensor.outside,
                                dnnl.engine, nullptr) != dnnl_success)
      return state->fail("prepare");
    dnnl_memory_t used = tensor.outsideMemory;
    if (tensor.isReordered) {
      if (dnnl.dnnl_memory_create(&tensor.insideMemory, &tensor.inside,
                                  dnnl.engine,
                                  scratch + tensor.offset) != dnnl_success)
        return state->fail("prepare");
      used = tensor.insideMemory;
      bool isResult = i == state->computed();
      tensor.reorder.arguments = {
          {DNNL_ARG_FROM, isResult ? used : tensor.outsideMemory},
          {DNNL_ARG_TO, isResult ? tensor.outsideMemory : used}};
      if (!tensor.reorder.prepare(scratch))
        return state->fail("prepare");
    }
    state->compute.arguments.push_back(
        {kArguments[state->descriptor.kind][i], used});
  }
  return state->compute.prepare(scratch) ? "" : state->fail("prepare");
}

std::string Convolution::State::prepareProduct(char *scratch) {
  const OneDnn &dnnl = oneDnn();
  auto create = [&](dnnl_memory_t &memory, const dnnl_memory_desc_t &type,
                    void *data, int argument) {
    if (dnnl.dnnl_memory_create(&memory, &type, dnnl.engine, data) !=
        dnnl_success)
      return false;
    compute.arguments.push_back({argument, memory});
    return true;
  };
  Tensor &a = tensors[Output], &b = tensors[Input], &c = tensors[Weights];
  bool done =
      create(a.insideMemory, a.inside, scratch + a.offset, DNNL_ARG_SRC) &&
      create(b.insideMemory, b.inside, scratch + b.offset, DNNL_ARG_WEIGHTS) &&
      create(c.outsideMemory, c.outside, nullptr, DNNL_ARG_DST);
  rows[Output] = reinterpret_cast<float *>(scratch + a.offset);
  rows[Input] = reinterpret_cast<float *>(scratch + b.offset);
  return done && compute.prepare(scratch) ? "" : fail("prepare");
}

bool Convolution::State::runProduct(const float *input, const float *weights,
                                    const float *output) {
  struct Call {
    State *state;
    const float *input, *output;
  } call = {this, input, output};
  oneDnn().runParts(
      descriptor.input_channels + descriptor.output_channels, &call,
      [](void *closure, int64_t index, int) {
        auto [state, input, output] = *static_cast<Call *>(closure);
        const penstock_conv_descriptor &conv = state->descriptor;
        int64_t taps = conv.input_channels;
        if (index < taps)
          gatherTaps(conv, input, index, state->rows[Input]);
        else
          gatherChannel(conv, output, index - taps, state->rows[Output]);
      });
  return oneDnn().dnnl_memory_set_data_handle(tensors[Weights].outsideMemory,
                                              const_cast<float *>(weights)) ==
             dnnl_success &&
         compute.run(stream);
}

bool Convolution::run(const float *input, const float *weights,
                      const float *output) {
  const OneDnn &dnnl = oneDnn();
  if (state->descriptor.layout == PENSTOCK_CONV_COLUMNS)
    return state->runProduct(input, weights, output);
  if (state->descriptor.layout >= PENSTOCK_CONV_TILES_2X2)
    return state->tiles.run(input, weights, output);
  const float *data[3] = {input, weights, output};
  for (int i = 0; i < 3; ++i)
    if (dnnl.dnnl_memory_set_data_handle(state->tensors[i].outsideMemory,
                                         const_cast<float *>(data[i])) !=
        dnnl_success)
      return false;
  int result = state->computed();
  for (int i = 0; i < 3; ++i)
    if (i != result && state->tensors[i].isReordered &&
        !state->tensors[i].reorder.run(state->stream))
      return false;
  if (!state->compute.run(state->stream))
    return false;
  return !state->tensors[result].isReordered ||
         state->tensors[result].reorder.run(state->stream);
}

void penstock::runtime::setConvolutionThreads(int threads) {
  oneDnn().setThreads(threads);
}
