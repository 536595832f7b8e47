//===- GemmTable.cpp - The library products of a program ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One descriptor for all products that are equal on a device and have their
// scratch in one place.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/GemmTable.h"

#include "penstock/Target/Cpu/LibraryScratch.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

ArrayAttr GemmTable::getKey(GemmOp gemm, int64_t device,
                            const ScratchPlace &scratch) {
  auto element = cast<MemRefType>(gemm.getA().getType()).getElementType();
  Builder builder(gemm.getContext());
  return builder.getArrayAttr(
      {TypeAttr::get(element), gemm.getSizesAttr(), gemm.getStridesAAttr(),
       gemm.getStridesBAttr(), gemm.getStridesCAttr(),
       builder.getBoolAttr(gemm.getAccumulate()),
       builder.getI64IntegerAttr(gemm.getPanels().value_or(0)),
       builder.getI64IntegerAttr(device), scratch.getKey(gemm.getContext())});
}

LogicalResult GemmTable::add(GemmOp gemm, int64_t device) {
  std::optional<penstock_gemm_descriptor> descriptor = describeProduct(gemm);
  if (!descriptor)
    return gemm.emitError() << "the library multiplies f32 matrices with up to "
                            << PENSTOCK_MAX_BATCH_RANK << " batch dimensions";
  if (auto number = numbers.find(gemm); number != numbers.end()) {
    Product &product = (products.begin() + number->second)->second;
    if (product.device != device)
      product.shared = true;
    return success();
  }
  ScratchPlace scratch = places.get(gemm);
  auto *it = products
                 .insert({getKey(gemm, device, scratch),
                          Product{*descriptor, scratch, device}})
                 .first;
  numbers[gemm] = it - products.begin();
  return success();
}

LogicalResult GemmTable::addUnused(GemmOp gemm) {
  return numbers.contains(gemm)
             ? success()
             : add(gemm, static_cast<int32_t>(PENSTOCK_NO_DEVICE));
}

uint32_t GemmTable::getIndex(GemmOp gemm) const { return numbers.at(gemm); }

static ArrayAttr keyOf(PanelsAttr panels) {
  return ArrayAttr::get(panels.getContext(), {panels});
}

void GemmTable::add(PanelsAttr panels) {
  products.insert({keyOf(panels), Product{describePacking(panels),
                                          ScratchPlace(), 0, /*shared=*/true}});
}

uint32_t GemmTable::getIndex(PanelsAttr panels) const {
  return products.find(keyOf(panels)) - products.begin();
}

std::vector<Constant> GemmTable::getTable(ConstantBuilder &constants,
                                          std::optional<int64_t> device) const {
  std::vector<Constant> table;
  for (auto &[key, product] : products) {
    const penstock_gemm_descriptor &gemm = product.descriptor;
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
        .weights = gemm.weights,
        .panel = gemm.panel,
        .scratch = product.scratch.getFields(constants, device.has_value())}
                        .get());
  }
  return table;
}
