//===- OutputFile.cpp - Files that appear whole or not at all -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See OutputFile.h.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/OutputFile.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;
using namespace penstock;

OutputFile::OutputFile(StringRef path) : path(path) {
  if (path == "-") {
    output = &outs();
    return;
  }
  int descriptor = -1;
  SmallString<256> name;
  openError = sys::fs::createUniqueFile(path + ".tmp-%%%%%%%%", descriptor,
                                        name, sys::fs::OF_None, 0666);
  if (openError) {
    // Somewhere to write to, until commit says what went wrong.
    std::error_code ignored;
    owned = std::make_unique<raw_fd_ostream>("/dev/null", ignored);
  } else {
    temporary = name.str().str();
    owned = std::make_unique<raw_fd_ostream>(descriptor, /*shouldClose=*/true);
  }
  output = owned.get();
}

OutputFile::~OutputFile() {
  if (owned)
    owned->clear_error();
  owned.reset();
  if (!temporary.empty())
    sys::fs::remove(temporary);
}

static bool report(raw_ostream &errors, StringRef path, std::error_code error) {
  if (error)
    errors << "penstockc: cannot write " << path << ": " << error.message()
           << "\n";
  return !error;
}

bool OutputFile::check(raw_ostream &errors) const {
  return report(errors, path, openError);
}

bool OutputFile::commit(raw_ostream &errors) {
  output->flush();
  std::error_code error = openError ? openError : output->error();
  if (!error && owned) {
    owned->close();
    error = sys::fs::rename(temporary, path);
    if (!error)
      temporary.clear();
  }
  return report(errors, path, error);
}
