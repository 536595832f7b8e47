//===- ProfileCache.h - What was measured before ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A JSON file per machine below $XDG_CACHE_HOME/penstock, or ~/.cache/penstock.
// Losing it costs a measurement, so whatever goes wrong with it is ignored.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_PROFILECACHE_H
#define PENSTOCK_LIB_DRIVER_PROFILECACHE_H

#include "penstock/Driver/Options.h"
#include "penstock/Partition/Units.h"

#include <map>

namespace penstock {

class ProfileCache {
public:
  ProfileCache();

  /// Returns a key of all that the cost of a unit depends on: its ops, their
  /// types and attributes, and how they are compiled.
  static std::string getKey(const Unit &unit, const CompileOptions &options);
  /// Returns the key of a program's stages, on so many devices at a time in the
  /// order of a schedule.
  static std::string getKey(mlir::ModuleOp program,
                            const CompileOptions &options, int64_t devices,
                            llvm::StringRef schedule);

  std::optional<UnitSeconds> find(llvm::StringRef key) const;
  void insert(llvm::StringRef key, UnitSeconds seconds);
  void save() const;

private:
  std::string path; ///< Empty when there is no place for it.
  std::map<std::string, UnitSeconds> entries;
};

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PROFILECACHE_H
