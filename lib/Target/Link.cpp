//===- Link.cpp - Executables ---------------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The system's C++ driver links. What it says in several lines becomes one
// error.
//===----------------------------------------------------------------------===//

#include "penstock/Target/Link.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace penstock;

LogicalResult penstock::linkExecutable(ArrayRef<std::string> objects,
                                       StringRef output,
                                       ArrayRef<std::string> libraries,
                                       Location loc) {
  // 1. The driver: it knows where the C and C++ libraries are.
  std::string driver;
#ifdef PENSTOCK_LINK_DRIVER
  const StringRef names[] = {PENSTOCK_LINK_DRIVER};
#else
  const StringRef names[] = {"c++", "g++", "clang++", "clang++-22"};
#endif
  for (StringRef name : names) {
    if (auto found = llvm::sys::findProgramByName(name)) {
      driver = *found;
      break;
    }
  }
  if (driver.empty())
    return emitError(loc)
           << "no C++ compiler driver found to link with (c++, g++ or "
              "clang++); on Debian: apt-get install g++";

  // 2. Under a temporary name, with what the driver says in a file.
  llvm::SmallString<128> temporary, log;
  if (auto error = llvm::sys::fs::createUniqueFile(
          output + "-%%%%%%.tmp", temporary,
          llvm::sys::fs::perms::all_read | llvm::sys::fs::perms::all_write |
              llvm::sys::fs::perms::all_exe))
    return emitError(loc) << "cannot write " << output << ": "
                          << error.message();
  if (auto error =
          llvm::sys::fs::createTemporaryFile("penstock-link", "log", log)) {
    (void)llvm::sys::fs::remove(temporary);
    return emitError(loc) << "cannot write " << log << ": " << error.message();
  }
  SmallVector<StringRef> arguments{driver, "-pie", "-Wl,--gc-sections", "-o",
                                   temporary};
  llvm::append_range(arguments, objects);
  llvm::append_range(arguments, libraries);
  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  auto link = [&] {
    return llvm::sys::ExecuteAndWait(driver, arguments, std::nullopt, redirects,
                                     0, 0, &message);
  };
  // lld takes half the time of GNU ld. Where a driver cannot use it, the
  // driver's own linker has the last word.
  int status = -1;
  if (llvm::sys::findProgramByName("ld.lld")) {
    arguments.push_back("-fuse-ld=lld");
    status = link();
    arguments.pop_back();
  }
  if (status != 0)
    status = link();

  // 3. The result, or what went wrong.
  LogicalResult result = success();
  if (status != 0) {
    // What the linker says in several lines becomes one.
    if (auto text = llvm::MemoryBuffer::getFile(log))
      message = (*text)->getBuffer().rtrim().str();
    llvm::replace(message, '\n', ' ');
    result = emitError(loc) << "linking " << output << " with " << driver
                            << " failed: " << message;
  } else if (auto error = llvm::sys::fs::rename(temporary, output)) {
    result = emitError(loc)
             << "cannot write " << output << ": " << error.message();
  }
  if (failed(result))
    (void)llvm::sys::fs::remove(temporary);
  (void)llvm::sys::fs::remove(log);
  return result;
}
