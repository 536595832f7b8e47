//===- ChecksumUpdate.h - XXH3 by the vectors of a CPU ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header of libxxhash takes the instruction set that a file is compiled
// for, so that each has a file. They include nothing else: an inline function
// of the standard library that is compiled there could be the one that the
// whole program calls, on a CPU without these instructions.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_CHECKSUMUPDATE_H
#define PENSTOCK_RUNTIME_IO_CHECKSUMUPDATE_H

#include <stddef.h>

namespace penstock::runtime {

/// Add `size` bytes to an XXH3_state_t.
void updateXxh3Avx2(void *state, const void *data, size_t size);
void updateXxh3Avx512(void *state, const void *data, size_t size);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_CHECKSUMUPDATE_H
