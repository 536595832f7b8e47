//===- ProgramFlags.cpp - The command line that makes a plan --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ProgramFlags.h.
//===----------------------------------------------------------------------===//

#include "ProgramFlags.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace llvm;
using namespace penstock;

std::vector<std::string> penstock::getFlags(const CompileOptions &program,
                                            const StagePlan &plan,
                                            const LayerGraph &graph) {
  std::vector<std::string> flags{program.input};
  auto add = [&](StringRef name, const Twine &value) {
    flags.push_back(("--" + name + "=" + value).str());
  };
  for (const auto &[name, size] : program.dims)
    add("dim", name + "=" + Twine(size));
  if (program.microbatchSize)
    add("microbatch-size", Twine(*program.microbatchSize));
  add("microbatches", Twine(program.microbatches));
  add("loss", program.loss);
  add("optimizer", program.optimizer.getText());
  add("method", program.method.getText());
  if (program.recompute != "none")
    add("recompute", program.recompute);
  // Weights in the library's order are what a device has room for besides.
  add("prepack", "none");
  std::vector<std::string> cuts;
  for (int64_t cut : plan.cuts) {
    cuts.push_back(graph.layers[cut - 1].name);
    if (StringRef(cuts.back()).contains(','))
      return {};
  }
  if (cuts.empty())
    add("stages", "1");
  else
    add("split-at", join(cuts, ","));
  add("devices", Twine(std::accumulate(plan.replicas.begin(),
                                       plan.replicas.end(), int64_t(0))));
  add("replicas",
      join(map_range(plan.replicas,
                     [](int64_t width) { return std::to_string(width); }),
           ","));
  return flags;
}
