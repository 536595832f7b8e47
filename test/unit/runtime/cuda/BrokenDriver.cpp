//===- BrokenDriver.cpp - A driver that lacks nearly everything -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the message that names the first function that is missing.
//===----------------------------------------------------------------------===//

extern "C" int cuInit(unsigned) { return 0; }
