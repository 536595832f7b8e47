//===- TestFiles.h - Files that runtime tests read and write ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// .npy files and small ONNX models written byte by byte, so
// that tests depend on no other writer of these formats.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_TESTFILES_H
#define PENSTOCK_TEST_UNIT_RUNTIME_TESTFILES_H

#include "test/unit/ScratchFolder.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::test {

/// Returns the names of all that is below a folder, in order.
std::vector<std::string> listFiles(const ScratchFolder &folder);

std::string readText(const std::string &path);
void writeText(const std::string &path, std::string_view text);

/// The bytes of an .npy file, format version 1.
std::string npyText(const char *descr, const std::vector<int64_t> &shape,
                    const void *data, size_t bytes,
                    const char *fortranOrder = "False");

template <typename T>
void writeNpy(const std::string &path, const char *descr,
              const std::vector<int64_t> &shape, const std::vector<T> &data) {
  writeText(path, npyText(descr, shape, data.data(), data.size() * sizeof(T)));
}

/// Protobuf wire format: a length-delimited field, a varint field.
std::string bytesField(unsigned number, std::string_view payload);
std::string varintField(unsigned number, uint64_t value);

/// True for one well-formed JSON value.
bool isJson(std::string_view text);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_TESTFILES_H
