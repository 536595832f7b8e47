//===- TuneFile.h - Choices of algorithms, in a file ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lines of text: the GPU that was measured, each library with its version and,
// for each thing that it computes, what it does so by. A digest ends them, as
// libraries trust their own choices.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_TUNEFILE_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_TUNEFILE_H

#include "runtime/support/Error.h"

#include <cstdint>
#include <map>
#include <string>

namespace penstock::runtime::cuda {

struct TuneFile {
  /// The choices of one version of a library, by what is computed.
  struct Library {
    int64_t version = 0;
    std::map<std::string, std::string> choices;
  };

  /// Empty: nothing was measured yet.
  std::string gpu;
  std::map<std::string, Library> libraries;

  /// Reads a file; one that is not there is empty.
  Error read(const std::string &path);
  /// Replaces it.
  Error write(const std::string &path) const;

private:
  Error parse(const std::string &text, const std::string &path);
  std::string print() const;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_TUNEFILE_H
