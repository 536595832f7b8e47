//===- ShrunkFiles.cpp - Mapped files that become shorter -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A signal handler may take no lock and allocate nothing: it walks a list whose
// entries are never freed, only used again.
//===----------------------------------------------------------------------===//

#include "runtime/io/ShrunkFiles.h"

#include "penstock/one_line.h"
#include "runtime/support/Error.h"

#include <atomic>
#include <csignal>
#include <mutex>
#include <unistd.h>

using namespace penstock::runtime;

namespace {

struct Mapping {
  std::atomic<uintptr_t> begin = 0; // 0: free
  uint64_t bytes = 0;
  std::string line; // for the error
  Mapping *next = nullptr;
};

constinit std::atomic<Mapping *> first = nullptr;
constinit std::mutex changes;
constinit struct sigaction before = {};

void onBusError(int signal, siginfo_t *info, void *) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Mapping *each = first.load(); each; each = each->next) {
    uintptr_t begin = each->begin.load();
    if (begin == 0 || address < begin || address - begin >= each->bytes)
      continue;
    ssize_t written =
        ::write(STDERR_FILENO, each->line.data(), each->line.size());
    (void)written;
    ::_exit(PENSTOCK_USER_ERROR);
  }
  // The access is made again, and the handler before this one gets it; a signal
  // that somebody sent has to be sent again.
  sigaction(signal, &before, nullptr);
  if (info->si_code <= 0)
    std::raise(signal);
}

} // namespace

void penstock::runtime::watchMapping(const void *begin, uint64_t bytes,
                                     const std::string &path) {
  std::lock_guard<std::mutex> lock(changes);
  if (!first.load()) {
    struct sigaction action = {};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, &before);
  }
  Mapping *entry = first.load();
  while (entry && entry->begin.load())
    entry = entry->next;
  bool isNew = !entry;
  if (isNew)
    entry = new Mapping;
  entry->bytes = bytes;
  entry->line = "error: '" + penstock::toOneLine(path) +
                "' became shorter, or could not be read, while it was in use\n";
  entry->begin.store(reinterpret_cast<uintptr_t>(begin));
  if (isNew) {
    entry->next = first.load();
    first.store(entry);
  }
}

void penstock::runtime::forgetMapping(const void *begin) {
  std::lock_guard<std::mutex> lock(changes);
  for (Mapping *each = first.load(); each; each = each->next)
    if (each->begin.load() == reinterpret_cast<uintptr_t>(begin))
      each->begin.store(0);
}
