//===- Relay.cpp - Between an editor and MLIR's server --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Relay.h.
//===----------------------------------------------------------------------===//

#include "Relay.h"
#include "passes/Program/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Verify/Passes.h"
#include "penstock/Levels/Level.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <thread>

using namespace penstock;
using namespace mlir;

// MLIR's server parses and verifies ops; the rules C and S of docs/ir.md are
// passes, of which it knows nothing.

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

/// Returns the diagnostics of the language server protocol for the rules that a
/// file breaks, by the parts that `// -----` divides it into. A part that MLIR
/// cannot parse has none: its server says why.
static json::Array findBrokenRules(StringRef text, StringRef uri,
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

namespace json = llvm::json;

/// Reads the body of a message; nothing where the stream ends.
static std::optional<std::string> readMessage(std::FILE *stream) {
  size_t length = 0;
  std::string line;
  while (true) {
    int c = std::fgetc(stream);
    if (c == EOF)
      return std::nullopt;
    if (c != '\n') {
      line += char(c);
      continue;
    }
    llvm::StringRef header = llvm::StringRef(line).rtrim();
    if (header.empty() && length > 0)
      break;
    if (header.consume_front_insensitive("content-length:"))
      (void)header.trim().getAsInteger(10, length);
    line.clear();
  }
  std::string body(length, '\0');
  if (std::fread(body.data(), 1, length, stream) != length)
    return std::nullopt;
  return body;
}

static void writeMessage(std::FILE *stream, llvm::StringRef body) {
  std::fprintf(stream, "Content-Length: %zu\r\n\r\n", body.size());
  std::fwrite(body.data(), 1, body.size(), stream);
  std::fflush(stream);
}

/// The parameters of a message with that method.
static const json::Object *getParameters(const json::Object &message,
                                         llvm::StringRef method) {
  return message.getString("method") == method ? message.getObject("params")
                                               : nullptr;
}

void Relay::readRequest(const json::Object &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (const json::Object *opened =
          getParameters(message, "textDocument/didOpen")) {
    const json::Object *document = opened->getObject("textDocument");
    if (!document)
      return;
    File &file = files[document->getString("uri").value_or("")];
    file.text = document->getString("text").value_or("").str();
    file.version = document->getInteger("version").value_or(0);
  } else if (const json::Object *changed =
                 getParameters(message, "textDocument/didChange")) {
    const json::Object *document = changed->getObject("textDocument");
    const json::Array *changes = changed->getArray("contentChanges");
    auto found = document ? files.find(document->getString("uri").value_or(""))
                          : files.end();
    if (!changes || found == files.end())
      return;
    File &file = found->second;
    file.version = document->getInteger("version").value_or(file.version + 1);
    for (const json::Value &value : *changes) {
      llvm::lsp::TextDocumentContentChangeEvent change;
      json::Path::Root root;
      // A text that is not followed any more is not checked any more.
      if (!fromJSON(value, change, root) || failed(change.applyTo(file.text))) {
        files.erase(found);
        return;
      }
    }
  } else if (const json::Object *closed =
                 getParameters(message, "textDocument/didClose")) {
    if (const json::Object *document = closed->getObject("textDocument"))
      files.erase(document->getString("uri").value_or(""));
  }
}

std::optional<std::string> Relay::changeReply(json::Object message) {
  // 1. Diagnostics of a text that is still the newest.
  if (!getParameters(message, "textDocument/publishDiagnostics"))
    return std::nullopt;
  json::Object *published = message.getObject("params");
  std::string uri = published->getString("uri").value_or("").str(), text;
  json::Array *diagnostics = published->getArray("diagnostics");
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = files.find(uri);
    if (!diagnostics || found == files.end() ||
        published->getInteger("version").value_or(found->second.version) !=
            found->second.version)
      return std::nullopt;
    text = found->second.text;
  }

  // 2. With those of the rules.
  json::Array broken = findBrokenRules(text, uri, registry);
  if (broken.empty())
    return std::nullopt;
  for (json::Value &diagnostic : broken)
    diagnostics->push_back(std::move(diagnostic));
  std::string body;
  llvm::raw_string_ostream(body) << json::Value(std::move(message));
  return body;
}

void Relay::run(std::FILE *editorInput, std::FILE *editorOutput,
                std::FILE *serverInput, std::FILE *serverOutput) {
  std::thread requests([&] {
    while (std::optional<std::string> body = readMessage(editorInput)) {
      if (llvm::Expected<json::Value> message = json::parse(*body)) {
        if (const json::Object *object = message->getAsObject())
          readRequest(*object);
      } else {
        llvm::consumeError(message.takeError());
      }
      writeMessage(serverInput, *body);
    }
    std::fclose(serverInput);
  });
  // An editor that is silent when the server has ended is not waited for.
  requests.detach();
  while (std::optional<std::string> body = readMessage(serverOutput)) {
    if (llvm::Expected<json::Value> message = json::parse(*body)) {
      if (json::Object *object = message->getAsObject())
        if (std::optional<std::string> changed =
                changeReply(std::move(*object)))
          body = std::move(changed);
    } else {
      llvm::consumeError(message.takeError());
    }
    writeMessage(editorOutput, *body);
  }
}
