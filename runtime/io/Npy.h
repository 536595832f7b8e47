//===- Npy.h - Arrays in NumPy's file format --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An .npy file (format versions 1 to 3) is mapped, its header parsed, and
// everything that would make its bytes mean something else is refused.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_NPY_H
#define PENSTOCK_RUNTIME_IO_NPY_H

#include "runtime/io/File.h"

#include <vector>

namespace penstock::runtime {

/// A mapped array in row-major order.
struct NpyArray {
  MappedFile file;
  uint32_t element = 0; // as in abi.h
  std::vector<int64_t> shape;
  const char *data = nullptr;
};

/// "float32" and so on.
const char *elementName(uint32_t element);
/// Bytes of one element.
uint64_t elementBytes(uint32_t element);
/// "(5, 7)".
std::string shapeText(const int64_t *shape, size_t rank);

/// Writes the header of an array, a multiple of 64 bytes long.
Error npyHeader(uint32_t element, const std::vector<int64_t> &shape,
                std::string &header);

Error readNpy(const std::string &path, const char *what, NpyArray &array);

/// Reads an array in memory, which `name` names in messages. Sets all but the
/// file.
Error parseNpy(std::string_view content, const std::string &name,
               const char *what, NpyArray &array);

/// The same of the header alone: `start` is its length, `bytes` that of the
/// data behind it.
Error parseNpyHeader(std::string_view content, const std::string &name,
                     const char *what, NpyArray &array, uint64_t &start,
                     uint64_t &bytes);
/// The length of a header, from its first 12 bytes; 0 if they are not of one.
uint64_t npyHeaderBytes(std::string_view content);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_NPY_H
