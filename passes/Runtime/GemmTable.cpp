//===- GemmTable.cpp - The library products of a program ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One descriptor for all products that are equal on a device and have their
// scratch in one place.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/GemmTable.h"

using namespace mlir;
using namespace penstock;

ArrayAttr GemmTable::getKey(kernel::GemmOp gemm, int64_t device,
                            const ScratchPlace &scratch) {
  auto element = cast<MemRefType>(gemm.getA().getType()).getElementType();
  Builder builder(gemm.getContext());
  return builder.getArrayAttr(
      {TypeAttr::get(element), gemm.getSizesAttr(), gemm.getStridesAAttr(),
       gemm.getStridesBAttr(), gemm.getStridesCAttr(),
       builder.getBoolAttr(gemm.getAccumulate()), gemm.getConfigAttr(),
       builder.getI64IntegerAttr(device), scratch.getKey(gemm.getContext())});
}

void GemmTable::add(kernel::GemmOp gemm, const CallDescriptor &descriptor,
                    std::optional<int64_t> device) {
  if (auto number = numbers.find(gemm); number != numbers.end()) {
    Product &product = (products.begin() + number->second)->second;
    if (device && product.device != *device)
      product.shared = true;
    return;
  }
  int64_t where = device.value_or(static_cast<int32_t>(PENSTOCK_NO_DEVICE));
  ScratchPlace scratch = places.get(gemm);
  auto *it = products
                 .insert({getKey(gemm, where, scratch),
                          Product{descriptor, scratch, where}})
                 .first;
  numbers[gemm] = it - products.begin();
}

void GemmTable::add(kernel::PackingAttrInterface order,
                    const CallDescriptor &descriptor) {
  products.insert({keyOf(order), Product{descriptor, ScratchPlace(), 0,
                                         /*shared=*/true}});
}

std::vector<Constant> GemmTable::getTable(ConstantBuilder &constants,
                                          std::optional<int64_t> device) const {
  std::vector<Constant> table;
  for (auto &[key, product] : products) {
    const auto &gemm =
        std::get<penstock_gemm_descriptor>(product.descriptor.call);
    constexpr auto kNone = static_cast<int32_t>(PENSTOCK_NO_DEVICE);
    bool isReplayed = product.device != kNone && product.scratch.isReplayed();
    int64_t where = device ? (isReplayed ? *device : kNone)
                    : product.shared
                        ? static_cast<int32_t>(PENSTOCK_EVERY_DEVICE)
                        : product.device;
    table.push_back(abi::gemm_descriptor{
        .element = gemm.element,
        .batch_rank = gemm.batch_rank,
        .batch = gemm.batch,
        .m = gemm.m,
        .n = gemm.n,
        .k = gemm.k,
        .stride_a = gemm.stride_a,
        .stride_b = gemm.stride_b,
        .stride_c = gemm.stride_c,
        .accumulate = gemm.accumulate,
        .device = where,
        .config = constants.shape(product.descriptor.config),
        .scratch = product.scratch.getFields(constants, device.has_value())}
                        .get());
  }
  return table;
}
