//===- OutputFile.cpp - Files that appear whole or not at all -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See OutputFile.h.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/OutputFile.h"
#include "penstock/Support/CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

using namespace llvm;
using namespace penstock;

OutputFile::OutputFile(StringRef path) : path(path) {
  if (path == "-") {
    output = &outs();
    return;
  }
  int descriptor = -1;
  SmallString<256> name;
  sys::fs::file_status status;
  bool exists = !sys::fs::status(path, status);
  isSpecial = exists && !sys::fs::is_regular_file(status);
  if (exists && sys::fs::is_directory(status))
    openError = std::make_error_code(std::errc::is_a_directory);
  else if (isSpecial) // What stands there, a device or a pipe, stays.
    openError =
        sys::fs::createTemporaryFile("penstock", "out", descriptor, name);
  else
    openError = sys::fs::createUniqueFile(path + ".tmp-%%%%%%%%", descriptor,
                                          name, sys::fs::OF_None, 0666);
  if (openError) {
    // Somewhere to write to, until commit says what went wrong.
    std::error_code ignored;
    owned = std::make_unique<raw_fd_ostream>("/dev/null", ignored);
  } else {
    temporary = name.str().str();
    sys::RemoveFileOnSignal(temporary);
    owned = std::make_unique<raw_fd_ostream>(descriptor, /*shouldClose=*/true);
  }
  output = owned.get();
}

OutputFile::~OutputFile() {
  if (owned)
    owned->clear_error();
  owned.reset();
  if (!temporary.empty()) {
    (void)sys::fs::remove(temporary);
    sys::DontRemoveFileOnSignal(temporary);
  }
}

static bool report(raw_ostream &errors, StringRef path, std::error_code error) {
  if (error)
    reportError("penstockc",
                "cannot write " +
                    (path == "-" ? "to standard output" : path.str()) + ": " +
                    error.message(),
                errors);
  return !error;
}

bool OutputFile::check(raw_ostream &errors) const {
  return report(errors, path, openError ? openError : output->error());
}

bool OutputFile::wouldReplace(StringRef path, StringRef other) {
  if (path.empty() || other.empty() || path == "-" || other == "-")
    return false;
  sys::fs::file_status status;
  if (!sys::fs::status(path, status))
    return sys::fs::is_regular_file(status) && sys::fs::equivalent(path, other);
  // Neither is there yet: the same name in the same folder.
  auto folderOf = [](StringRef name) {
    StringRef folder = sys::path::parent_path(name);
    return folder.empty() ? StringRef(".") : folder;
  };
  return sys::path::filename(path) == sys::path::filename(other) &&
         sys::fs::equivalent(folderOf(path), folderOf(other));
}

/// Writes the temporary file into what is at `path` already.
static std::error_code copyInto(StringRef temporary, StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> content =
      MemoryBuffer::getFile(temporary);
  if (!content)
    return content.getError();
  std::error_code error;
  raw_fd_ostream target(path, error, sys::fs::CD_OpenExisting,
                        sys::fs::FA_Write, sys::fs::OF_None);
  if (error)
    return error;
  target << (*content)->getBuffer();
  target.flush();
  error = target.error();
  target.clear_error();
  return error;
}

bool OutputFile::commit(raw_ostream &errors) {
  output->flush();
  std::error_code error = openError ? openError : output->error();
  output->clear_error(); // Said here, and once.
  if (!error && owned) {
    owned->close();
    if (isSpecial)
      return report(errors, path, copyInto(temporary, path));
    error = sys::fs::rename(temporary, path);
    if (!error) {
      sys::DontRemoveFileOnSignal(temporary);
      temporary.clear();
    }
  }
  return report(errors, path, error);
}
