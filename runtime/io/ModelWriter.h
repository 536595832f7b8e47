//===- ModelWriter.h - The model with its trained weights -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Saving copies the model byte for byte and patches the values of what was
// trained, in place: same names, same lengths, nothing is encoded again.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_MODELWRITER_H
#define PENSTOCK_RUNTIME_IO_MODELWRITER_H

#include "runtime/io/File.h"

#include <functional>
#include <utility>
#include <vector>

namespace penstock::runtime {

/// Returns true if saving writes this variable.
bool isSaved(const penstock_variable &variable);

/// The values of a variable that has a file order, in that.
std::vector<char> inFileOrder(const penstock_variable &variable,
                              const char *values);

/// Takes a value in pieces, from its first byte to its last.
using TakePiece = std::function<Error(const char *bytes, uint64_t size)>;
/// Gives the value of a variable, in the order of its file.
using ReadVariable = std::function<Error(const penstock_variable &variable,
                                         const TakePiece &take)>;

class ModelWriter {
public:
  /// `files` are the mapped files of the program; `flag` starts messages.
  ModelWriter(const penstock_program &program,
              const std::vector<MappedFile> &files, const char *flag = "--save")
      : program(program), files(files), flag(flag) {}

  /// Everything that can be known before training: the place is writable, each
  /// variable is in a file of the model, no input is overwritten.
  /// `given` starts the message, if it is not that of the writer.
  Error check(const std::string &path, const char *given = nullptr);
  /// Needs a successful check(). Holds no more than a piece of a value.
  Error write(const std::string &path, const ReadVariable &read);
  /// Compares what was written with what the variables hold, frozen ones as
  /// well.
  Error verify(const std::string &path, const ReadVariable &read);

private:
  Error checkExternal(const std::string &path, uint32_t file, const char *flag);
  /// Returns where a file of the model goes when the model goes to `path`.
  std::string getTarget(const std::string &path, uint32_t file) const;

  const penstock_program &program;
  const std::vector<MappedFile> &files;
  const char *const flag;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_MODELWRITER_H
