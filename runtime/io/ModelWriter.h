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
  /// variable has its range in the model, no input is overwritten.
  /// `given` starts the message, if it is not that of the writer.
  Error check(const std::string &path, const char *given = nullptr);
  /// Needs a successful check(). Holds no more than a piece of a value.
  Error write(const std::string &path, const ReadVariable &read);
  /// Compares what was written with what the variables hold, frozen ones as
  /// well.
  Error verify(const std::string &path, const ReadVariable &read);

private:
  Error checkExternal(const std::string &path, const std::string &location,
                      const char *flag);

  /// An external data file of the model.
  struct External {
    std::string location; // relative to the model's folder
    std::string source;
    int32_t file; // in program.files, -1 when it holds no variable
  };

  const penstock_program &program;
  const std::vector<MappedFile> &files;
  const char *const flag;
  std::vector<External> externals;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_MODELWRITER_H
