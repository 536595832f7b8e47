//===- ScratchFolder.h - Folders of unit tests ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A test that is killed leaves its folder behind. Its name holds the process,
// and the first folder of the next one removes those of processes that ended.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_SCRATCHFOLDER_H
#define PENSTOCK_TEST_UNIT_SCRATCHFOLDER_H

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace penstock::test {

/// A folder below TMPDIR that is removed with everything in it. `path` is empty
/// where none could be made.
class ScratchFolder {
public:
  ScratchFolder() {
    [[maybe_unused]] static const bool isSwept = removeStale();
    std::string pattern =
        (std::filesystem::temp_directory_path() /
         (std::string(kPrefix) + std::to_string(getpid()) + "-XXXXXX"))
            .string();
    if (mkdtemp(pattern.data()))
      path = pattern;
  }
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  std::string operator/(std::string_view name) const {
    return path + "/" + std::string(name);
  }

  /// Removes the folders of processes that have ended.
  static bool removeStale() {
    std::error_code ignored;
    std::filesystem::directory_iterator entry(
        std::filesystem::temp_directory_path(), ignored),
        end;
    for (; !ignored && entry != end; entry.increment(ignored))
      if (std::error_code failure; isStale(entry->path().filename().native()))
        std::filesystem::remove_all(entry->path(), failure);
    return true;
  }

  std::string path;
  static constexpr std::string_view kPrefix = "penstock-test-";

private:
  /// Returns true if `name` is that of a folder whose process has ended.
  static bool isStale(std::string_view name) {
    if (name.substr(0, kPrefix.size()) != kPrefix)
      return false;
    name.remove_prefix(kPrefix.size());
    pid_t process = 0;
    auto [end, status] =
        std::from_chars(name.data(), name.data() + name.size(), process);
    return status == std::errc() && end != name.data() + name.size() &&
           *end == '-' && process > 0 && kill(process, 0) != 0 &&
           errno == ESRCH;
  }
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_SCRATCHFOLDER_H
