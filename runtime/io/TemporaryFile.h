//===- TemporaryFile.h - What becomes another file once it is whole -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the file system can, it has no name while it is written: a process that
// is killed leaves nothing behind. Functions that fail leave their reason in
// errno.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_TEMPORARYFILE_H
#define PENSTOCK_RUNTIME_IO_TEMPORARYFILE_H

#include <string>

namespace penstock::runtime {

class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(TemporaryFile &&other);
  /// Removes it, unless it was renamed.
  ~TemporaryFile();

  /// Makes it in the folder of `target`, with the permissions of what it is to
  /// replace. `access` is O_WRONLY or O_RDWR.
  bool create(const std::string &target, int access);
  int get() const { return descriptor; }
  /// After the last write: gives it a name beside `target`.
  bool close();
  /// Puts it in the place of `target`.
  bool rename(const std::string &target);

private:
  int descriptor = -1;
  std::string name;
  bool isNamed = false;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_TEMPORARYFILE_H
