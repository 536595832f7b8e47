//===- Products.h - The matrix products of a GPU ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prepared once, called by number: cuBLASLt chooses algorithms when a program
// opens, and epilogues are tried then. cuBLASLt is loaded only where a program
// has products.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_PRODUCTS_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_PRODUCTS_H

#include "penstock/cuda_product.h"
#include "runtime/device/cuda/CublasLt.h"
#include "runtime/transport/DeviceMemory.h"

#include <memory>
#include <vector>

namespace penstock::runtime::cuda {

class EpilogueTrial;
class Tuning;

/// The products of one device. Prepared, run and destroyed on its thread, whose
/// current context is the device's.
class Products {
public:
  Products();
  ~Products();

  /// Chooses the algorithms of the device's products within their scratch in
  /// the arena, by measurement if there is a tuning. Without a trial, epilogues
  /// are left to kernels.
  Error prepare(const penstock_program &program, uint32_t device, Address arena,
                Tuning *tuning = nullptr, const EpilogueTrial *trial = nullptr);
  /// Puts a product on a stream.
  Error run(uint32_t id, Address a, Address b, Address c, Stream stream) const;
  /// Likewise with its epilogue, unless that is left `pending`. Calls of equal
  /// addresses do the same.
  Error run(uint32_t id, Address a, Address b, Address c, Address bias,
            Stream stream, bool &pending) const;
  /// Products with an epilogue, and those of them that apply it.
  uint64_t countEpilogues() const { return epilogues; }
  uint64_t countAppliedEpilogues() const { return applied; }
  /// Destroys every product.
  void clear();

private:
  struct Prepared;

  Error prepare(const penstock_gemm_descriptor &gemm, Address scratch,
                Tuning *tuning, std::unique_ptr<Prepared> &result);
  void tryEpilogue(const penstock_gemm_descriptor &gemm,
                   const EpilogueTrial &trial, Prepared &product);
  Error run(uint32_t id, MatmulDescriptor matmul, Address a, Address b,
            Address c, Stream stream) const;

  const CublasLt *library = nullptr;
  CublasLtHandle handle = nullptr;
  std::vector<std::unique_ptr<Prepared>> products; // none for other devices
  uint64_t epilogues = 0, applied = 0;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_PRODUCTS_H
