//===- CopyPastCaches.h - Copies of more than caches hold -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store through the caches reads the line that it overwrites from memory, a
// third of what a large copy moves. memcpy() takes other stores only for a
// block of about the size of the last cache, which a weight seldom is.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_COPYPASTCACHES_H
#define PENSTOCK_RUNTIME_SUPPORT_COPYPASTCACHES_H

#include <cstdint>

namespace penstock::runtime {

/// Copies bytes that nobody needs soon to other memory, by stores that leave
/// caches as they are.
void copyPastCaches(void *to, const void *from, uint64_t bytes);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_SUPPORT_COPYPASTCACHES_H
