//===- SampleArray.cpp - The samples of one input -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A colon or comma may stand in a file's name: what exists under the whole name
// is that file.
//===----------------------------------------------------------------------===//

#include "runtime/io/SampleArray.h"

#include "runtime/io/Safetensors.h"
#include "runtime/io/Zip.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <glob.h>
#include <string>
#include <unistd.h>

using namespace penstock::runtime;

static bool exists(const std::string &path) {
  return access(path.c_str(), F_OK) == 0;
}

/// Takes a suffix ":TEXT" off a name that is no file with it.
static bool takeSuffix(std::string &path, std::string &text) {
  size_t colon = path.rfind(':');
  if (colon == std::string::npos || colon == 0 || exists(path))
    return false;
  text = path.substr(colon + 1);
  path.resize(colon);
  return true;
}

/// The files of a pattern, in the order of their names; of a name, that one.
static Error expand(const std::string &pattern, const char *what,
                    std::vector<std::string> &paths) {
  if (exists(pattern) || pattern.find_first_of("*?[") == std::string::npos) {
    paths.push_back(pattern);
    return {};
  }
  glob_t found = {};
  int status = glob(pattern.c_str(), 0, nullptr, &found);
  for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i)
    paths.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  if (status == 0)
    return {};
  return userError("%s: no file fits '%s'", what, pattern.c_str());
}

/// "f32[N,3,32,32]": the type and shape of a sample.
static bool parseRawType(const std::string &text, uint32_t &element,
                         std::vector<int64_t> &shape) {
  static constexpr std::pair<const char *, uint32_t> kTypes[] = {
      {"f32", PENSTOCK_F32}, {"f64", PENSTOCK_F64}, {"f16", PENSTOCK_F16},
      {"u8", PENSTOCK_U8},   {"i8", PENSTOCK_I8},   {"u16", PENSTOCK_U16},
      {"i16", PENSTOCK_I16}, {"u32", PENSTOCK_U32}, {"i32", PENSTOCK_I32},
      {"u64", PENSTOCK_U64}, {"i64", PENSTOCK_I64}, {"bool", PENSTOCK_BOOL}};
  size_t bracket = text.find("[N");
  if (bracket == std::string::npos || text.back() != ']')
    return false;
  element = 0;
  for (auto [name, type] : kTypes)
    if (text.compare(0, bracket, name) == 0)
      element = type;
  const char *at = text.data() + bracket + 2, *end = &text.back();
  while (at != end) {
    int64_t extent = 0;
    if (*at++ != ',')
      return false;
    auto [stop, status] = std::from_chars(at, end, extent);
    if (status != std::errc() || extent < 1)
      return false;
    shape.push_back(extent);
    at = stop;
  }
  return element != 0;
}

/// Raw bytes, of as many samples as there are.
static Error readRaw(const std::string &path, const std::string &type,
                     const char *what, NpyArray &array) {
  std::vector<int64_t> shape;
  if (!parseRawType(type, array.element, shape))
    return userError("%s: '%s' is no type of raw samples, as f32[N,3,32,32]",
                     what, type.c_str());
  if (Error error = array.file.open(path, what))
    return error;
  uint64_t bytes = elementBytes(array.element);
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, uint64_t(extent), &bytes))
      return userError("%s: '%s' is too large", what, type.c_str());
  if (array.file.size() % bytes != 0)
    return userError("%s: '%s' has %llu bytes, no multiple of the %llu of a "
                     "sample %s",
                     what, path.c_str(), (unsigned long long)array.file.size(),
                     (unsigned long long)bytes, type.c_str());
  array.shape = {int64_t(array.file.size() / bytes)};
  array.shape.insert(array.shape.end(), shape.begin(), shape.end());
  array.data = array.file.data();
  return {};
}

/// A member of an .npz file: `name`, or the only one.
static Error readNpz(const std::string &path, const std::string &name,
                     const char *what, NpyArray &array) {
  if (Error error = array.file.open(path, what))
    return error;
  std::vector<ZipMember> members;
  if (!readZip({array.file.data(), array.file.size()}, members))
    return userError("%s: '%s' is no whole .npz file", what, path.c_str());
  std::string names;
  const ZipMember *found = nullptr;
  for (const ZipMember &member : members) {
    std::string own = member.name;
    if (size_t size = own.size();
        size > 4 && own.compare(size - 4, 4, ".npy") == 0)
      own.resize(size - 4);
    if (own == name || (name.empty() && members.size() == 1))
      found = &member;
    names += (names.empty() ? "" : ", ") + own;
  }
  if (!found && name.empty())
    return userError("%s: '%s' has several members; say which, as %s:NAME: %s",
                     what, path.c_str(), path.c_str(), names.c_str());
  if (!found)
    return userError("%s: '%s' has no member '%s'; it has: %s", what,
                     path.c_str(), name.c_str(), names.c_str());
  if (!found->isStored)
    return userError("%s: '%s' is compressed, and cannot be mapped; write it "
                     "by numpy.savez, or unpack it",
                     what, path.c_str());
  return parseNpy({array.file.data() + found->offset, found->size},
                  path + ":" + found->name, what, array);
}

/// A tensor of a .safetensors file: `name`, or the only one.
static Error readTensorFile(const std::string &path, const std::string &name,
                            const char *what, NpyArray &array) {
  if (Error error = array.file.open(path, what))
    return error;
  std::vector<SafeTensor> tensors;
  std::string problem = readSafetensorsHeader(
      {array.file.data(), array.file.size()}, array.file.size(), tensors);
  if (!problem.empty())
    return userError("%s: '%s' is no whole .safetensors file: %s", what,
                     path.c_str(), problem.c_str());
  std::string names;
  const SafeTensor *found = nullptr;
  for (const SafeTensor &tensor : tensors) {
    if (tensor.name == name || (name.empty() && tensors.size() == 1))
      found = &tensor;
    names += (names.empty() ? "" : ", ") + tensor.name;
  }
  if (!found && name.empty())
    return userError("%s: '%s' has %zu tensors; say which, as %s:NAME: %s",
                     what, path.c_str(), tensors.size(), path.c_str(),
                     names.c_str());
  if (!found)
    return userError("%s: '%s' has no tensor '%s'; it has: %s", what,
                     path.c_str(), name.c_str(), names.c_str());
  array.element = found->element;
  array.shape = found->shape;
  array.data = array.file.data() + found->offset;
  return {};
}

Error SampleArray::add(const std::string &path, const std::string &member,
                       const char *what) {
  // 1. The file, by what it is.
  Part part;
  auto hasEnding = [&](const char *ending) {
    size_t length = std::strlen(ending);
    return path.size() > length &&
           path.compare(path.size() - length, length, ending) == 0;
  };
  Error error;
  if (stream)
    error = stream->open(what, part.array);
  else if (hasEnding(".npz"))
    error = readNpz(path, member, what, part.array);
  else if (hasEnding(".safetensors"))
    error = readTensorFile(path, member, what, part.array);
  else if (!member.empty())
    error = readRaw(path, member, what, part.array);
  else
    error = readNpy(path, what, part.array);
  if (error)
    return error;

  // 2. It goes on where the former ends.
  const NpyArray &array = part.array;
  if (parts.empty()) {
    element = array.element;
    shape = array.shape;
    part.begin = 0;
    bytes = elementBytes(element);
    for (size_t i = 1; i < shape.size(); ++i)
      bytes *= uint64_t(shape[i]);
  } else {
    if (element != array.element || shape.empty() ||
        array.shape.size() != shape.size() ||
        !std::equal(shape.begin() + 1, shape.end(), array.shape.begin() + 1))
      return userError(
          "%s: '%s' holds %s %s, which does not go on from %s %s "
          "before it",
          what, path.c_str(), elementName(array.element),
          shapeText(array.shape.data(), array.shape.size()).c_str(),
          elementName(element), shapeText(shape.data(), shape.size()).c_str());
    part.begin = shape[0];
    shape[0] += array.shape[0];
  }
  parts.push_back(std::move(part));
  return {};
}

Error SampleArray::open(const std::string &spec, const char *what) {
  // 1. What it is divided by.
  std::string list = spec, suffix;
  size_t scale = list.rfind(":/");
  if (scale != std::string::npos && !exists(list)) {
    char *end = nullptr;
    std::string number = list.substr(scale + 2);
    divisor = std::strtod(number.c_str(), &end);
    bool isNumber = end != number.c_str() && !*end;
    if (isNumber && (!std::isfinite(divisor) || divisor == 0))
      return userError("%s: nothing can be divided by '%s'", what,
                       number.c_str());
    if (isNumber)
      list.resize(scale);
    else
      divisor = 0; // a path after a colon
  }

  // 2. One file after the other. Commas inside of brackets belong to a shape.
  std::vector<std::string> items;
  if (list == "-") {
    stream = std::make_unique<SampleStream>();
    items = {list};
  } else if (exists(list)) {
    items = {list};
  } else {
    items.emplace_back();
    int depth = 0;
    for (char c : list) {
      depth += (c == '[') - (c == ']');
      if (c == ',' && depth == 0)
        items.emplace_back();
      else
        items.back() += c;
    }
  }
  for (std::string &item : items) {
    std::string member;
    if (!stream)
      takeSuffix(item, member);
    if (item.empty())
      return userError("%s: a file name in '%s' is empty", what, spec.c_str());
    std::vector<std::string> paths;
    if (Error error = expand(item, what, paths))
      return error;
    for (const std::string &path : paths)
      if (Error error = add(path, member, what))
        return error;
  }

  // 3. Integers become fractions.
  if (divisor != 0 && element != PENSTOCK_U8 && element != PENSTOCK_I8 &&
      element != PENSTOCK_U16 && element != PENSTOCK_I16 &&
      element != PENSTOCK_F32)
    return userError("%s: '%s' holds %s; uint8, int8, uint16, int16 and "
                     "float32 can be divided",
                     what, spec.c_str(), elementName(element));
  return {};
}

const SampleArray::Part &SampleArray::findPart(int64_t sample) const {
  if (parts.size() == 1)
    return parts.front();
  auto next = std::upper_bound(
      parts.begin(), parts.end(), sample,
      [](int64_t wanted, const Part &part) { return wanted < part.begin; });
  return *std::prev(next);
}

const char *SampleArray::find(int64_t sample, int64_t &run) const {
  const Part &part = findPart(sample);
  int64_t inPart = sample - part.begin;
  run = part.array.shape[0] - inPart;
  return part.array.data + uint64_t(inPart) * bytes;
}

/// Returns how much of files the system can keep in memory, as it estimates; 0
/// where it does not.
static uint64_t getAvailableBytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (uint64_t kibibytes = 0;
        std::sscanf(line.c_str(), "MemAvailable: %" SCNu64, &kibibytes) == 1)
      return kibibytes << 10;
  return 0;
}

void SampleArray::setRandom() {
  uint64_t size = 0;
  for (const Part &part : parts)
    size += part.array.file.size();
  bool stays = size <= getAvailableBytes() / 2;
  for (Part &part : parts)
    part.array.file.setRandom(stays);
}

bool SampleArray::isLarge() const {
  return std::any_of(parts.begin(), parts.end(), [](const Part &part) {
    return part.array.file.isLarge();
  });
}

void SampleArray::fetch(int64_t sample) const {
  // The processor goes on by itself from the lines that a copy begins with, but
  // for each page it has to find the address first.
  constexpr uint64_t kLine = 64, kBegin = 512, kPage = 4096;
  int64_t run = 0;
  const char *data = find(sample, run);
  for (uint64_t at = 0; at < std::min(bytes, kBegin); at += kLine)
    __builtin_prefetch(data + at);
  uint64_t inPage = uint64_t(reinterpret_cast<uintptr_t>(data)) % kPage;
  for (uint64_t at = kPage - inPage; at < bytes; at += kPage)
    __builtin_prefetch(data + at);
}

bool SampleArray::prefetch(int64_t sample) const {
  int64_t run = 0;
  const char *data = find(sample, run);
  return findPart(sample).array.file.prefetch(data, bytes);
}

void SampleArray::giveBackPages() const {
  for (const Part &part : parts)
    part.array.file.giveBackPages();
}

std::vector<const NpyArray *> SampleArray::arrays() const {
  std::vector<const NpyArray *> result;
  for (const Part &part : parts)
    result.push_back(&part.array);
  return result;
}

std::vector<std::string> SampleArray::paths() const {
  std::vector<std::string> result;
  for (const Part &part : parts)
    result.push_back(part.array.file.getPath());
  return result;
}
