//===- ConvolutionTable.cpp - The convolutions of a program ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal convolutions of one device that have their scratch in one place are one
// descriptor.
//===----------------------------------------------------------------------===//

#include "ConvolutionTable.h"

using namespace mlir;
using namespace penstock;

/// All that tells two apart.
static ArrayAttr getKey(kernel::ConvOp conv, int64_t device,
                        const ScratchPlace &scratch) {
  Builder builder(conv.getContext());
  SmallVector<Attribute> key{conv.getKindAttr(),
                             conv.getStridesAttr(),
                             conv.getDilationsAttr(),
                             conv.getPadsAttr(),
                             conv.getGroupsAttr(),
                             conv.getConfigAttr(),
                             builder.getI64IntegerAttr(device),
                             scratch.getKey(conv.getContext())};
  for (Type type : conv->getOperandTypes())
    key.push_back(TypeAttr::get(type));
  return builder.getArrayAttr(key);
}

void ConvolutionTable::add(kernel::ConvOp conv,
                           const CallDescriptor &descriptor,
                           std::optional<int64_t> device) {
  if (auto number = numbers.find(conv); number != numbers.end()) {
    Entry &entry = (entries.begin() + number->second)->second;
    if (device && entry.device != *device)
      entry.shared = true;
    return;
  }
  int64_t where = device.value_or(static_cast<int32_t>(PENSTOCK_NO_DEVICE));
  ScratchPlace scratch = places.get(conv);
  auto *it = entries
                 .insert({getKey(conv, where, scratch),
                          Entry{descriptor, scratch, where}})
                 .first;
  numbers[conv] = it - entries.begin();
}

void ConvolutionTable::add(kernel::PackingAttrInterface order,
                           const CallDescriptor &descriptor) {
  Entry entry{descriptor, ScratchPlace(), 0, /*shared=*/true};
  entries.insert({keyOf(order), entry});
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
    const auto &conv =
        std::get<penstock_conv_descriptor>(entry.descriptor.call);
    int64_t where = getDevice(entry, device);
    table.push_back(abi::conv_descriptor{
        .kind = conv.kind,
        .element = conv.element,
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
        .config = constants.shape(entry.descriptor.config),
        .scratch = entry.scratch.getFields(constants, device.has_value())}
                        .get());
  }
  return table;
}
