//===- penstock-translate.cpp - ONNX to a module --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Imports a model and prints it at level `onnx`, in one of three states: as
// imported, with its shapes, or with its loss. Or lists the operators that it
// can import.
//===----------------------------------------------------------------------===//

#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Frontend/Passes.h"
#include "penstock/Import/Import.h"
#include "penstock/Import/OperatorRegistry.h"
#include "penstock/Support/CommandLine.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace penstock;
using namespace penstock::onnx;

// What docs/operators.md holds: written from the table that the importer uses,
// so that it cannot promise what the importer does not know.

using Entries = llvm::ArrayRef<Operator>;

/// The since-versions for which `holds`, or "" when there are none.
static std::string versions(Entries entries,
                            llvm::function_ref<bool(const Operator &)> holds) {
  std::string text;
  for (const Operator &entry : entries)
    if (holds(entry))
      text += (text.empty() ? "" : ", ") + std::to_string(entry.since);
  return text;
}

/// "yes", "no", or the since-versions that have the property.
static std::string answer(Entries entries,
                          llvm::function_ref<bool(const Operator &)> holds) {
  if (llvm::all_of(entries, holds))
    return "yes";
  std::string some = versions(entries, holds);
  return some.empty() ? "no" : "since " + some;
}

static void listOne(Entries entries, llvm::raw_ostream &stream) {
  stream << "| " << entries.front().type << " | "
         << versions(entries, [](const Operator &) { return true; }) << " | "
         << answer(entries, [](const Operator &entry) { return !!entry.lower; })
         << " | "
         << answer(entries, [](const Operator &entry) { return !!entry.fold; })
         << " | "
         << answer(entries,
                   [](const Operator &entry) {
                     return entry.lower &&
                            entry.derivative == Operator::Differentiable;
                   })
         << " |\n";
}

static void listOperators(llvm::raw_ostream &stream) {
  Entries table = getOperators();
  std::optional<llvm::StringRef> domain;
  while (!table.empty()) {
    const Operator &first = table.front();
    if (domain != first.domain) {
      domain = first.domain;
      stream << "\n## Domain `"
             << (domain->empty() ? llvm::StringRef("ai.onnx") : *domain)
             << "`\n\n| operator | since-versions | runs | folds | gradient "
                "|\n|---|---|---|---|---|\n";
    }
    size_t count = llvm::count_if(table, [&](const Operator &entry) {
      return entry.domain == first.domain && entry.type == first.type;
    });
    listOne(table.take_front(count), stream);
    table = table.drop_front(count);
  }
}

namespace cl = llvm::cl;

static cl::OptionCategory category("penstock-translate options");

static cl::opt<std::string> model("import-onnx", cl::value_desc("FILE"),
                                  cl::desc("The model, .onnx or .onnxtext"),
                                  cl::cat(category));
static cl::opt<bool>
    operators("list-operators",
              cl::desc("Print the table of operators as Markdown, and end"),
              cl::cat(category));
static cl::opt<std::string> output("o", cl::init("-"), cl::value_desc("FILE"),
                                   cl::desc("Where the module is printed"),
                                   cl::cat(category));
static cl::list<std::string>
    dims("dim", cl::value_desc("NAME=N"),
         cl::desc("Bind an open dimension (NAME, or INPUT:AXIS)"),
         cl::cat(category));
static cl::opt<int64_t> microbatchSize("microbatch-size", cl::init(0),
                                       cl::desc("Bind the batch dimension"),
                                       cl::cat(category));
static cl::opt<std::string> binaryCopy(
    "binary-copy", cl::value_desc("FILE"),
    cl::desc("Binary copy of a textual model (default: beside the output)"),
    cl::cat(category));
static cl::opt<std::string> train("train", cl::value_desc("REGEX"),
                                  cl::desc("Initializers that train"),
                                  cl::cat(category));
static cl::opt<std::string> freeze("freeze", cl::value_desc("REGEX"),
                                   cl::desc("Initializers that do not train"),
                                   cl::cat(category));
static cl::opt<bool> raw("raw", cl::desc("Do not resolve shapes"),
                         cl::cat(category));
static cl::opt<std::string>
    loss("loss", cl::desc("Attach a loss: softmax-cross-entropy, mse, output"),
         cl::cat(category));
static cl::opt<std::string> lossInput("loss-input", cl::value_desc("NAME"),
                                      cl::desc("The output that enters it"),
                                      cl::cat(category));
static cl::opt<int64_t> classAxis("class-axis", cl::init(-1),
                                  cl::desc("Axis of the classes"),
                                  cl::cat(category));
static cl::opt<std::string> ignoreLabel("ignore-label", cl::value_desc("N"),
                                        cl::desc("Label left out"),
                                        cl::cat(category));
static cl::opt<bool> locations("print-locations",
                               cl::desc("Print the names of nodes"),
                               cl::cat(category));

static bool fail(const llvm::Twine &message) {
  penstock::reportError("penstock-translate", message, llvm::errs());
  return false;
}

static bool readOptions(penstock::ImportOptions &options) {
  for (llvm::StringRef text : dims) {
    auto [name, number] = text.rsplit('=');
    int64_t size;
    if (name.empty() || number.getAsInteger(10, size))
      return fail("--dim " + text + " is not of the form NAME=N");
    if (!options.dims.try_emplace(name.str(), size).second)
      return fail("--dim " + name + " is given twice");
  }
  if (microbatchSize.getNumOccurrences())
    options.microbatchSize = microbatchSize;
  options.trainRegex = train;
  options.freezeRegex = freeze;
  options.onlyLossOutput = loss.getNumOccurrences() > 0;
  options.lossInput = lossInput;
  options.binaryCopy = binaryCopy;
  if (options.binaryCopy.empty() && output != "-")
    options.binaryCopy = output + ".onnx";
  return true;
}

static bool complete(mlir::ModuleOp module) {
  mlir::PassManager manager(module.getContext());
  if (loss.getNumOccurrences()) {
    penstock::LowerOnnxToGraphOptions options;
    options.loss = loss;
    options.lossInput = lossInput;
    options.classAxis = classAxis;
    options.ignoreLabel = ignoreLabel;
    penstock::buildCompleteOnnxPipeline(manager, options);
  } else if (!raw) {
    manager.addPass(penstock::createOnnxResolveShapes());
  }
  return mlir::succeeded(manager.run(module));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  penstock::respectNoColor();
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Imports ONNX models\n");
  if (operators) {
    listOperators(llvm::outs());
    return 0;
  }
  if (model.empty()) {
    fail("no model given: --import-onnx=FILE");
    return 1;
  }

  penstock::ImportOptions options;
  if (!readOptions(options))
    return 1;
  mlir::DialectRegistry registry;
  registry.insert<penstock::onnx::OnnxDialect,
                  penstock::pipeline::PipelineDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  penstock::ModelDiagnosticHandler handler(&context, model);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      penstock::importModel(&context, model, options);
  if (!module || !complete(*module))
    return 1;

  std::string problem;
  std::unique_ptr<llvm::ToolOutputFile> file =
      mlir::openOutputFile(output, &problem);
  if (!file) {
    fail(problem);
    return 1;
  }
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(locations);
  module->print(file->os(), flags);
  file->os() << "\n";
  file->keep();
  return 0;
}
