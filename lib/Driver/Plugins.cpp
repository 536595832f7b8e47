//===- Plugins.cpp - Passes, schedules and methods of others --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plug-in is one of MLIR's, as for mlir-opt: its callback registers passes,
// and here rows of the tables of schedules, methods, operators and targets as
// well.
//===----------------------------------------------------------------------===//

#include "Plugins.h"

#include "penstock/Driver/Registration.h"
#include "penstock/Import/OperatorRegistry.h"
#include "penstock/Methods/MethodSpec.h"
#include "penstock/Schedule/Generators.h"
#include "penstock/Support/CommandLine.h"

#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;
using namespace penstock;

/// A name that stands twice in a table, whose second row is never found.
static std::string findTwice(ArrayRef<std::string> names) {
  StringSet<> seen;
  for (const std::string &name : names)
    if (!seen.insert(StringRef(name).split(':').first).second)
      return StringRef(name).split(':').first.str();
  return "";
}

bool penstock::loadPlugins(ArrayRef<std::string> files, raw_ostream &errors) {
  for (const std::string &file : files) {
    auto fail = [&](const Twine &problem) {
      reportError("penstockc", "--load-pass-plugin=" + file + ": " + problem,
                  errors);
      return false;
    };
    // A name without a folder is a file here, not one of the system's
    // libraries.
    SmallString<128> path(file);
    if (std::error_code code = sys::fs::make_absolute(path))
      return fail(code.message());
    Expected<mlir::PassPlugin> plugin =
        mlir::PassPlugin::load(path.str().str());
    if (!plugin)
      return fail(toString(plugin.takeError()) +
                  "; build it against this installation of Penstock");
    plugin->registerPassRegistryCallbacks();
    std::vector<std::string> operators;
    for (const onnx::Operator &each : onnx::getOperators())
      operators.push_back((each.domain + (each.domain.empty() ? "" : ".") +
                           each.type + " " + Twine(each.since))
                              .str());
    for (auto [table, names] :
         {std::pair("schedule", schedule::scheduleNames()),
          std::pair("method", getMethodNames()),
          std::pair("target", getTargetNames()),
          std::pair("operator", operators)})
      if (std::string name = findTwice(names); !name.empty())
        return fail("it brings a " + Twine(table) + " '" + name +
                    "', and there is one of that name; rename it");
  }
  return true;
}
