//===- Json.cpp - JSON text from files that anyone may have written -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parser takes the last of several equal keys, and any depth: both are
// looked at here.
//===----------------------------------------------------------------------===//

#include "runtime/io/Json.h"

#include <set>

using namespace penstock::runtime;

/// A level takes a hundred bytes, and one byte of text makes it.
static bool isTooDeep(std::string_view text) {
  constexpr int kMost = 16;
  int depth = 0;
  bool isInString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isInString && c == '\\')
      ++i;
    else if (c == '"')
      isInString = !isInString;
    else if (!isInString && (c == '[' || c == '{'))
      ++depth;
    else if (!isInString && (c == ']' || c == '}'))
      --depth;
    if (depth > kMost)
      return true;
  }
  return false;
}

std::string penstock::runtime::parseJson(std::string_view text, Json &value) {
  if (isTooDeep(text))
    return "it is nested too deeply";
  std::vector<std::set<std::string>> keys;
  std::string twice;
  auto note = [&](int depth, Json::parse_event_t event, Json &parsed) {
    size_t level = size_t(depth);
    if (event == Json::parse_event_t::object_start) {
      keys.resize(std::max(keys.size(), level + 2));
      keys[level + 1].clear();
    }
    if (event == Json::parse_event_t::key && level < keys.size()) {
      const std::string &key = parsed.get_ref<const std::string &>();
      if (!keys[level].insert(key).second && twice.empty())
        twice = key;
    }
    return true;
  };
  value = Json::parse(text.begin(), text.end(), note,
                      /*allow_exceptions=*/false);
  if (value.is_discarded())
    return "it is not JSON";
  if (!twice.empty())
    return "it has '" + twice + "' twice";
  return "";
}

std::string penstock::runtime::quoteJson(std::string_view text) {
  return Json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                         Json::error_handler_t::replace);
}

bool penstock::runtime::isUtf8(std::string_view text) {
  // Nothing that is replaced keeps its length, and nothing else changes.
  std::string quoted =
      Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore);
  Json back = Json::parse(quoted, nullptr, /*allow_exceptions=*/false);
  return back.is_string() && back.get_ref<const std::string &>() == text;
}

static const Json *find(const Json &object, const char *key) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

static bool toInteger(const Json &value, int64_t &result) {
  // What is written with a sign is signed to the parser.
  if (value.is_number_unsigned()) {
    auto number = value.get<uint64_t>();
    result = int64_t(number);
    return number <= uint64_t(INT64_MAX);
  }
  if (!value.is_number_integer())
    return false;
  result = value.get<int64_t>();
  return true;
}

bool penstock::runtime::getMember(const Json &object, const char *key,
                                  std::string &value) {
  const Json *member = find(object, key);
  if (!member || !member->is_string())
    return false;
  value = member->get_ref<const std::string &>();
  return true;
}

bool penstock::runtime::getMember(const Json &object, const char *key,
                                  uint64_t &value) {
  const Json *member = find(object, key);
  if (!member || !member->is_number_unsigned())
    return false;
  value = member->get<uint64_t>();
  return true;
}

bool penstock::runtime::getMember(const Json &object, const char *key,
                                  int64_t &value) {
  const Json *member = find(object, key);
  return member && toInteger(*member, value);
}

bool penstock::runtime::getMember(const Json &object, const char *key,
                                  double &value) {
  const Json *member = find(object, key);
  if (!member || !member->is_number())
    return false;
  value = member->get<double>();
  return true;
}

bool penstock::runtime::getMember(const Json &object, const char *key,
                                  bool &value) {
  const Json *member = find(object, key);
  if (!member || !member->is_boolean())
    return false;
  value = member->get<bool>();
  return true;
}

bool penstock::runtime::getMember(const Json &object, const char *key,
                                  std::vector<int64_t> &values) {
  const Json *member = find(object, key);
  if (!member || !member->is_array())
    return false;
  values.clear();
  for (const Json &each : *member) {
    int64_t number = 0;
    if (!toInteger(each, number) || number < 0)
      return false;
    values.push_back(number);
  }
  return true;
}
