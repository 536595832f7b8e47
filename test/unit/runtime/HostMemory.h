//===- HostMemory.h - Memory of this process as that of a device *- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tests of what moves messages and sums: addresses are pointers.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_HOSTMEMORY_H
#define PENSTOCK_TEST_UNIT_RUNTIME_HOSTMEMORY_H

#include "runtime/transport/DeviceMemory.h"

#include <cstring>

namespace penstock::test {

inline runtime::Address addressOf(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

class HostMemory : public runtime::DeviceMemory {
public:
  /// Hides what the host can address, if not `isAddressable`.
  explicit HostMemory(bool isAddressable = true)
      : isAddressable(isAddressable) {}

  void upload(runtime::Address at, const void *host, uint64_t bytes) override {
    std::memcpy(reinterpret_cast<void *>(at), host, bytes);
  }
  void download(void *host, runtime::Address at, uint64_t bytes) override {
    std::memcpy(host, reinterpret_cast<void *>(at), bytes);
  }
  void copy(runtime::Address at, runtime::DeviceMemory &from,
            runtime::Address fromAt, uint64_t bytes,
            const runtime::Handover &order) override {
    from.download(reinterpret_cast<void *>(at), fromAt, bytes);
  }
  void *hostAddress(runtime::Address at) override {
    // Its own address stands for the first byte.
    return isAddressable ? reinterpret_cast<void *>(at ? at : addressOf(this))
                         : nullptr;
  }

private:
  bool isAddressable;
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_HOSTMEMORY_H
