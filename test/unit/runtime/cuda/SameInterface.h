//===- SameInterface.h - Functions that are called alike --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares our declarations with those of the real headers.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_CUDA_SAMEINTERFACE_H
#define PENSTOCK_TEST_UNIT_RUNTIME_CUDA_SAMEINTERFACE_H

#include <type_traits>

namespace penstock::test {

/// Returns true if values of both types are passed alike: both are pointers, or
/// numbers of one size and kind.
template <typename A, typename B> consteval bool isPassedAlike() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>)
    return std::is_void_v<A> && std::is_void_v<B>;
  else if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  else
    return sizeof(A) == sizeof(B) &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <typename A, typename B> struct SameInterface : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
struct SameInterface<A (*)(As...), B (*)(Bs...)>
    : std::bool_constant<isPassedAlike<A, B>() &&
                         (isPassedAlike<As, Bs>() && ...)> {};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_CUDA_SAMEINTERFACE_H
