//===- Kinds.cpp - The kinds of devices that are linked -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list that is built before main. Programs of this version of the interface
// do not name kinds: all their devices are CPUs.
//===----------------------------------------------------------------------===//

#include "runtime/device/Kinds.h"

#include <cstring>

using namespace penstock::runtime;

// Initialized before any constructor runs.
static constinit const DeviceKind *first = nullptr;

DeviceKind::DeviceKind(const char *name, Check check, Create create,
                       bool isInHostMemory, Describe describe,
                       const PeerTransport *peerTransport)
    : name(name), check(check), create(create), isInHostMemory(isInHostMemory),
      describe(describe), peerTransport(peerTransport), next(first) {
  first = this;
}

const DeviceKind *penstock::runtime::findDeviceKind(const char *name) {
  for (const DeviceKind *kind = first; kind; kind = kind->next)
    if (!std::strcmp(kind->name, name))
      return kind;
  return nullptr;
}

Error penstock::runtime::checkDevices(const penstock_program &program) {
  for (uint32_t i = 0; i < program.device_count; ++i) {
    const char *name = program.devices[i].kind;
    const DeviceKind *kind = findDeviceKind(name);
    if (!kind)
      return defect("this executable was linked without devices of kind '%s'",
                    name);
    if (Error error = kind->check(program.devices[i]))
      return error;
  }
  return {};
}

uint32_t penstock::runtime::countDevices(const penstock_program &program,
                                         const char *kind, uint32_t limit) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < limit; ++i)
    count += !std::strcmp(program.devices[i].kind, kind);
  return count;
}

std::unique_ptr<penstock_device>
penstock::runtime::createDevice(Context &context, uint32_t index) {
  return findDeviceKind(context.program.devices[index].kind)
      ->create(context, index);
}
