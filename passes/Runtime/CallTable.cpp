//===- CallTable.cpp - Library calls of one kind --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops are gone when the descriptors are written, so that what tells calls
// apart is kept as attributes.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/CallTable.h"

using namespace mlir;
using namespace penstock;

/// Returns all that tells calls apart on one device with one scratch.
static SmallVector<Attribute> getKey(kernel::GemmOp gemm) {
  Builder builder(gemm.getContext());
  return {
      TypeAttr::get(cast<MemRefType>(gemm.getA().getType()).getElementType()),
      gemm.getSizesAttr(),
      gemm.getStridesAAttr(),
      gemm.getStridesBAttr(),
      gemm.getStridesCAttr(),
      builder.getBoolAttr(gemm.getAccumulate()),
      builder.getBoolAttr(static_cast<bool>(gemm.getBias())),
      builder.getBoolAttr(gemm.getRelu()),
      TypeAttr::get(getElementTypeOrSelf(gemm.getC().getType())),
      gemm.getConfigAttr()};
}

static SmallVector<Attribute> getKey(kernel::ConvOp conv) {
  SmallVector<Attribute> key{conv.getKindAttr(),      conv.getStridesAttr(),
                             conv.getDilationsAttr(), conv.getPadsAttr(),
                             conv.getGroupsAttr(),    conv.getConfigAttr()};
  for (Type type : conv->getOperandTypes())
    key.push_back(TypeAttr::get(type));
  return key;
}

void CallTable::Runners::add(int64_t device) {
  constexpr auto kNone = static_cast<int32_t>(PENSTOCK_NO_DEVICE);
  bool isOnly = field == kNone || field == device;
  field = isOnly ? device : static_cast<int32_t>(PENSTOCK_EVERY_DEVICE);
}

void CallTable::add(kernel::LibraryCallOpInterface call,
                    const CallDescriptor &descriptor, Of of,
                    std::optional<int64_t> device) {
  if (auto number = numbers.find(call); number != numbers.end()) {
    if (device)
      (calls.begin() + number->second)->second.get(of).add(*device);
    return;
  }
  Runners program;
  if (device)
    program.add(*device);
  ScratchPlace scratch = places.get(call);
  auto gemm = dyn_cast<kernel::GemmOp>(call.getOperation());
  SmallVector<Attribute> key =
      gemm ? getKey(gemm) : getKey(cast<kernel::ConvOp>(call.getOperation()));
  Builder builder(call.getContext());
  key.append({builder.getI64IntegerAttr(program.field),
              scratch.getKey(call.getContext())});
  auto *it = calls
                 .insert({builder.getArrayAttr(key),
                          Call{descriptor, scratch, program, Runners()}})
                 .first;
  numbers[call] = it - calls.begin();
}

void CallTable::add(kernel::PackingAttrInterface order,
                    const CallDescriptor &descriptor, Of of,
                    std::optional<int64_t> device) {
  auto *it = calls
                 .insert({getPackingKey(order),
                          Call{descriptor, ScratchPlace(), {}, {}}})
                 .first;
  if (device)
    it->second.get(of).add(*device);
}

std::vector<Constant> CallTable::getTable(ConstantBuilder &constants,
                                          Of of) const {
  bool ofReplay = of == Of::Replay;
  std::vector<Constant> table;
  for (auto &[key, entry] : calls) {
    const Call &call = entry;
    table.push_back(std::visit(
        [&](const auto &shapes) {
          auto fields =
              abi::Mirror<std::decay_t<decltype(shapes)>>::type::copy(shapes);
          fields.device = (ofReplay ? call.replay : call.program).field;
          fields.config = constants.shape(call.descriptor.config);
          fields.scratch = call.scratch.getFields(constants, ofReplay);
          return fields.get();
        },
        call.descriptor.call));
  }
  return table;
}
