//===- ConvolutionTable.cpp - The convolutions of a program ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal convolutions of one device are one descriptor. Those of two devices
// stay apart, as a third one has not planned the scratch that they need.
//===----------------------------------------------------------------------===//

#include "ConvolutionTable.h"

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Codegen/ConvolutionLibrary.h"

using namespace mlir;
using namespace penstock;

/// All that tells two apart.
static ArrayAttr getKey(Operation *op, int64_t device) {
  Builder builder(op->getContext());
  SmallVector<Attribute> key{
      builder.getStringAttr(op->getName().getStringRef()),
      op->getAttrDictionary(), op->getPropertiesAsAttribute(),
      builder.getI64IntegerAttr(device)};
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
  int64_t threads = 1;
  for (auto arena : root.getOps<pipeline::ArenaOp>())
    if (static_cast<int64_t>(arena.getDevice()) == device.value_or(0))
      threads = arena.getThreads();
  std::string reason;
  auto planned =
      planLibraryConvolution(*nn::Convolution::match(op), threads, &reason);
  if (!planned)
    return op->emitError() << "no library can compute this convolution: "
                           << reason;
  int64_t where = device.value_or(0);
  auto it =
      entries.insert({getKey(op, where), Entry{planned->descriptor, where}})
          .first;
  numbers[op] = it - entries.begin();
  return success();
}

std::vector<Constant>
ConvolutionTable::getTable(std::optional<int64_t> device) const {
  std::vector<Constant> table;
  for (auto &[key, entry] : entries) {
    const penstock_conv_descriptor &conv = entry.descriptor;
    int64_t where = device         ? *device
                    : entry.shared ? static_cast<int32_t>(PENSTOCK_EVERY_DEVICE)
                                   : entry.device;
    auto list = [](const int64_t (&values)[PENSTOCK_MAX_SPATIAL_RANK]) {
      return Constant::integers(
          SmallVector<int64_t>(std::begin(values), std::end(values)));
    };
    table.push_back(Constant::fields(
        {Constant::i32(conv.kind), Constant::i32(conv.element),
         Constant::i32(conv.layout), Constant::i32(conv.spatial_rank),
         Constant::i32(where), Constant::i64(conv.batch),
         Constant::i64(conv.groups), Constant::i64(conv.input_channels),
         Constant::i64(conv.output_channels), list(conv.input),
         list(conv.kernel), list(conv.output), list(conv.stride),
         list(conv.dilation), list(conv.pad_before), list(conv.pad_after)}));
  }
  return table;
}
