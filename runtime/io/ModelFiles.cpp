//===- ModelFiles.cpp - Where a program finds its model -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model's checksum decides; of external data, which may be large, the size.
//===----------------------------------------------------------------------===//

#include "runtime/io/ModelFiles.h"
#include "penstock/checksum.h"

#include "penstock/embedded.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace penstock::runtime;

/// Returns true if a file is the one that was compiled.
static bool isSame(const penstock_file &expected, const MappedFile &found,
                   bool isModel) {
  if (found.size() != expected.size)
    return false;
  return !isModel || std::ranges::equal(getChecksum(found.data(), found.size()),
                                        expected.checksum);
}

/// The entries of what is embedded in the executable; none where nothing is.
static std::vector<penstock_embedded_file>
readEmbedded(const std::string &executable) {
  std::vector<penstock_embedded_file> entries;
  int descriptor = ::open(executable.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return entries;
  penstock_embedded_footer footer;
  off_t size = lseek(descriptor, 0, SEEK_END);
  off_t at = size - off_t(sizeof(footer));
  constexpr uint64_t kMost = 1 << 20;
  if (at > 0 &&
      pread(descriptor, &footer, sizeof(footer), at) == sizeof(footer) &&
      !std::memcmp(footer.magic, PENSTOCK_EMBEDDED_MAGIC,
                   sizeof(footer.magic)) &&
      footer.count <= kMost && footer.offset <= uint64_t(at)) {
    entries.resize(footer.count);
    ssize_t bytes = ssize_t(entries.size() * sizeof(entries.front()));
    if (pread(descriptor, entries.data(), bytes, off_t(footer.offset)) != bytes)
      entries.clear();
  }
  ::close(descriptor);
  return entries;
}

/// Opens the first of the places that holds what was compiled.
static Error openFirst(const penstock_file &expected, bool isModel,
                       const std::vector<std::string> &places,
                       MappedFile &file) {
  std::string tried;
  for (const std::string &place : places) {
    MappedFile found;
    const char *why = "is not what was compiled";
    if (Error error = found.open(place, "model"))
      why = access(place.c_str(), R_OK) == 0 ? "is no file with content"
                                             : std::strerror(errno);
    else if (isSame(expected, found, isModel)) {
      file = std::move(found);
      return {};
    }
    tried +=
        format("%s'%s' (%s)", tried.empty() ? "" : ", ", place.c_str(), why);
  }
  return userError("%s of this program is not there: %s; give the model by "
                   "--model FILE, or compile it again",
                   isModel ? "the model" : "external data of the model",
                   tried.c_str());
}

std::filesystem::path
penstock::runtime::getRelativePath(const penstock_program &program,
                                   uint32_t file) {
  return std::filesystem::path(program.files[file].path)
      .lexically_relative(
          std::filesystem::path(program.files[0].path).parent_path());
}

Error penstock::runtime::openModelFiles(const penstock_program &program,
                                        const std::string &given,
                                        std::vector<MappedFile> &files) {
  files.clear();
  files.resize(program.file_count);
  if (files.empty())
    return {};

  // 1. All that is embedded.
  std::string executable = executablePath();
  if (given.empty()) {
    std::vector<penstock_embedded_file> entries = readEmbedded(executable);
    if (!entries.empty() && entries.size() < files.size())
      return userError("'%s' has %zu embedded files, and this program needs "
                       "%zu; compile it again",
                       executable.c_str(), entries.size(), files.size());
    for (size_t i = 0; !entries.empty() && i < files.size(); ++i) {
      if (Error error = files[i].openRange(executable, "the embedded model",
                                           entries[i].offset, entries[i].size))
        return error;
      files[i].forgetPath();
      if (!isSame(program.files[i], files[i], i == 0))
        return userError("the model embedded in '%s' is not the one that was "
                         "compiled; compile it again, or give the model by "
                         "--model FILE",
                         executable.c_str());
    }
    if (!entries.empty())
      return {};
  }

  // 2. The model.
  std::filesystem::path compiled(program.files[0].path);
  std::vector<std::string> places = {given};
  if (given.empty()) {
    places = {folderOf(executable) + "/" + compiled.filename().string()};
    if (!sameFile(places.front(), compiled.string()))
      places.push_back(compiled.string());
    else
      places = {compiled.string()};
  }
  if (Error error =
          openFirst(program.files[0], /*isModel=*/true, places, files[0]))
    return error;

  // 3. Its external data.
  for (uint32_t i = 1; i < files.size(); ++i) {
    places = {program.files[i].path};
    std::string beside = folderOf(files[0].getPath()) + "/" +
                         getRelativePath(program, i).string();
    if (!sameFile(beside, places.front()))
      places.insert(places.begin(), beside);
    if (Error error =
            openFirst(program.files[i], /*isModel=*/false, places, files[i]))
      return error;
  }
  return {};
}
