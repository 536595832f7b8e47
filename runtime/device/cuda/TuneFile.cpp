//===- TuneFile.cpp - Choices of algorithms, in a file --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything is sorted, so that equal choices are equal files.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/TuneFile.h"

#include "penstock/sha256.h"
#include "runtime/io/File.h"

#include <charconv>
#include <string_view>
#include <unistd.h>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

static constexpr std::string_view kTitle = "penstock-tune 1\n";
static constexpr std::string_view kDigest = "sha256 ";

static std::string getDigest(std::string_view text) {
  uint8_t digest[32];
  penstock_sha256(text.data(), text.size(), digest);
  std::string result;
  for (uint8_t byte : digest)
    result += format("%02x", byte);
  return result;
}

/// Takes the next line, without its end.
static std::string_view takeLine(std::string_view &text) {
  size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

/// Takes a word that begins a line, if it does.
static bool consume(std::string_view &line, std::string_view word) {
  if (!line.starts_with(word))
    return false;
  line.remove_prefix(word.size());
  return true;
}

Error TuneFile::parse(const std::string &text, const std::string &path) {
  std::string_view rest = text;
  if (!consume(rest, kTitle))
    return userError("--tune: '%s' is another file; choose another name",
                     path.c_str());
  auto broken = [&] {
    return userError("--tune: '%s' was cut or changed; remove it, and its "
                     "choices are measured again",
                     path.c_str());
  };
  // 1. The digest of all that is before it.
  size_t end = text.rfind(kDigest);
  if (end == text.npos || text[end - 1] != '\n' ||
      text.substr(end + kDigest.size()) !=
          getDigest(std::string_view(text).substr(0, end)) + '\n')
    return broken();
  rest = std::string_view(text).substr(kTitle.size(), end - kTitle.size());

  // 2. The lines.
  Library *library = nullptr;
  while (!rest.empty()) {
    std::string_view line = takeLine(rest);
    if (consume(line, "gpu ")) {
      gpu = line;
    } else if (consume(line, "library ")) {
      size_t space = line.rfind(' ');
      if (space == line.npos)
        return broken();
      library = &libraries[std::string(line.substr(0, space))];
      const char *last = line.data() + line.size();
      auto [stop, status] =
          std::from_chars(line.data() + space + 1, last, library->version);
      if (status != std::errc() || stop != last)
        return broken();
    } else {
      size_t equals = line.find(" = ");
      if (!library || equals == line.npos)
        return broken();
      library->choices[std::string(line.substr(0, equals))] =
          line.substr(equals + 3);
    }
  }
  return {};
}

Error TuneFile::read(const std::string &path) {
  *this = {};
  if (access(path.c_str(), F_OK))
    return {};
  MappedFile file;
  if (Error error = file.open(path, "--tune"))
    return error;
  return parse({file.data(), file.size()}, path);
}

std::string TuneFile::print() const {
  std::string text(kTitle);
  text += "gpu " + gpu + '\n';
  for (const auto &[name, library] : libraries) {
    text +=
        format("library %s %lld\n", name.c_str(), (long long)library.version);
    for (const auto &[what, choice] : library.choices)
      text += what + " = " + choice + '\n';
  }
  std::string digest = getDigest(text);
  return text + std::string(kDigest) + digest + '\n';
}

Error TuneFile::write(const std::string &path) const {
  OutputFile file;
  if (Error error = file.create(path))
    return error;
  if (Error error = file.append(print()))
    return error;
  return file.commit();
}
