//===- ReplaceFile.cpp - Small files that appear whole --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ReplaceFile.h.
//===----------------------------------------------------------------------===//

#include "penstock/Support/ReplaceFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

std::error_code penstock::replaceFile(StringRef path, StringRef text) {
  sys::fs::file_status status;
  bool exists = !sys::fs::status(path, status);
  if (exists && sys::fs::is_directory(status))
    return std::make_error_code(std::errc::is_a_directory);
  bool isSpecial = exists && !sys::fs::is_regular_file(status);
  SmallString<128> name(path);
  int descriptor = -1;
  std::error_code code =
      isSpecial ? sys::fs::openFileForWrite(path, descriptor,
                                            sys::fs::CD_OpenExisting)
                : sys::fs::createUniqueFile(path + ".tmp-%%%%%%%%", descriptor,
                                            name, sys::fs::OF_None, 0666);
  if (code)
    return code;
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << text;
  stream.close();
  code = stream.error();
  stream.clear_error();
  if (isSpecial)
    return code;
  if (!code)
    code = sys::fs::rename(name, path);
  if (code)
    sys::fs::remove(name);
  return code;
}
