//===- ConvolutionTable.cpp - The convolutions of a program ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal convolutions of one device that have their scratch in one place are one
// descriptor.
//===----------------------------------------------------------------------===//

#include "ConvolutionTable.h"

#include "penstock/Target/Cpu/ConvolutionLibrary.h"

using namespace mlir;
using namespace penstock;

/// All that tells two apart.
static ArrayAttr getKey(Operation *op, int64_t device,
                        const ScratchPlace &scratch) {
  Builder builder(op->getContext());
  nn::Convolution conv = *nn::Convolution::match(op);
  SmallVector<Attribute> key{
      builder.getStringAttr(op->getName().getStringRef()),
      builder.getDenseI64ArrayAttr(conv.strides),
      builder.getDenseI64ArrayAttr(conv.dilations),
      builder.getDenseI64ArrayAttr(conv.pads),
      builder.getI64IntegerAttr(conv.groups),
      nn::ConvolutionLayoutAttr::get(op->getContext(), *conv.layout),
      builder.getI64IntegerAttr(device),
      scratch.getKey(op->getContext())};
  for (Type type : op->getOperandTypes())
    key.push_back(TypeAttr::get(type));
  return builder.getArrayAttr(key);
}

LogicalResult ConvolutionTable::add(Operation *op,
                                    std::optional<int64_t> device) {
  if (auto number = numbers.find(op); number != numbers.end()) {
    Entry &entry = (entries.begin() + number->second)->second;
    if (device && entry.device != *device)
      entry.shared = true;
    return success();
  }
  std::optional<penstock_conv_descriptor> descriptor =
      describeConvolution(*nn::Convolution::match(op));
  if (!descriptor)
    return op->emitError("has no layout, or is not dense in f32: run "
                         "pipeline-share-scratch first");
  int64_t where = device.value_or(static_cast<int32_t>(PENSTOCK_NO_DEVICE));
  ScratchPlace scratch = places.get(cast<nn::LibraryCallOpInterface>(op));
  auto *it = entries
                 .insert({getKey(op, where, scratch),
                          Entry{*descriptor, scratch, where}})
                 .first;
  numbers[op] = it - entries.begin();
  return success();
}

LogicalResult ConvolutionTable::add(Operation *op,
                                    nn::PrepackingAttr prepacking) {
  std::optional<penstock_conv_descriptor> descriptor =
      describePrepacking(prepacking);
  if (!descriptor)
    return op->emitError("is for a convolution that the runtime cannot take");
  Entry entry{*descriptor, ScratchPlace(), 0, /*shared=*/true};
  entries.insert({keyOf(prepacking), entry});
  return success();
}

/// Whose descriptor it is; in the replay, all are of its one device.
int64_t ConvolutionTable::getDevice(const Entry &entry,
                                    std::optional<int64_t> replay) {
  constexpr auto kNone = static_cast<int32_t>(PENSTOCK_NO_DEVICE);
  if (replay)
    return entry.device == kNone || !entry.scratch.isReplayed() ? kNone
                                                                : *replay;
  return entry.shared ? static_cast<int32_t>(PENSTOCK_EVERY_DEVICE)
                      : entry.device;
}

std::vector<Constant>
ConvolutionTable::getTable(ConstantBuilder &constants,
                           std::optional<int64_t> device) const {
  std::vector<Constant> table;
  for (auto &[key, entry] : entries) {
    const penstock_conv_descriptor &conv = entry.descriptor;
    int64_t where = getDevice(entry, device);
    table.push_back(abi::conv_descriptor{
        .kind = conv.kind,
        .element = conv.element,
        .layout = conv.layout,
        .weights = conv.weights,
        .spatial_rank = conv.spatial_rank,
        .device = where,
        .batch = conv.batch,
        .groups = conv.groups,
        .input_channels = conv.input_channels,
        .output_channels = conv.output_channels,
        .input = conv.input,
        .kernel = conv.kernel,
        .output = conv.output,
        .stride = conv.stride,
        .dilation = conv.dilation,
        .pad_before = conv.pad_before,
        .pad_after = conv.pad_after,
        .scratch = entry.scratch.getFields(constants, device.has_value())}
                        .get());
  }
  return table;
}
