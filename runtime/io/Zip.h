//===- Zip.h - The members of a zip file ------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NumPy's .npz files are zip files. Members that are stored as they are can be
// mapped; compressed ones cannot.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_ZIP_H
#define PENSTOCK_RUNTIME_IO_ZIP_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::runtime {

struct ZipMember {
  std::string name;
  bool isStored; // not compressed
  /// The range of its bytes in the file.
  uint64_t offset = 0, size = 0;
};

/// Lists the members; false where the file is no zip file, or damaged.
bool readZip(std::string_view file, std::vector<ZipMember> &members);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_ZIP_H
