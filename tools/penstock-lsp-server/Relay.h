//===- Relay.h - Between an editor and MLIR's server ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MLIR's server runs as a process of its own. All messages pass through here,
// in both directions; to the diagnostics that it publishes, those of the rules
// are added.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_LSPSERVER_RELAY_H
#define PENSTOCK_TOOLS_LSPSERVER_RELAY_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

namespace penstock {

class Relay {
public:
  explicit Relay(const mlir::DialectRegistry &registry) : registry(registry) {}

  /// Passes messages on until the server ends its output.
  void run(std::FILE *editorInput, std::FILE *editorOutput,
           std::FILE *serverInput, std::FILE *serverOutput);

private:
  struct File {
    std::string text;
    int64_t version = 0;
  };

  /// Keeps the text of files up to date.
  void readRequest(const llvm::json::Object &message);
  /// Returns what replaces a message of the server, if something does.
  std::optional<std::string> changeReply(llvm::json::Object message);

  const mlir::DialectRegistry &registry;
  std::mutex mutex;
  llvm::StringMap<File> files; ///< by URI
};

} // namespace penstock

#endif // PENSTOCK_TOOLS_LSPSERVER_RELAY_H
