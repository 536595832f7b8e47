//===- ShrunkFiles.h - Mapped files that become shorter ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A page behind the end of a mapped file cannot be read: the system sends
// SIGBUS. That ends the process with a line that names the file.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_SHRUNKFILES_H
#define PENSTOCK_RUNTIME_IO_SHRUNKFILES_H

#include <cstdint>
#include <string>

namespace penstock::runtime {

/// Watches the bytes of a mapped file until forgetMapping(). Any thread may
/// call it. A SIGBUS elsewhere goes to whoever handled it before.
void watchMapping(const void *begin, uint64_t bytes, const std::string &path);

/// Ends the watch of the mapping that begins there.
void forgetMapping(const void *begin);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_SHRUNKFILES_H
