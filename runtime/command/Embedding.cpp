//===- Embedding.cpp - The C functions around a run -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What abi.h declares under "Embedding", but for penstock_main: an error
// becomes its code, and its sentence is kept for penstock_error.
//===----------------------------------------------------------------------===//

#include "penstock/one_line.h"
#include "penstock/severity.h"
#include "runtime/command/Flags.h"
#include "runtime/command/ProgressLine.h"
#include "runtime/run/Run.h"

using namespace penstock::runtime;

extern "C" {

int penstock_open(const penstock_program *program,
                  const penstock_option *options, penstock_run **run) {
  *run = new penstock_run(*program, std::make_unique<ProgressLine>());
  for (; options && options->name; ++options)
    if (Error error = setOption((*run)->options, options->name, options->value))
      return (*run)->report(std::move(error));
  return (*run)->report((*run)->open());
}

int penstock_train(penstock_run *run, int64_t updates) {
  return run->report(run->train(updates));
}

int penstock_evaluate(penstock_run *run, penstock_results *results) {
  return run->report(run->evaluate(*results));
}

int penstock_infer(penstock_run *run) { return run->report(run->infer()); }

int penstock_save(penstock_run *run, const char *path) {
  return run->report(run->save(path));
}

int penstock_replay(penstock_run *run, int64_t updates) {
  return run->report(run->replay(updates));
}

int penstock_checkpoint(penstock_run *run, const char *folder) {
  return run->report(run->checkpoint(folder ? folder : ""));
}

int penstock_resume(penstock_run *run, const char *folder) {
  return run->report(run->resume(folder));
}

const char *penstock_error(const penstock_run *run) {
  return run->lastError.c_str();
}

void penstock_close(penstock_run *run) {
  if (!run)
    return;
  if (Error error = run->finish())
    std::fprintf(stderr, "penstock: %s%s\n",
                 penstock::getSeverityText(penstock::Severity::Error),
                 penstock::toOneLine(error.text).c_str());
  delete run;
}

} // extern "C"
