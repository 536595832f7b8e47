//===- InstructionSets.h - Loops for the vectors of a CPU -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A body is inlined into functions that are compiled for several instruction
// sets, and the widest one that the CPU has is called.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_INSTRUCTIONSETS_H
#define PENSTOCK_RUNTIME_SUPPORT_INSTRUCTIONSETS_H

#define PENSTOCK_INLINE inline __attribute__((always_inline))

namespace penstock::runtime {

/// Base is what the whole file is compiled for.
enum class InstructionSet { Base, Avx2, Avx512 };

/// Returns the widest one of this CPU.
inline InstructionSet getInstructionSet() {
#if defined(__x86_64__)
  static const InstructionSet found = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") ? InstructionSet::Avx512
           : __builtin_cpu_supports("avx2")  ? InstructionSet::Avx2
                                             : InstructionSet::Base;
  }();
  return found;
#else
  return InstructionSet::Base;
#endif
}

} // namespace penstock::runtime

/// Defines `result penstock::runtime::name parameters` with a body for each
/// instruction set. What it calls has to be inlined.
#if defined(__x86_64__)
// clang-format off
#define PENSTOCK_FOR_INSTRUCTION_SETS(result, name, parameters, arguments,     \
                                      ...)                                     \
  __attribute__((target("avx512f"))) static result name##Avx512 parameters {   \
    __VA_ARGS__                                                                \
  }                                                                            \
  __attribute__((target("avx2"))) static result name##Avx2 parameters {        \
    __VA_ARGS__                                                                \
  }                                                                            \
  result penstock::runtime::name parameters {                                  \
    if (getInstructionSet() == InstructionSet::Avx512)                         \
      return name##Avx512 arguments;                                           \
    if (getInstructionSet() == InstructionSet::Avx2)                           \
      return name##Avx2 arguments;                                             \
    __VA_ARGS__                                                                \
  }
// clang-format on
#else
#define PENSTOCK_FOR_INSTRUCTION_SETS(result, name, parameters, arguments,     \
                                      ...)                                     \
  result penstock::runtime::name parameters { __VA_ARGS__ }
#endif

#endif // PENSTOCK_RUNTIME_SUPPORT_INSTRUCTIONSETS_H
