//===- Gpu.h - A GPU and the kernels of a program on it ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Its primary context, which all devices on it share, and one module per
// program.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_GPU_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_GPU_H

#include "runtime/device/cuda/Driver.h"

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace penstock::runtime::cuda {

/// Returns the GPU of the `turn`th device that needs one: those of `chosen` in
/// turn, or all `count` where none is chosen.
int placeDevice(uint32_t turn, int count, std::span<const int> chosen = {});

class Gpu {
public:
  /// Opens GPU `ordinal` for the kernels of a program, or shares it with those
  /// who opened it before.
  static Error open(const Driver &driver, const penstock_program &program,
                    int ordinal, std::shared_ptr<Gpu> &result);
  Gpu(const Driver &driver, int ordinal) : driver(driver), ordinal(ordinal) {}
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;
  ~Gpu();

  /// Makes it the GPU that calls of this thread are for.
  int enter() const { return driver.cuCtxSetCurrent(context); }

  /// Enters a GPU for a while, on a thread that may be of another one.
  class Visit {
  public:
    explicit Visit(const Gpu &gpu);
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;
    ~Visit();

  private:
    const Driver &driver;
    DriverContext before = nullptr;
  };

  /// Lets kernels of this GPU, which the calling thread is in, have the memory
  /// of another; false where the two are not connected.
  bool reaches(const Gpu &other) const;
  /// Asks the driver for its name. Returns a status.
  int getName(std::string &name) const;

  const Driver &driver;
  const int ordinal;
  DriverContext context = nullptr;
  /// Held by who takes memory, so that what is taken for a while takes it from
  /// nobody.
  std::mutex memory;
  /// Functions by kernel number of the program.
  std::vector<Function> functions;

private:
  Error load(const penstock_program &program);

  int gpu = 0;
  Module module = nullptr;
};

/// Returns which image a GPU of compute capability `arch` / 10 runs: code for
/// it, or else the text for the newest architecture before it. Null if none.
const penstock_image *chooseImage(const penstock_device_code &code,
                                  uint32_t arch);

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_GPU_H
