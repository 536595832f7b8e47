//===- AbiStructs.cpp - The structs of the ABI as constants ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM lays out a struct of these types as C does, if every field of C stands
// at the next multiple of its own alignment: this is checked here for all.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/AbiStructs.h"

#include <cstddef>

using namespace penstock;

namespace {

/// Where C has a field.
struct Place {
  size_t offset, size, alignment;
};

template <size_t count>
constexpr bool isNatural(const Place (&fields)[count], size_t size) {
  size_t end = 0, largest = 1;
  for (const Place &field : fields) {
    size_t offset =
        (end + field.alignment - 1) / field.alignment * field.alignment;
    if (field.offset != offset)
      return false;
    end = offset + field.size;
    if (field.alignment > largest)
      largest = field.alignment;
  }
  return size == (end + largest - 1) / largest * largest;
}

} // namespace

#define PENSTOCK_STRUCT(name) static constexpr Place name##Places[] = {
#define PENSTOCK_FIELD(name, field, type)                                      \
  {offsetof(penstock_##name, field), sizeof(type), alignof(type)},
#define PENSTOCK_ARRAY(name, field, type, length)                              \
  {offsetof(penstock_##name, field), sizeof(type) * (length), alignof(type)},
#define PENSTOCK_END(name, bytes)                                              \
  }                                                                            \
  ;                                                                            \
  static_assert(isNatural(name##Places, bytes), #name);
#include "penstock/abi.def"

#define PENSTOCK_STRUCT(name)                                                  \
  Constant abi::name::get() const {                                            \
    std::vector<Constant> fields;
#define PENSTOCK_FIELD(name, field, type) fields.push_back(field.get());
#define PENSTOCK_ARRAY(name, field, type, length) fields.push_back(field.get());
#define PENSTOCK_END(name, bytes)                                              \
  return Constant::fields(std::move(fields));                                  \
  }
#include "penstock/abi.def"

/// Copies a number or an array of numbers. Addresses, and structs within
/// structs, stay as they are.
template <typename FieldTy, typename T>
static void copyNumbers(FieldTy &field, const T &host) {
  if constexpr (std::is_arithmetic_v<std::remove_all_extents_t<T>>)
    field = host;
}

#define PENSTOCK_STRUCT(name)                                                  \
  abi::name abi::name::copy(const penstock_##name &host) {                     \
    name result;
#define PENSTOCK_FIELD(name, field, type) copyNumbers(result.field, host.field);
#define PENSTOCK_ARRAY(name, field, type, length)                              \
  copyNumbers(result.field, host.field);
#define PENSTOCK_END(name, bytes)                                              \
  return result;                                                               \
  }
#include "penstock/abi.def"
