//===- MappedFile.h - Memory of files that are mapped -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models are larger than the memory that compiling them should take.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_MAPPEDFILE_H
#define PENSTOCK_SUPPORT_MAPPEDFILE_H

#include "llvm/Support/MemoryBuffer.h"

namespace penstock {

/// How much of a mapped file to read before its pages are given back.
inline constexpr size_t mappedPart = 16 << 20;

/// Gives back the memory of what was read of a mapped file; it is read again
/// where it is needed. Does nothing to a buffer that is no mapping.
void giveBackPages(const llvm::MemoryBuffer &buffer);

} // namespace penstock

#endif // PENSTOCK_SUPPORT_MAPPEDFILE_H
