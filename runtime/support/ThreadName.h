//===- ThreadName.h - The name of a thread ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For `top -H`, debuggers and whoever asks what a thread takes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_THREADNAME_H
#define PENSTOCK_RUNTIME_SUPPORT_THREADNAME_H

#include <pthread.h>
#include <string>

namespace penstock::runtime {

/// Names the calling thread, and those that it starts, by at most 15
/// characters.
inline void nameThread(const std::string &name) {
  pthread_setname_np(pthread_self(), name.c_str());
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_SUPPORT_THREADNAME_H
