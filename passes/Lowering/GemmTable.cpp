//===- GemmTable.cpp - The library products of a program ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One descriptor for all products that are equal on a device and have their
// scratch in one place.
//===----------------------------------------------------------------------===//

#include "passes/Lowering/GemmTable.h"

#include "penstock/abi.h"

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
       builder.getI64IntegerAttr(device), scratch.getKey(gemm.getContext())});
}

LogicalResult GemmTable::add(GemmOp gemm, int64_t device) {
  size_t rank = gemm.getSizes().size();
  auto element = cast<MemRefType>(gemm.getA().getType()).getElementType();
  if (rank < 3 || rank - 3 > PENSTOCK_MAX_BATCH_RANK || !element.isF32() ||
      gemm.getStridesA().size() + 1 != rank ||
      gemm.getStridesB().size() + 1 != rank ||
      gemm.getStridesC().size() + 1 != rank)
    return gemm.emitError() << "the library multiplies f32 matrices with up to "
                            << PENSTOCK_MAX_BATCH_RANK << " batch dimensions";
  if (auto number = numbers.find(gemm); number != numbers.end()) {
    Product &product = (products.begin() + number->second)->second;
    if (product.device != device)
      product.shared = true;
    return success();
  }
  ScratchPlace scratch = places.get(gemm);
  auto *it =
      products.insert({getKey(gemm, device, scratch), Product{scratch, device}})
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

std::vector<Constant> GemmTable::getTable(ConstantBuilder &constants,
                                          std::optional<int64_t> device) const {
  std::vector<Constant> table;
  for (auto &[key, product] : products) {
    auto field = [&](unsigned i) {
      return cast<DenseI64ArrayAttr>(key[i]).asArrayRef();
    };
    ArrayRef<int64_t> sizes = field(1);
    size_t batchRank = sizes.size() - 3;
    SmallVector<int64_t> batch(sizes.take_front(batchRank));
    batch.resize(PENSTOCK_MAX_BATCH_RANK, 0);
    auto strides = [&](ArrayRef<int64_t> values) {
      SmallVector<int64_t> padded(values);
      padded.resize(PENSTOCK_MAX_BATCH_RANK + 2, 0);
      return Constant::integers(padded);
    };
    constexpr auto kNone = static_cast<int32_t>(PENSTOCK_NO_DEVICE);
    bool isReplayed = product.device != kNone && product.scratch.isReplayed();
    int64_t where = device ? (isReplayed ? *device : kNone)
                    : product.shared
                        ? static_cast<int32_t>(PENSTOCK_EVERY_DEVICE)
                        : product.device;
    table.push_back(Constant::fields(
        {Constant::i32(PENSTOCK_F32), Constant::i32(batchRank),
         Constant::integers(batch), Constant::i64(sizes[batchRank]),
         Constant::i64(sizes[batchRank + 1]),
         Constant::i64(sizes[batchRank + 2]), strides(field(2)),
         strides(field(3)), strides(field(4)),
         Constant::i32(cast<BoolAttr>(key[5]).getValue()), Constant::i32(where),
         product.scratch.getConstant(constants, device.has_value())}));
  }
  return table;
}
