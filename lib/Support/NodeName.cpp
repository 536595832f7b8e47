//===- NodeName.cpp - Names of ONNX nodes in locations --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See NodeName.h.
//===----------------------------------------------------------------------===//

#include "penstock/Support/NodeName.h"

using namespace mlir;

static void collectNames(Location location, SmallVectorImpl<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    if (!name.getName().empty())
      names.push_back(name.getName());
    collectNames(name.getChildLoc(), names);
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      collectNames(part, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collectNames(call.getCallee(), names);
  }
}

SmallVector<StringRef> penstock::getAllNames(Location location) {
  SmallVector<StringRef> names;
  collectNames(location, names);
  return names;
}

StringRef penstock::getNodeName(Location location) {
  SmallVector<StringRef> names = getAllNames(location);
  return names.empty() ? StringRef() : names.front();
}
