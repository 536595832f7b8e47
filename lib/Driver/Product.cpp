//===- Product.cpp - What the compiler leaves behind --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule as a table, the report, and the program itself: printed, as an
// object file, or linked with the runtime.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "passes/Runtime/FileTable.h"
#include "passes/Runtime/Passes.h"
#include "passes/Schedule/Passes.h"
#include "penstock/Driver/Registration.h"
#include "penstock/Driver/Schedules.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/Target/Link.h"
#include "penstock/Target/ObjectFile.h"
#include "penstock/Target/Target.h"
#include "penstock/embedded.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cstdlib>

using namespace mlir;
using namespace penstock;

/// The training schedule as a table.
int Compilation::writeSchedule() {
  if (options.emitSchedule.empty())
    return kDone;
  OutputFile file(options.emitSchedule);
  if (!writeScheduleTable(*module, options.emitTransfers, file.stream()))
    return fail("--emit-schedule=" + options.emitSchedule +
                ": there is no training schedule at this level");
  return file.commit(log) ? kDone : kUserError;
}

int Compilation::writeReports() {
  if (options.report) {
    report.print(llvm::outs());
    if (!flushOutput("penstockc", log))
      return kUserError;
  }
  if (options.reportJson.empty())
    return kDone;
  OutputFile file(options.reportJson);
  file.stream() << llvm::formatv("{0:2}", report.toJson()) << "\n";
  return file.commit(log) ? kDone : kUserError;
}

/// A library of the runtime, beside the compiler: in an installation, or in a
/// build. Empty when it is not there.
static std::string findRuntimeLibrary(StringRef name) {
  std::string self = llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&findRuntimeLibrary));
  StringRef folder = llvm::sys::path::parent_path(self);
  for (StringRef place : {"../lib", "../runtime"}) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, place, name);
    llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
    if (llvm::sys::fs::exists(path))
      return path.str().str();
  }
  return "";
}

/// The targets of the program's devices, those of a program without devices
/// (which is LLVM IR already) as the command line says. Devices of one kind
/// have one processor: their code is in one object.
FailureOr<llvm::SetVector<Attribute>> Compilation::collectTargets() {
  llvm::SetVector<Attribute> targets;
  for (auto device : module->getOps<pipeline::DeviceOp>())
    targets.insert(device.getTarget());
  if (targets.empty())
    targets.insert_range(getTargets(&context, options));
  llvm::SmallDenseMap<Dialect *, std::string> processors;
  for (Attribute target : targets) {
    FailureOr<DeviceDescription> device = Target::get(target)->describe(
        cast<TargetAttrInterface>(target), module->getLoc());
    if (failed(device))
      return failure();
    auto [known, isNew] =
        processors.try_emplace(&target.getDialect(), device->processor);
    if (!isNew && known->second != device->processor)
      return module->emitError("devices of one kind have one processor, not ")
             << known->second << " and " << device->processor;
  }
  return targets;
}

bool Compilation::lowerToLlvm(ArrayRef<Attribute> targets) {
  bool isConverted = runPasses([&](OpPassManager &manager) {
    manager.addPass(createPipelineDeclareDevices({getTargetText()}));
    LowerProgramToLlvmOptions lowering;
    lowering.plan = llvm::formatv("{0}", report.toJson()).str();
    // The passes of other kinds would find nothing to do.
    for (Attribute target : targets)
      lowering.kinds.push_back(target.getDialect().getNamespace().str());
    buildLowerProgramToRuntimePipeline(manager, lowering);
  });
  if (!isConverted)
    return false;
  // The tables of the program are LLVM already, and more than half of all ops.
  // So they stand aside while each conversion goes through the module.
  OwningOpRef<ModuleOp> tables = ModuleOp::create(module->getLoc());
  for (auto global :
       llvm::make_early_inc_range(module->getOps<LLVM::GlobalOp>()))
    if (global.getInitializerBlock())
      global->moveBefore(tables->getBody(), tables->getBody()->end());
  if (!runPasses(buildConvertToLlvmPipeline))
    return false;
  module->getBody()->getOperations().splice(module->getBody()->end(),
                                            tables->getBody()->getOperations());
  return succeeded(verify(*module));
}

/// Machine code of the host, with what it launches.
int Compilation::writeObject(ArrayRef<Attribute> targets,
                             llvm::raw_pwrite_stream &stream) {
  TargetOptions object;
  object.march = "";
  for (Attribute attribute : targets)
    if (object.march.empty())
      object.march = Target::get(attribute)->getHostProcessor(
          cast<TargetAttrInterface>(attribute));
  Toolkit toolkit{options.cudaPath, options.ptxas};
  // What is wrong with the code of another processor is for the user to mend.
  bool isFailed = false;
  object.addCode = [&](llvm::Module &host) {
    llvm::SmallPtrSet<Dialect *, 2> kinds;
    for (Attribute attribute : targets)
      if (kinds.insert(&attribute.getDialect()).second &&
          failed(Target::get(attribute)->addKernelCode(
              cast<TargetAttrInterface>(attribute), *module, toolkit, host))) {
        isFailed = true;
        return failure();
      }
    // The level llvm does not say which devices it is for.
    llvm::GlobalVariable *code = host.getGlobalVariable(kDeviceCodeSymbol);
    if (!code || !code->isDeclaration())
      return success();
    module->emitError("the program launches kernels of a GPU; compile it with "
                      "--target=cuda");
    isFailed = true;
    return failure();
  };
  if (succeeded(emitObject(*module, object, stream)))
    return kDone;
  return isFailed ? kUserError : kDefect;
}

int Compilation::writeKernelCode(ArrayRef<Attribute> targets) {
  Toolkit toolkit{options.cudaPath, options.ptxas};
  llvm::SmallPtrSet<Dialect *, 2> kinds;
  for (Attribute attribute : targets)
    if (kinds.insert(&attribute.getDialect()).second &&
        failed(Target::get(attribute)->printKernelCode(
            cast<TargetAttrInterface>(attribute), *module, toolkit,
            output->stream())))
      return kUserError;
  return output->commit(log) ? kDone : kUserError;
}

int Compilation::writeProduct() {
  if (options.product == Product::Ir && options.level != Level::Llvm) {
    // Locations name ONNX nodes: what comes until the stages are cut needs
    // them.
    OpPrintingFlags flags;
    if (level <= Level::Stages)
      flags.enableDebugInfo();
    else
      flags.printNameLocAsPrefix();
    module->print(output->stream(), flags);
    return output->commit(log) ? kDone : kUserError;
  }

  FailureOr<llvm::SetVector<Attribute>> targets = collectTargets();
  if (failed(targets))
    return kUserError;
  std::vector<std::string> embedded;
  if (options.embedWeights)
    for (StringRef file : FileTable::findNames(*module))
      embedded.push_back(file.str());
  if (level == Level::Program) {
    if (!lowerToLlvm(targets->getArrayRef()))
      return isModel ? kDefect : kUserError;
    level = Level::Llvm;
  }

  if (options.product == Product::Ir) {
    OpPrintingFlags flags;
    module->print(output->stream(), flags);
    return output->commit(log) ? kDone : kUserError;
  }
  // Machine code has no place for it.
  if (pipeline::TrainingOp training = pipeline::getTraining(*module))
    training.erase();
  if (options.product == Product::KernelCode)
    return writeKernelCode(targets->getArrayRef());
  if (options.product == Product::Object) {
    if (int code = writeObject(targets->getArrayRef(), output->stream()))
      return code;
    return output->commit(log) ? kDone : kUserError;
  }

  return writeExecutable(targets->getArrayRef(), embedded);
}

/// Appends files, as penstock/embedded.h says.
static std::error_code embedFiles(ArrayRef<std::string> files,
                                  StringRef executable) {
  uint64_t offset = 0;
  std::error_code error;
  if ((error = llvm::sys::fs::file_size(executable, offset)))
    return error;
  llvm::raw_fd_ostream stream(executable, error, llvm::sys::fs::CD_OpenExisting,
                              llvm::sys::fs::FA_Write,
                              llvm::sys::fs::OF_Append);
  if (error)
    return error;
  std::vector<penstock_embedded_file> entries;
  auto align = [&] {
    uint64_t next = llvm::alignTo(offset, PENSTOCK_EMBEDDED_ALIGNMENT);
    stream.write_zeros(next - offset);
    offset = next;
  };
  for (const std::string &file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    if (!buffer)
      return buffer.getError();
    align();
    stream << (*buffer)->getBuffer();
    entries.push_back({offset, (*buffer)->getBufferSize()});
    offset += (*buffer)->getBufferSize();
  }
  align();
  penstock_embedded_footer footer = {offset, entries.size(), {}};
  llvm::copy(StringRef(PENSTOCK_EMBEDDED_MAGIC), footer.magic);
  stream.write(reinterpret_cast<const char *>(entries.data()),
               entries.size() * sizeof(entries.front()));
  stream.write(reinterpret_cast<const char *>(&footer), sizeof(footer));
  stream.close();
  error = stream.error();
  stream.clear_error();
  return error;
}

/// Links the program with the runtime.
int Compilation::writeExecutable(ArrayRef<Attribute> targets,
                                 ArrayRef<std::string> embedded) {
  std::string start = findRuntimeLibrary("libpenstock_start.a");
  std::string runtime = findRuntimeLibrary("libpenstock_runtime.a");
  std::vector<std::string> ofTargets;
  llvm::SetVector<Dialect *> kinds;
  for (Attribute target : targets)
    if (kinds.insert(&target.getDialect()))
      llvm::append_range(ofTargets, Target::get(target)->getLinkLibraries(
                                        cast<TargetAttrInterface>(target)));
  std::vector<std::string> libraries = {start}, flags;
  bool isComplete = !start.empty() && !runtime.empty();
  for (const std::string &library : ofTargets) {
    if (!StringRef(library).starts_with("libpenstock_")) {
      flags.push_back(library);
      continue;
    }
    // The kind of the devices comes out of its library where its symbol is
    // asked for: penstock_NAME of libpenstock_NAME.a. Tests put another one
    // before it.
    std::string own = findRuntimeLibrary(library), kind = own;
    if (const char *other = std::getenv("PENSTOCK_DEVICE_LIBRARY"))
      kind = other;
    StringRef symbol = llvm::sys::path::stem(kind);
    symbol.consume_front("lib");
    libraries.insert(libraries.end(), {("-Wl,-u," + symbol).str(), kind, own});
    isComplete &= !own.empty();
  }
  if (!isComplete)
    return fail(
        "cannot find libpenstock_runtime.a beside the compiler; install "
        "Penstock with cmake --install");
  libraries.insert(libraries.end(), {runtime, "-ldl"});
  llvm::append_range(libraries, flags);
  llvm::append_range(libraries, ArrayRef<const char *>{"-lpthread", "-lm"});
  // What else a program needs of the system, docs/deploying.md lists.
  if (options.linksStatically)
    libraries.insert(libraries.end(), {"-static-libstdc++", "-static-libgcc"});
  OutputFile object((output->temporaryPath() + ".o").str());
  if (int code = writeObject(targets, object.stream()))
    return code;
  object.flush();
  if (!object.check(log))
    return kUserError;
  // Where the program looks for what it loads of MPI.
  llvm::SmallString<256> plugIns(llvm::sys::path::parent_path(runtime));
  llvm::sys::path::append(plugIns, "penstock");
  libraries.push_back(("-Wl,--enable-new-dtags,-rpath," + plugIns).str());
  // A runtime that was built with sanitizers needs theirs.
  if (StringRef sanitize = PENSTOCK_SANITIZE; !sanitize.empty())
    libraries.push_back(("-fsanitize=" + sanitize).str());
  if (failed(linkExecutable({object.temporaryPath().str()},
                            output->temporaryPath(), libraries,
                            module->getLoc())))
    return kUserError;
  if (!embedded.empty())
    if (std::error_code error = embedFiles(embedded, output->temporaryPath()))
      return fail("--embed-weights: " + error.message());
  return output->commit(log) ? kDone : kUserError;
}
