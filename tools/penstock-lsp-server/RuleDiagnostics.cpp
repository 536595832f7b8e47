//===- RuleDiagnostics.cpp - Rules that need more than one op -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See RuleDiagnostics.h.
//===----------------------------------------------------------------------===//

#include "RuleDiagnostics.h"
#include "passes/Program/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Verify/Passes.h"
#include "penstock/Levels/Level.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace penstock;
namespace json = llvm::json;

namespace {
/// A part of a file, and the number of its first line in the whole.
class Part {
public:
  Part(StringRef text, unsigned firstLine, StringRef uri)
      : firstLine(firstLine), uri(uri) {
    text.split(lines, '\n');
  }

  json::Object describe(Diagnostic &diagnostic) const;

private:
  json::Object getRange(Location location) const;

  unsigned firstLine;
  StringRef uri;
  SmallVector<StringRef> lines;
};
} // namespace

/// The word at a place; at the beginning, where a location names none.
json::Object Part::getRange(Location location) const {
  unsigned line = 0, begin = 0;
  if (auto place = location->findInstanceOf<FileLineColLoc>()) {
    line = std::max(place.getLine(), 1u) - 1;
    begin = std::max(place.getColumn(), 1u) - 1;
  }
  StringRef word =
      line < lines.size()
          ? lines[line].drop_front(std::min(size_t(begin), lines[line].size()))
          : "";
  size_t length = word.take_while([](char c) {
                        return llvm::isAlnum(c) || c == '_' || c == '.';
                      })
                      .size();
  auto makePosition = [&](size_t character) {
    return json::Object{{"line", int64_t(firstLine + line)},
                        {"character", int64_t(character)}};
  };
  return json::Object{
      {"start", makePosition(begin)},
      {"end", makePosition(begin + std::max<size_t>(length, 1))}};
}

json::Object Part::describe(Diagnostic &diagnostic) const {
  // Severities of the protocol: 1 error, 2 warning, 3 information.
  DiagnosticSeverity severity = diagnostic.getSeverity();
  int64_t number = severity == DiagnosticSeverity::Error     ? 1
                   : severity == DiagnosticSeverity::Warning ? 2
                                                             : 3;
  json::Array related;
  for (Diagnostic &note : diagnostic.getNotes())
    related.push_back(json::Object{
        {"location",
         json::Object{{"uri", uri}, {"range", getRange(note.getLocation())}}},
        {"message", note.str()}});
  json::Object result{{"range", getRange(diagnostic.getLocation())},
                      {"severity", number},
                      {"source", "penstock"},
                      {"message", diagnostic.str()}};
  if (!related.empty())
    result["relatedInformation"] = std::move(related);
  return result;
}

static void checkPart(StringRef text, const Part &part,
                      const DialectRegistry &registry, json::Array &found) {
  // 1. What can be parsed. Its server speaks of the rest.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  bool isParsing = true;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (!isParsing && diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      found.push_back(part.describe(diagnostic));
    return success();
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return;

  // 2. The rules of its level. Other files than ours have no level.
  isParsing = false;
  bool isOurs = false;
  module->walk([&](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    isOurs |= dialect == "pipeline" || dialect == "onnx";
  });
  if (!isOurs)
    return;
  Level level = detectLevel(*module);
  if (level == Level::Llvm)
    return;
  PassManager manager(&context);
  manager.addPass(createPipelineVerify());
  if (level == Level::Schedule)
    manager.addPass(createPipelineVerifySchedule());
  if (level == Level::Program)
    manager.addPass(createPipelineVerifyProgram());
  (void)manager.run(*module);
}

json::Array penstock::findBrokenRules(StringRef text, StringRef uri,
                                      const DialectRegistry &registry) {
  constexpr StringLiteral kDivider("// -----");
  json::Array found;
  unsigned line = 0;
  while (true) {
    size_t at = text.find(kDivider);
    StringRef part = text.take_front(at);
    checkPart(part, Part(part, line, uri), registry, found);
    if (at == StringRef::npos)
      return found;
    line += part.count('\n');
    text = text.drop_front(at);
    // The rest of the line belongs to no part.
    size_t end = text.find('\n');
    text = text.drop_front(std::min(end, text.size()));
  }
}
