//===- ModelFiles.h - Where a program finds its model -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program can be moved: its model is looked for in several places, and the
// checksum says whether it is the one that was compiled.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_MODELFILES_H
#define PENSTOCK_RUNTIME_IO_MODELFILES_H

#include "runtime/io/File.h"

#include "penstock/abi.h"

#include <filesystem>
#include <vector>

namespace penstock::runtime {

/// Maps the files of a program. The model is `given`, if that is not empty.
/// Otherwise it is what was embedded in the executable, or beside the
/// executable, or where it was compiled. Its external data is where it is,
/// relative to the model. Embedded files have an empty path.
Error openModelFiles(const penstock_program &program, const std::string &given,
                     std::vector<MappedFile> &files);

/// Returns the path of external data from the folder of the model on, as it was
/// compiled.
std::filesystem::path getRelativePath(const penstock_program &program,
                                      uint32_t file);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_MODELFILES_H
