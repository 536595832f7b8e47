//===- ChecksumAvx2.cpp - XXH3 by AVX2 ------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/io/ChecksumUpdate.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void penstock::runtime::updateXxh3Avx2(void *state, const void *data,
                                       size_t size) {
  XXH3_128bits_update(static_cast<XXH3_state_t *>(state), data, size);
}
