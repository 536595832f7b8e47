//===- Npy.cpp - Arrays in NumPy's file format ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header is a Python dictionary in text. A scanner of the few forms that
// NumPy writes is enough; whatever else stands there is refused.
//===----------------------------------------------------------------------===//

#include "runtime/io/Npy.h"

#include <algorithm>
#include <cstring>

using namespace penstock::runtime;

namespace {

struct ElementEntry {
  uint32_t element;
  const char *name;
  const char *code; // in the header, after the byte order
  uint64_t bytes;
};

constexpr ElementEntry kElements[] = {
    {PENSTOCK_F32, "float32", "f4", 4}, {PENSTOCK_F64, "float64", "f8", 8},
    {PENSTOCK_F16, "float16", "f2", 2}, {PENSTOCK_BF16, "bfloat16", "", 2},
    {PENSTOCK_U8, "uint8", "u1", 1},    {PENSTOCK_I8, "int8", "i1", 1},
    {PENSTOCK_U16, "uint16", "u2", 2},  {PENSTOCK_I16, "int16", "i2", 2},
    {PENSTOCK_U32, "uint32", "u4", 4},  {PENSTOCK_I32, "int32", "i4", 4},
    {PENSTOCK_U64, "uint64", "u8", 8},  {PENSTOCK_I64, "int64", "i8", 8},
    {PENSTOCK_BOOL, "bool", "b1", 1}};

/// Scans "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".
class HeaderScanner {
public:
  explicit HeaderScanner(std::string_view text) : text(text) {}

  bool scan();

  std::string_view descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;

private:
  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n'))
      ++at;
  }
  bool accept(char c) {
    skipSpace();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool acceptWord(std::string_view word) {
    skipSpace();
    if (text.substr(at, word.size()) != word)
      return false;
    at += word.size();
    return true;
  }
  bool scanString(std::string_view &value);
  bool scanShape();

  std::string_view text;
  size_t at = 0;
};

bool HeaderScanner::scanString(std::string_view &value) {
  skipSpace();
  if (at >= text.size() || (text[at] != '\'' && text[at] != '"'))
    return false;
  size_t end = text.find(text[at], at + 1);
  if (end == std::string_view::npos)
    return false;
  value = text.substr(at + 1, end - at - 1);
  at = end + 1;
  return true;
}

bool HeaderScanner::scanShape() {
  if (!accept('('))
    return false;
  while (!accept(')')) {
    skipSpace();
    int64_t extent = 0;
    size_t begin = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      if (__builtin_mul_overflow(extent, 10, &extent) ||
          __builtin_add_overflow(extent, text[at] - '0', &extent))
        return false;
    if (at == begin)
      return false;
    shape.push_back(extent);
    if (accept(','))
      continue;
    if (!accept(')'))
      return false;
    break;
  }
  return true;
}

bool HeaderScanner::scan() {
  bool hasDescr = false, hasOrder = false, hasShape = false;
  if (!accept('{'))
    return false;
  while (!accept('}')) {
    std::string_view key;
    if (!scanString(key) || !accept(':'))
      return false;
    if (key == "descr" && !hasDescr) {
      hasDescr = scanString(descr);
    } else if (key == "fortran_order" && !hasOrder) {
      fortranOrder = acceptWord("True");
      hasOrder = fortranOrder || acceptWord("False");
    } else if (key == "shape" && !hasShape) {
      hasShape = scanShape();
    } else {
      return false;
    }
    if (!accept(',') && text.substr(at, 1) != "}")
      return false;
  }
  return hasDescr && hasOrder && hasShape;
}

} // namespace

const char *penstock::runtime::elementName(uint32_t element) {
  for (const ElementEntry &entry : kElements)
    if (entry.element == element)
      return entry.name;
  return "an unknown type";
}

uint64_t penstock::runtime::elementBytes(uint32_t element) {
  for (const ElementEntry &entry : kElements)
    if (entry.element == element)
      return entry.bytes;
  return 0;
}

std::string penstock::runtime::shapeText(const int64_t *shape, size_t rank) {
  std::string text = "(";
  for (size_t i = 0; i < rank; ++i)
    text += format(i ? ", %lld" : "%lld", (long long)shape[i]);
  return text + (rank == 1 ? ",)" : ")");
}

Error penstock::runtime::npyHeader(uint32_t element,
                                   const std::vector<int64_t> &shape,
                                   std::string &header) {
  std::string code;
  for (const ElementEntry &entry : kElements)
    if (entry.element == element)
      code = entry.code;
  if (code.empty())
    return userError("an .npy file cannot hold elements of type %s",
                     elementName(element));
  // Of one byte there is no order.
  code.insert(0, code.back() == '1' ? "|" : "<");
  std::string text =
      format("{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
             code.c_str(), shapeText(shape.data(), shape.size()).c_str());
  constexpr size_t kStart = 10, kAlignment = 64;
  text.append(kAlignment - (kStart + text.size()) % kAlignment, ' ');
  text.back() = '\n';
  header = std::string("\x93NUMPY\x01\x00", 8);
  header += char(text.size() & 0xff);
  header += char(text.size() >> 8);
  header += text;
  return {};
}

Error penstock::runtime::readNpy(const std::string &path, const char *what,
                                 NpyArray &array) {
  if (Error error = array.file.open(path, what))
    return error;
  return parseNpy({array.file.data(), array.file.size()}, path, what, array);
}

/// The bytes before the text of the header: magic, version and its length.
static uint64_t getTextOffset(std::string_view content) {
  return content.size() > 6 && content[6] == 1 ? 10 : 12;
}

uint64_t penstock::runtime::npyHeaderBytes(std::string_view content) {
  uint64_t offset = getTextOffset(content), length = 0;
  if (content.size() < offset)
    return 0;
  for (uint64_t i = 8; i < offset; ++i)
    length |= uint64_t(uint8_t(content[i])) << (8 * (i - 8));
  return offset + length;
}

Error penstock::runtime::parseNpyHeader(std::string_view content,
                                        const std::string &path,
                                        const char *what, NpyArray &array,
                                        uint64_t &start, uint64_t &expected) {
  const char *name = path.c_str();
  const char *bytes = content.data();
  uint64_t size = content.size();

  // 1. Magic, version and length of the header.
  if (size < 10 || std::memcmp(bytes, "\x93NUMPY", 6) != 0)
    return userError("%s: '%s' is not an .npy file", what, name);
  unsigned major = uint8_t(bytes[6]);
  if (major < 1 || major > 3)
    return userError("%s: '%s' has .npy format version %u, known are 1 to 3",
                     what, name, major);
  uint64_t offset = getTextOffset(content);
  start = npyHeaderBytes(content);
  if (start == 0 || size < start)
    return userError("%s: '%s' is truncated in its header", what, name);

  // 2. The header.
  HeaderScanner header({bytes + offset, start - offset});
  if (!header.scan())
    return userError("%s: the header of '%s' is not that of a plain array",
                     what, name);
  std::string descr(header.descr);
  for (const ElementEntry &entry : kElements)
    if (descr.size() > 1 && descr.substr(1) == entry.code)
      array.element = entry.element;
  if (!array.element)
    return userError("%s: '%s' holds elements of type '%s', which is not a "
                     "number type of Penstock",
                     what, name, descr.c_str());
  if (descr[0] == '>')
    return userError("%s: '%s' is big-endian ('%s'); save it little-endian",
                     what, name, descr.c_str());
  if (descr[0] != '<' && descr[0] != '|' && descr[0] != '=')
    return userError("%s: '%s' has the unknown element type '%s'", what, name,
                     descr.c_str());
  array.shape = std::move(header.shape);
  auto isLong = [](int64_t extent) { return extent != 1; };
  if (header.fortranOrder &&
      std::count_if(array.shape.begin(), array.shape.end(), isLong) > 1)
    return userError("%s: '%s' is in Fortran order; save it in C order "
                     "(numpy.ascontiguousarray)",
                     what, name);

  // 3. The length that the shape says.
  expected = elementBytes(array.element);
  for (int64_t extent : array.shape)
    if (__builtin_mul_overflow(expected, uint64_t(extent), &expected))
      return userError("%s: the shape in '%s' is too large", what, name);
  return {};
}

Error penstock::runtime::parseNpy(std::string_view content,
                                  const std::string &path, const char *what,
                                  NpyArray &array) {
  uint64_t start = 0, expected = 0;
  if (Error error = parseNpyHeader(content, path, what, array, start, expected))
    return error;
  // The data has exactly that length.
  const char *name = path.c_str();
  uint64_t found = content.size() - start;
  if (found < expected)
    return userError("%s: '%s' is truncated: %llu bytes of data, its shape %s "
                     "needs %llu",
                     what, name, (unsigned long long)found,
                     shapeText(array.shape.data(), array.shape.size()).c_str(),
                     (unsigned long long)expected);
  if (found > expected)
    return userError("%s: '%s' has %llu bytes after its data", what, name,
                     (unsigned long long)(found - expected));
  array.data = content.data() + start;
  return {};
}
