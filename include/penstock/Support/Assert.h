//===- Assert.h - Checks of our own invariants ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The packaged LLVM demands NDEBUG, which switches assert() off. This one is
// switched by PENSTOCK_ASSERTIONS. It is for defects of ours: user input never
// reaches it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_ASSERT_H
#define PENSTOCK_SUPPORT_ASSERT_H

#include <cstdio>
#include <cstdlib>

#ifdef PENSTOCK_ASSERTIONS
#define PENSTOCK_ASSERT(condition, message)                                    \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, message,     \
                   #condition);                                                \
      std::abort();                                                            \
    }                                                                          \
  } while (false)
#else
#define PENSTOCK_ASSERT(condition, message)                                    \
  do {                                                                         \
    (void)sizeof(condition);                                                   \
  } while (false)
#endif

#endif // PENSTOCK_SUPPORT_ASSERT_H
