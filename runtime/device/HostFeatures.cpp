//===- HostFeatures.cpp - Is this the CPU that code was compiled for? -----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table from LLVM's feature names to cpuid bits, of the features that a code
// generator uses on its own. Others (monitoring, virtualization, hints) need no
// check: no generated instruction depends on them.
//===----------------------------------------------------------------------===//

#include "runtime/device/HostFeatures.h"

#include <cpuid.h>
#include <string_view>

using namespace penstock::runtime;

namespace {

enum Register { EAX, EBX, ECX, EDX };
/// Registers that the operating system must save for the feature to be usable.
enum State { None = 0, Avx = 0x6, Avx512 = 0xe6 };

struct Feature {
  std::string_view name;
  unsigned leaf, subleaf;
  Register reg;
  unsigned bit;
  State state;
};

constexpr Feature kFeatures[] = {
    {"sse2", 1, 0, EDX, 26, None},
    {"sse3", 1, 0, ECX, 0, None},
    {"pclmul", 1, 0, ECX, 1, None},
    {"ssse3", 1, 0, ECX, 9, None},
    {"fma", 1, 0, ECX, 12, Avx},
    {"cx16", 1, 0, ECX, 13, None},
    {"sse4.1", 1, 0, ECX, 19, None},
    {"sse4.2", 1, 0, ECX, 20, None},
    {"movbe", 1, 0, ECX, 22, None},
    {"popcnt", 1, 0, ECX, 23, None},
    {"aes", 1, 0, ECX, 25, None},
    {"avx", 1, 0, ECX, 28, Avx},
    {"f16c", 1, 0, ECX, 29, Avx},
    {"bmi", 7, 0, EBX, 3, None},
    {"avx2", 7, 0, EBX, 5, Avx},
    {"bmi2", 7, 0, EBX, 8, None},
    {"avx512f", 7, 0, EBX, 16, Avx512},
    {"avx512dq", 7, 0, EBX, 17, Avx512},
    {"adx", 7, 0, EBX, 19, None},
    {"avx512ifma", 7, 0, EBX, 21, Avx512},
    {"avx512cd", 7, 0, EBX, 28, Avx512},
    {"sha", 7, 0, EBX, 29, None},
    {"avx512bw", 7, 0, EBX, 30, Avx512},
    {"avx512vl", 7, 0, EBX, 31, Avx512},
    {"avx512vbmi", 7, 0, ECX, 1, Avx512},
    {"avx512vbmi2", 7, 0, ECX, 6, Avx512},
    {"gfni", 7, 0, ECX, 8, None},
    {"vaes", 7, 0, ECX, 9, Avx},
    {"vpclmulqdq", 7, 0, ECX, 10, Avx},
    {"avx512vnni", 7, 0, ECX, 11, Avx512},
    {"avx512bitalg", 7, 0, ECX, 12, Avx512},
    {"avx512vpopcntdq", 7, 0, ECX, 14, Avx512},
    {"avx512vp2intersect", 7, 0, EDX, 8, Avx512},
    {"avx512fp16", 7, 0, EDX, 23, Avx512},
    {"avxvnni", 7, 1, EAX, 4, Avx},
    {"avx512bf16", 7, 1, EAX, 5, Avx512},
    {"avxifma", 7, 1, EAX, 23, Avx},
    {"avxvnniint8", 7, 1, EDX, 4, Avx},
    {"avxneconvert", 7, 1, EDX, 5, Avx},
    {"lzcnt", 0x80000001, 0, ECX, 5, None},
    {"sse4a", 0x80000001, 0, ECX, 6, None},
    {"xop", 0x80000001, 0, ECX, 11, Avx},
    {"fma4", 0x80000001, 0, ECX, 16, Avx},
    {"tbm", 0x80000001, 0, ECX, 21, None},
};

unsigned long long enabledState() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) // OSXSAVE
    return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | (unsigned long long)high << 32;
}

bool hasFeature(const Feature &feature) {
  unsigned regs[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &regs[EAX], &regs[EBX],
                         &regs[ECX], &regs[EDX]))
    return false;
  return regs[feature.reg] >> feature.bit & 1 &&
         (enabledState() & feature.state) == feature.state;
}

} // namespace

Error penstock::runtime::checkFeatures(
    const penstock_device_descriptor &device) {
  std::string missing;
  std::string_view list = device.features ? device.features : "";
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    if (item.empty() || item.front() != '+')
      continue;
    for (const Feature &feature : kFeatures)
      if (feature.name == item.substr(1) && !hasFeature(feature))
        missing.append(missing.empty() ? "" : ", ").append(feature.name);
  }
  if (missing.empty())
    return {};
  return userError("this program was compiled for the CPU '%s'; this machine "
                   "lacks %s; compile again here, or with another --march",
                   device.processor ? device.processor : "?", missing.c_str());
}
