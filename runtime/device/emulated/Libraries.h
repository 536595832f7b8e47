//===- Libraries.h - The emulated libraries ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables of functions that compute what the documentation of the libraries
// says, in plain loops with f64 sums. They test what we ask of the libraries,
// not what these compute.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_EMULATED_LIBRARIES_H
#define PENSTOCK_RUNTIME_DEVICE_EMULATED_LIBRARIES_H

#include "runtime/device/cuda/CublasLt.h"
#include "runtime/device/cuda/Cudnn.h"

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <unistd.h>

namespace penstock::runtime::emulated {

/// Rounding of cuBLASLt's epilogues, which its documentation does not describe
/// to the bit. Tests set it while nothing runs.
enum class EpilogueKind {
  LikeKernels,
  DropsNaN,       ///< The larger of NaN and zero is zero.
  KeepsSubnormal, ///< Nothing is flushed.
  None            ///< No algorithm has an epilogue.
};
extern EpilogueKind epilogueKind;

extern const cuda::CublasLt cublasLt;
extern const cuda::Cudnn cudnn;

/// Where the environment says PENSTOCK_EMULATED_SLOW, the product that
/// heuristics offer first and the convolutions that they offer take so many
/// microseconds longer than the rest.
inline void beSlow() {
  if (const char *microseconds = std::getenv("PENSTOCK_EMULATED_SLOW"))
    usleep(unsigned(std::atoi(microseconds)));
}

/// Rounds an operand to the 10 bits of mantissa that tensor cores read, to the
/// nearest; halves away from zero. Infinities and NaN stay.
inline float roundToTf32(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000) == 0x7f800000)
    return value;
  return std::bit_cast<float>((bits + 0x1000) & ~0x1fffu);
}

} // namespace penstock::runtime::emulated

#endif // PENSTOCK_RUNTIME_DEVICE_EMULATED_LIBRARIES_H
