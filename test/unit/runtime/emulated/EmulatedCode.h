//===- EmulatedCode.h - What emulated kernels call --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For kernels that tests write by hand, as the compiler makes them: a function
// of the addresses of its parameters, of which those that are addresses of the
// device are off by ps_emulated_bias.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_EMULATED_EMULATEDCODE_H
#define PENSTOCK_TEST_UNIT_RUNTIME_EMULATED_EMULATEDCODE_H

#include <cstdint>

extern "C" {
extern const uint64_t ps_emulated_bias;
uint32_t ps_emulated_read_ptx_sreg_tid_x();
uint32_t ps_emulated_read_ptx_sreg_tid_y();
uint32_t ps_emulated_read_ptx_sreg_tid_z();
uint32_t ps_emulated_read_ptx_sreg_ctaid_x();
uint32_t ps_emulated_read_ptx_sreg_ctaid_y();
uint32_t ps_emulated_read_ptx_sreg_ctaid_z();
uint32_t ps_emulated_read_ptx_sreg_ntid_x();
uint32_t ps_emulated_read_ptx_sreg_nctaid_x();
uint32_t ps_emulated_read_ptx_sreg_laneid();
void *ps_emulated_shared();
void ps_emulated_barrier_cta_sync_aligned_all(uint32_t barrier);
void ps_emulated_bar_warp_sync(uint32_t mask);
uint32_t ps_emulated_shfl_sync_bfly_i32(uint32_t mask, uint32_t value,
                                        uint32_t offset, uint32_t clamp);
uint32_t ps_emulated_shfl_sync_down_i32(uint32_t mask, uint32_t value,
                                        uint32_t offset, uint32_t clamp);
uint32_t ps_emulated_shfl_sync_up_i32(uint32_t mask, uint32_t value,
                                      uint32_t offset, uint32_t clamp);
uint32_t ps_emulated_shfl_sync_idx_i32(uint32_t mask, uint32_t value,
                                       uint32_t lane, uint32_t clamp);
uint32_t ps_emulated_vote_ballot_sync(uint32_t mask, uint32_t predicate);
float ps_emulated_shfl_sync_bfly_f32(uint32_t mask, float value,
                                     uint32_t offset, uint32_t clamp);
}

namespace penstock::test {

/// Returns parameter `index`, a number.
template <typename T> T getNumber(void **parameters, int index) {
  return *static_cast<T *>(parameters[index]);
}

/// Returns what parameter `index`, an address of the device, leads to.
template <typename T> T *getPointer(void **parameters, int index) {
  return reinterpret_cast<T *>(getNumber<uint64_t>(parameters, index) -
                               ps_emulated_bias);
}

/// Returns the address on the device of memory of the host.
inline uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer) + ps_emulated_bias;
}

/// Returns the number of the thread in its block of one dimension.
inline uint32_t getThread() { return ps_emulated_read_ptx_sreg_tid_x(); }

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_EMULATED_EMULATEDCODE_H
