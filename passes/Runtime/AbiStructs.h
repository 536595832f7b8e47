//===- AbiStructs.h - The structs of the ABI as constants -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For each struct of penstock/abi.def one of constants: the same fields, by
// name and in their order, each of which takes constants of its C type only.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_ABISTRUCTS_H
#define PENSTOCK_PASSES_RUNTIME_ABISTRUCTS_H

#include "passes/Runtime/Constants.h"
#include "penstock/abi.h"

#include <array>
#include <type_traits>

namespace penstock::abi {

/// The struct of constants for a C struct.
template <typename CStruct> struct Mirror;

/// A field of a C type; zero until it is set.
template <typename T> class Field {
public:
  Field() : value(Mirror<T>::zero()) {}
  /// A struct within a struct.
  Field(const typename Mirror<T>::type &fields) : value(fields.get()) {}
  const Constant &get() const { return value; }

private:
  Constant value;
};

template <typename T>
  requires std::is_integral_v<T>
class Field<T> {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);

public:
  Field(int64_t value = 0) : value(value) {}
  Constant get() const {
    return sizeof(T) == 4 ? Constant::i32(value) : Constant::i64(value);
  }

private:
  int64_t value;
};

template <> class Field<double> {
public:
  Field(double value = 0) : value(value) {}
  Constant get() const { return Constant::f64(value); }

private:
  double value;
};

/// Null until it is set.
template <typename T> class Field<T *> {
public:
  Field() : address(Constant::null()) {}
  Field(Constant address) : address(std::move(address)) {}
  const Constant &get() const { return address; }

private:
  Constant address;
};

/// An array within a struct; all of it is given.
template <typename T, size_t length> class ArrayField {
  static_assert(sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8);

public:
  ArrayField() : ArrayField(std::array<T, length>()) {}
  ArrayField(const T (&values)[length]) : ArrayField(std::to_array(values)) {}
  ArrayField(const std::array<T, length> &values) : values(values) {}
  Constant get() const {
    if constexpr (sizeof(T) == 1) {
      return Constant::bytes(values);
    } else if constexpr (sizeof(T) == 4) {
      std::vector<Constant> words;
      for (T value : values)
        words.push_back(Constant::i32(value));
      return Constant::array(std::move(words));
    } else {
      return Constant::integers(values);
    }
  }

private:
  std::array<T, length> values;
};

#define PENSTOCK_STRUCT(name)                                                  \
  struct name {                                                                \
    Constant get() const;                                                      \
    /* Copies the numbers of a struct, no addresses and no inner structs. */   \
    static name copy(const penstock_##name &host);
#define PENSTOCK_FIELD(name, field, type) Field<type> field;
#define PENSTOCK_ARRAY(name, field, type, length)                              \
  ArrayField<type, length> field;
#define PENSTOCK_END(name, bytes)                                              \
  }                                                                            \
  ;                                                                            \
  template <> struct Mirror<penstock_##name> {                                 \
    using type = name;                                                         \
    static Constant zero() { return name().get(); }                            \
  };
#include "penstock/abi.def"

} // namespace penstock::abi

#endif // PENSTOCK_PASSES_RUNTIME_ABISTRUCTS_H
