//===- penstock-lsp-server.cpp - Editor support for .mlir files -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The language server of MLIR with the dialects of Penstock, and with the rules
// that its verifier passes check.
//===----------------------------------------------------------------------===//

#include "Relay.h"
#include "penstock/Driver/Registration.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/ADT/ArrayRef.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace penstock;

static int serve(int argc, char **argv, mlir::DialectRegistry &registry) {
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}

/// Runs MLIR's server as a process between two pipes. Returns its exit status,
/// or nothing where there can be none.
static std::optional<int> relay(int argc, char **argv,
                                mlir::DialectRegistry &registry) {
  int requests[2], replies[2];
  if (pipe(requests) != 0)
    return std::nullopt;
  if (pipe(replies) != 0) {
    close(requests[0]);
    close(requests[1]);
    return std::nullopt;
  }
  pid_t server = fork();
  if (server == 0) {
    dup2(requests[0], STDIN_FILENO);
    dup2(replies[1], STDOUT_FILENO);
    for (int end : {requests[0], requests[1], replies[0], replies[1]})
      close(end);
    std::exit(serve(argc, argv, registry));
  }
  close(requests[0]);
  close(replies[1]);
  if (server < 0) {
    close(requests[1]);
    close(replies[0]);
    return std::nullopt;
  }
  std::signal(SIGPIPE, SIG_IGN);
  Relay(registry).run(stdin, stdout, fdopen(requests[1], "w"),
                      fdopen(replies[0], "r"));
  int status = 0;
  waitpid(server, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registerDialects(registry);
  // Other forms of messages, for tests of the server itself, and texts for
  // people are passed through.
  bool isServing = llvm::all_of(
      llvm::ArrayRef(argv, argc).drop_front(), [](const char *arg) {
        return llvm::StringRef(arg).ltrim('-').starts_with("log");
      });
  if (isServing)
    if (std::optional<int> status = relay(argc, argv, registry))
      // The thread that waits for the editor ends with the process.
      _exit(*status);
  return serve(argc, argv, registry);
}
