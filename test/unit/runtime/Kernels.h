//===- Kernels.h - Functions that devices call or launch --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mathematics of hand-written programs. On a CPU device, a function is
// called; on a CUDA device, it is a kernel of one thread for the emulated GPU.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_KERNELS_H
#define PENSTOCK_TEST_UNIT_RUNTIME_KERNELS_H

#include "penstock/abi.h"

#include "runtime/device/Device.h"

#include <array>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::test {

/// The kinds of devices of a program: of its two, and of the one that does all.
struct Placement {
  const char *first = "cpu", *second = "cpu", *alone = "cpu";
};
inline constinit Placement placement;

/// The bias of addresses of the emulated GPU, in programs that have one.
inline constinit uint64_t kernelBias = 0;

/// A function of pointers and numbers as a kernel.
template <auto Function> struct Kernel;
template <typename... Parameters, void (*Function)(Parameters...)>
struct Kernel<Function> {
  static constexpr uint32_t kCount = sizeof...(Parameters);

  static void packed(void **cells) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      Function(read<Parameters>(cells[I])...);
    }(std::make_index_sequence<kCount>());
  }

private:
  template <typename T> static T read(void *cell) {
    if constexpr (std::is_pointer_v<T>)
      return reinterpret_cast<T>(*static_cast<uint64_t *>(cell) - kernelBias);
    else
      return *static_cast<T *>(cell);
  }
};

/// The kernels of a program.
template <auto... Functions> class Kernels {
  static constexpr size_t kCount = sizeof...(Functions);
  static constexpr const char *kNames[] = {"k0", "k1", "k2", "k3", "k4",
                                           "k5", "k6", "k7", "k8", "k9"};
  static constexpr void (*kPacked[])(void **) = {Kernel<Functions>::packed...};

  template <size_t... I>
  static constexpr auto makeCode(std::index_sequence<I...>) {
    return std::array<penstock_emulated_kernel, kCount>{
        {{kNames[I], kPacked[I], 0, 0}...}};
  }
  template <size_t... I>
  static constexpr auto makeKernels(std::index_sequence<I...>) {
    return std::array<penstock_kernel, kCount>{
        {{kNames[I], {1, 1, 1}, {1, 1, 1}, 0, Kernel<Functions>::kCount}...}};
  }

  static constexpr auto kCode = makeCode(std::make_index_sequence<kCount>());
  static constexpr auto kKernels =
      makeKernels(std::make_index_sequence<kCount>());
  static constexpr penstock_image kImage = {
      PENSTOCK_IMAGE_EMULATED, 0, 0, 0, kCode.data(), kCode.data() + kCount};
  static constexpr penstock_device_code kDeviceCode = {1, &kImage};

public:
  /// Puts them into a program.
  static void addTo(penstock_program &program) {
    program.kernel_count = kCount;
    program.kernels = kKernels.data();
    program.code = &kDeviceCode;
  }

  /// Calls or launches one of the functions.
  template <auto Function, typename... Arguments>
  static void run(penstock_device *device, Arguments... arguments) {
    std::string_view kind = device->context.program.devices[device->index].kind;
    if (kind != "cuda")
      return Function(arguments...);
    uint32_t kernel = 0;
    while (kPacked[kernel] != &Kernel<Function>::packed)
      ++kernel;
    uint64_t words[] = {toWord(arguments)...};
    penstock_launch(device, kernel, words);
  }

private:
  template <typename T> static uint64_t toWord(T value) {
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(value));
    return word;
  }
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_KERNELS_H
