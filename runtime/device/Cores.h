//===- Cores.h - Which cores a device may use -------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cores are divided in proportion to threads; neighboring devices get
// neighboring cores, as they talk most.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CORES_H
#define PENSTOCK_RUNTIME_DEVICE_CORES_H

#include "runtime/device/Context.h"

#include <sched.h>

namespace penstock::runtime {

/// The cores of a device: its share of those this process may use, empty where
/// threads outnumber cores.
cpu_set_t shareOfCores(const Context &context, uint32_t device);
/// "0-3,8", or "any" of none.
std::string describeCores(const cpu_set_t &cores);
/// Threads of all local devices together against allowed cores.
bool isOversubscribed(const Context &context);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CORES_H
