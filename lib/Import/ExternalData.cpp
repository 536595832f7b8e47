//===- ExternalData.cpp - Weights beside the model ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules: a relative path without "..", to a regular file which is really
// inside the model's folder (symbolic links followed), a range inside the file,
// and as many bytes as the type has.
//===----------------------------------------------------------------------===//

#include "ExternalData.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace penstock::onnx;

static bool isInside(StringRef folder, StringRef path) {
  auto part = sys::path::begin(path);
  for (auto it = sys::path::begin(folder), end = sys::path::end(folder);
       it != end; ++it, ++part)
    if (part == sys::path::end(path) || *it != *part)
      return false;
  return part != sys::path::end(path);
}

Expected<ExternalRange> penstock::onnx::resolveExternalData(
    const TensorRecord &tensor, StringRef modelPath, uint64_t expectedBytes) {
  auto fail = [&](const Twine &what) {
    return createStringError("external data of initializer '" + tensor.name +
                             "': " + what);
  };
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto &[key, value] : tensor.externalData) {
    if (key == "location") {
      location = value;
    } else if (key == "offset") {
      if (StringRef(value).getAsInteger(10, offset))
        return fail("offset '" + value + "' is not a number");
    } else if (key == "length") {
      uint64_t number;
      if (StringRef(value).getAsInteger(10, number))
        return fail("length '" + value + "' is not a number");
      length = number;
    }
  }

  // 1. The path, by its text.
  if (location.empty())
    return fail("it names no file");
  if (StringRef(location).contains('\0') || sys::path::is_absolute(location))
    return fail("path '" + StringRef(location.c_str()) +
                "' must be relative to the model's folder");
  for (auto it = sys::path::begin(location), end = sys::path::end(location);
       it != end; ++it)
    if (*it == "..")
      return fail("path '" + location + "' must not contain '..'");

  // 2. The file that it really is.
  SmallString<128> file(sys::path::parent_path(modelPath));
  SmallString<128> folder(file.empty() ? StringRef(".") : StringRef(file));
  sys::path::append(file, location);
  SmallString<128> realFolder, realFile;
  if (std::error_code error = sys::fs::real_path(folder, realFolder))
    return fail("folder '" + folder + "': " + error.message());
  if (std::error_code error = sys::fs::real_path(file, realFile))
    return fail("'" + file + "': " + error.message());
  if (!isInside(realFolder, realFile))
    return fail("'" + file + "' leads out of the model's folder");
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(realFile, status))
    return fail("'" + file + "': " + error.message());
  if (!sys::fs::is_regular_file(status))
    return fail("'" + file + "' is not a regular file");

  // 3. The range.
  uint64_t size = status.getSize();
  if (offset > size || (length && *length > size - offset))
    return fail("bytes " + Twine(offset) + " to " +
                Twine(offset + length.value_or(0)) + " are not in '" + file +
                "', which has " + Twine(size));
  if (!length)
    length = size - offset;
  if (*length != expectedBytes)
    return fail("its type needs " + Twine(expectedBytes) + " bytes, but " +
                Twine(*length) + " are given");
  return ExternalRange{file.str().str(), offset, *length};
}
