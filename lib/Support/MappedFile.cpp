//===- MappedFile.cpp - Memory of files that are mapped -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM asks by posix_madvise, which glibc takes and ignores.
//===----------------------------------------------------------------------===//

#include "penstock/Support/MappedFile.h"

#include <sys/mman.h>

void penstock::giveBackPages(const llvm::MemoryBuffer &buffer) {
  // Of memory that is no mapping of a file, the contents would be lost.
  if (buffer.getBufferKind() != llvm::MemoryBuffer::MemoryBuffer_MMap)
    return;
  // A whole file begins with a page.
  void *begin = const_cast<char *>(buffer.getBufferStart());
  if (reinterpret_cast<uintptr_t>(begin) % 4096 == 0)
    madvise(begin, buffer.getBufferSize(), MADV_DONTNEED);
}
