//===- File.h - Mapped input, output under a temporary name -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Input files are mapped read-only. Output files are written under a temporary
// name beside the target and renamed when complete, so that a failure leaves
// nothing half-written.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_FILE_H
#define PENSTOCK_RUNTIME_IO_FILE_H

#include "runtime/io/TemporaryFile.h"
#include "runtime/support/Error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::runtime {

/// A regular file, mapped read-only for the life of the object.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other);
  MappedFile &operator=(MappedFile &&other);
  ~MappedFile();

  /// `what` starts the error message, e.g. "--labels".
  Error open(const std::string &path, const char *what);
  /// Opens a file that has to be what its name says: no symbolic link.
  Error openUnlinked(const std::string &path, const char *what);
  /// The same for `size` bytes of it from `offset` on, a multiple of the size
  /// of a page.
  Error openRange(const std::string &path, const char *what, uint64_t offset,
                  uint64_t size);

  /// The path that it was opened by, unless it is to be forgotten.
  const std::string &getPath() const { return name; }
  void forgetPath() { name.clear(); }
  const char *data() const { return bytes; }
  uint64_t size() const { return length; }
  /// It will be read in no order. If it `stays` in memory until all of it was
  /// read, what is around the bytes that are asked for is read with them.
  void setRandom(bool stays);
  /// Returns true if it is larger than files that are read when opened.
  bool isLarge() const;
  /// Begins to read bytes of a large file, unless they are in memory. Returns
  /// true if they were.
  bool prefetch(const char *data, uint64_t size) const;
  /// The memory of this process does not count what has been read; it is read
  /// again where it is needed.
  void giveBackPages() const;

private:
  Error map(int descriptor, const std::string &path, const char *what,
            uint64_t offset, uint64_t size);

  std::string name;
  const char *bytes = nullptr;
  uint64_t length = 0;
  int large = -1;      ///< The descriptor of a large file.
  uint64_t begin = 0;  ///< The offset of `bytes` in the file.
  uint64_t around = 0; ///< The unit of reads in no order; 0: a page.
};

/// Writes to a temporary file, which commit() renames; without it, nothing is
/// left of it. A device or a pipe is written to as it is.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(OutputFile &&other);
  ~OutputFile();

  Error create(const std::string &path);
  Error append(const void *data, uint64_t size);
  Error append(std::string_view text) {
    return append(text.data(), text.size());
  }
  Error overwrite(uint64_t offset, const void *data, uint64_t size);
  Error close();
  Error commit();

private:
  Error failed(const char *action);

  int getDescriptor() const { return isSpecial ? special : file.get(); }

  std::string target;
  TemporaryFile file;
  bool isSpecial = false; ///< A device or a pipe.
  int special = -1;
};

/// The path of the running executable; as it was called where no one knows
/// better.
std::string executablePath();

/// The folder part of a path, "." when it has none.
std::string folderOf(const std::string &path);

/// Fails unless a file can be created at `path`; `flag` starts the message.
Error checkWritable(const std::string &path, const char *flag);

/// Both exist and are one file (or folder).
bool sameFile(const std::string &first, const std::string &second);

/// Returns true if a file written at `path` would take the place of `other`.
/// Devices and pipes stay what they are.
bool wouldReplace(const std::string &path, const std::string &other);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_FILE_H
