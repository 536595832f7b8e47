//===- TemporaryFile.cpp - What becomes another file once it is whole -----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// O_TMPFILE and a link from /proc: linking by descriptor alone takes a
// privilege. A link replaces nothing, so the name beside the target comes
// first, and is there for the time of two calls.
//===----------------------------------------------------------------------===//

#include "runtime/io/TemporaryFile.h"
#include "runtime/io/File.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace penstock::runtime;

TemporaryFile::TemporaryFile(TemporaryFile &&other)
    : descriptor(std::exchange(other.descriptor, -1)),
      name(std::move(other.name)),
      isNamed(std::exchange(other.isNamed, false)) {}

TemporaryFile::~TemporaryFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (isNamed)
    unlink(name.c_str());
}

static std::string linkOf(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

bool TemporaryFile::create(const std::string &target, int access) {
  name = target + ".tmp" + std::to_string(getpid());
  access |= O_CLOEXEC;
  descriptor = open(folderOf(target).c_str(), access | O_TMPFILE, 0666);
  // Without /proc it could get no name later.
  if (descriptor >= 0 && ::access(linkOf(descriptor).c_str(), F_OK) != 0)
    ::close(std::exchange(descriptor, -1));
  if (descriptor < 0) {
    descriptor = open(name.c_str(), access | O_CREAT | O_TRUNC, 0666);
    isNamed = descriptor >= 0;
  }
  struct stat info;
  if (descriptor >= 0 && stat(target.c_str(), &info) == 0 &&
      S_ISREG(info.st_mode))
    (void)fchmod(descriptor, info.st_mode & 0777);
  return descriptor >= 0;
}

bool TemporaryFile::close() {
  if (!isNamed) {
    // Of an earlier process with this number.
    unlink(name.c_str());
    if (linkat(AT_FDCWD, linkOf(descriptor).c_str(), AT_FDCWD, name.c_str(),
               AT_SYMLINK_FOLLOW) != 0)
      return false;
    isNamed = true;
  }
  return ::close(std::exchange(descriptor, -1)) == 0;
}

bool TemporaryFile::rename(const std::string &target) {
  if (::rename(name.c_str(), target.c_str()) != 0)
    return false;
  isNamed = false;
  return true;
}
