//===- TestFiles.cpp - Files that runtime tests read and write ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writers of the formats, and a JSON parser that only says yes or no.
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace penstock::test;

std::vector<std::string>
penstock::test::listFiles(const ScratchFolder &folder) {
  std::vector<std::string> names;
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(folder.path))
    names.push_back(
        std::filesystem::relative(entry.path(), folder.path).string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string penstock::test::readText(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void penstock::test::writeText(const std::string &path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), text.size());
}

std::string penstock::test::npyText(const char *descr,
                                    const std::vector<int64_t> &shape,
                                    const void *data, size_t bytes,
                                    const char *fortranOrder) {
  std::ostringstream header;
  header << "{'descr': '" << descr << "', 'fortran_order': " << fortranOrder
         << ", 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i)
    header << (i ? ", " : "") << shape[i];
  header << (shape.size() == 1 ? ",), }" : "), }");
  std::string text = header.str();
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  text += '\n';
  std::string file = "\x93NUMPY";
  file += char(1);
  file += char(0);
  file += char(text.size() & 255);
  file += char(text.size() >> 8);
  return file + text + std::string(static_cast<const char *>(data), bytes);
}

static std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7)
    text += char(value | 128);
  return text + char(value);
}

std::string penstock::test::bytesField(unsigned number,
                                       std::string_view payload) {
  return varint(number << 3 | 2) + varint(payload.size()) +
         std::string(payload);
}

std::string penstock::test::varintField(unsigned number, uint64_t value) {
  return varint(number << 3) + varint(value);
}

namespace {

class JsonChecker {
public:
  explicit JsonChecker(std::string_view text) : text(text) {}
  bool check() { return value() && (skip(), at == text.size()); }

private:
  void skip() {
    while (at < text.size() && std::strchr(" \t\r\n", text[at]))
      ++at;
  }
  bool accept(char c) {
    skip();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool word(std::string_view expected) {
    if (text.substr(at, expected.size()) != expected)
      return false;
    at += expected.size();
    return true;
  }
  bool string() {
    if (!accept('"'))
      return false;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (uint8_t(text[at]) < 0x20)
        return false;
      at += text[at] == '\\';
    }
    return at++ < text.size();
  }
  bool number() {
    std::string rest(text.substr(at, 40));
    char *end = nullptr;
    std::strtod(rest.c_str(), &end);
    at += end - rest.c_str();
    return end != rest.c_str() && !std::isalpha(rest[0]);
  }
  template <typename Item> bool list(char close, Item item) {
    if (accept(close))
      return true;
    do {
      if (!item())
        return false;
    } while (accept(','));
    return accept(close);
  }
  bool value() {
    skip();
    if (at >= text.size())
      return false;
    switch (text[at]) {
    case '{':
      ++at;
      return list('}', [&] { return string() && accept(':') && value(); });
    case '[':
      ++at;
      return list(']', [&] { return value(); });
    case '"':
      return string();
    case 't':
      return word("true");
    case 'f':
      return word("false");
    case 'n':
      return word("null");
    default:
      return number();
    }
  }

  std::string_view text;
  size_t at = 0;
};

} // namespace

bool penstock::test::isJson(std::string_view text) {
  return JsonChecker(text).check();
}
