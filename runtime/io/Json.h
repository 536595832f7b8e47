//===- Json.h - JSON text from files that anyone may have written -*- C++ -*-=//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parsing and typed access without exceptions: nothing that a file can hold
// ends the process. Whoever includes this compiles nlohmann-json; headers of
// the runtime do not.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_JSON_H
#define PENSTOCK_RUNTIME_IO_JSON_H

// A misuse aborts; data never is one, as every access here asks for the type.
#define JSON_NOEXCEPTION 1
#define JSON_NO_IO 1
#define JSON_USE_IMPLICIT_CONVERSIONS 0

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::runtime {

using Json = nlohmann::json;

/// Returns what is wrong with `text`, or "": it is JSON, at most 16 levels deep
/// so that it takes no more memory than a few times its length, and no object
/// has a key twice.
std::string parseJson(std::string_view text, Json &value);

/// A string as JSON has it. Bytes that are no UTF-8 are replaced.
std::string quoteJson(std::string_view text);
bool isUtf8(std::string_view text);

// The member of an object; false where it is missing or of another type.
bool getMember(const Json &object, const char *key, std::string &value);
bool getMember(const Json &object, const char *key, uint64_t &value);
bool getMember(const Json &object, const char *key, int64_t &value);
bool getMember(const Json &object, const char *key, double &value);
bool getMember(const Json &object, const char *key, bool &value);
/// Numbers from 0 to 2^63 - 1.
bool getMember(const Json &object, const char *key,
               std::vector<int64_t> &values);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_JSON_H
