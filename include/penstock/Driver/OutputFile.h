//===- OutputFile.h - Files that appear whole or not at all -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Output goes to a temporary file in the same folder, which takes the place of
// the real one when everything was written.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_OUTPUTFILE_H
#define PENSTOCK_DRIVER_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>

namespace penstock {

class OutputFile {
public:
  /// "-" is stdout.
  explicit OutputFile(llvm::StringRef path);
  /// Removes the temporary file, if it was not committed.
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Returns true if a file written at `path` would take the place of `other`.
  /// Devices and pipes stay what they are.
  static bool wouldReplace(llvm::StringRef path, llvm::StringRef other);

  /// Returns true if the file can be written and all writes so far succeeded.
  /// Prints one line otherwise.
  bool check(llvm::raw_ostream &errors) const;
  /// Where to write. Errors are kept for `commit`.
  llvm::raw_pwrite_stream &stream() { return *output; }
  llvm::StringRef temporaryPath() const { return temporary; }
  /// Makes what was written visible to other programs under temporaryPath.
  void flush() { output->flush(); }
  /// Gives the file its name. On failure prints one line and returns false.
  bool commit(llvm::raw_ostream &errors);

private:
  std::string path, temporary;
  bool isSpecial = false; ///< The path is a device or a pipe.
  std::unique_ptr<llvm::raw_fd_ostream> owned;
  llvm::raw_fd_ostream *output = nullptr;
  std::error_code openError;
};

} // namespace penstock

#endif // PENSTOCK_DRIVER_OUTPUTFILE_H
