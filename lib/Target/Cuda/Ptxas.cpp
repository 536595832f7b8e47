//===- Ptxas.cpp - PTX to machine code ------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The assembler of an installed toolkit, where there is one. Without it the
// driver compiles the PTX when the program opens.
//===----------------------------------------------------------------------===//

#include "KernelModule.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace penstock;

static std::string findAssembler(const Toolkit &toolkit) {
  if (toolkit.assembler == "none")
    return "";
  if (!toolkit.assembler.empty())
    return toolkit.assembler;
  llvm::SmallString<256> path(toolkit.path);
  llvm::sys::path::append(path, "bin", "ptxas");
  if (llvm::sys::fs::can_execute(path))
    return path.str().str();
  auto found = llvm::sys::findProgramByName("ptxas");
  return found ? *found : "";
}

FailureOr<std::string> cuda::assemble(StringRef ptx, const GpuArch &arch,
                                      const Toolkit &toolkit, Location loc) {
  std::string assembler = findAssembler(toolkit);
  if (assembler.empty())
    return std::string();
  llvm::SmallString<128> source, binary, log;
  auto create = [](StringRef suffix, llvm::SmallString<128> &path) {
    return llvm::sys::fs::createTemporaryFile("penstock", suffix, path);
  };
  if (create("ptx", source) || create("cubin", binary) || create("log", log))
    return emitError(loc) << "cannot write temporary files for ptxas";
  llvm::FileRemover removeSource(source), removeBinary(binary), removeLog(log);
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(source, error);
    stream << ptx;
    stream.close();
    if (error || stream.has_error()) {
      stream.clear_error();
      return emitError(loc) << "cannot write " << source.str();
    }
  }
  std::string option = ("-arch=" + arch.name).str();
  StringRef arguments[] = {assembler, "-O3",  option, "-fmad=false",
                           "-o",      binary, source};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(assembler, arguments, std::nullopt,
                                         redirects, 0, 0, &message);
  if (status != 0) {
    if (auto text = llvm::MemoryBuffer::getFile(log);
        text && !(*text)->getBuffer().empty())
      message = (*text)->getBuffer().rtrim().str();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return emitError(loc)
           << assembler << " failed: " << message
           << "; name another with --ptxas, or --ptxas=none, and the driver "
              "of the GPU compiles the kernels";
  }
  auto result = llvm::MemoryBuffer::getFile(binary, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!result)
    return emitError(loc) << "cannot read what " << assembler << " wrote";
  return (*result)->getBuffer().str();
}
