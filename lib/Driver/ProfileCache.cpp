//===- ProfileCache.cpp - What was measured before ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ProfileCache.h.
//===----------------------------------------------------------------------===//

#include "ProfileCache.h"

#include "penstock/Driver/OutputFile.h"
#include "penstock/Driver/Registration.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace penstock;

static std::string hash(StringRef text) {
  llvm::SHA1 sha;
  sha.update(text);
  return llvm::toHex(sha.final(), /*LowerCase=*/true);
}

/// The processor, by its own name and the features that code may use.
static std::string describeMachine() {
  std::string text = llvm::sys::getHostCPUName().str();
  if (auto info = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo")) {
    StringRef rest = (*info)->getBuffer();
    size_t begin = rest.find("model name");
    if (begin != StringRef::npos)
      text += rest.substr(begin).split('\n').first;
  }
  return text;
}

ProfileCache::ProfileCache() {
  llvm::SmallString<128> folder;
  const char *base = std::getenv("XDG_CACHE_HOME");
  if (base && llvm::sys::path::is_absolute(base)) {
    folder = base;
  } else if (const char *home = std::getenv("HOME")) {
    folder = home;
    llvm::sys::path::append(folder, ".cache");
  } else {
    return;
  }
  llvm::sys::path::append(folder, "penstock");
  if (llvm::sys::fs::create_directories(folder))
    return;
  llvm::sys::path::append(
      folder, "profile-" +
                  StringRef(hash(describeMachine())).take_front(16).str() +
                  ".json");
  path = folder.str().str();
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return;
  llvm::Expected<llvm::json::Value> value =
      llvm::json::parse((*buffer)->getBuffer());
  if (!value) {
    llvm::consumeError(value.takeError());
    return;
  }
  const llvm::json::Object *object = value->getAsObject();
  for (auto &[key, entry] : object ? *object : llvm::json::Object()) {
    const llvm::json::Array *numbers = entry.getAsArray();
    if (!numbers || numbers->size() != 3)
      continue;
    std::optional<double> forward = (*numbers)[0].getAsNumber(),
                          backward = (*numbers)[1].getAsNumber(),
                          update = (*numbers)[2].getAsNumber();
    if (forward && backward && update)
      entries[key.str()] = {*forward, *backward, *update};
  }
}

/// Ops with their types and attributes, nested ones too, without names.
static void describe(Operation *op, llvm::raw_ostream &stream) {
  stream << op->getName() << op->getDiscardableAttrDictionary();
  if (Attribute properties = op->getPropertiesAsAttribute())
    stream << properties;
  stream << "(";
  llvm::interleaveComma(op->getOperandTypes(), stream);
  stream << ")->(";
  llvm::interleaveComma(op->getResultTypes(), stream);
  stream << "){";
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      describe(&inner, stream);
  stream << "}";
}

/// The names of the GPUs, as their driver gives them to everybody; nothing
/// where there is none.
static std::string describeGpus() {
  std::string text;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator gpu("/proc/driver/nvidia/gpus", error),
       end;
       !error && gpu != end; gpu.increment(error)) {
    auto info =
        llvm::MemoryBuffer::getFileAsStream(gpu->path() + "/information");
    if (info)
      text += (*info)->getBuffer().split("Model:").second.split('\n').first;
  }
  return text;
}

/// How code is made of it. Another version makes other code, or measures
/// otherwise.
static void describe(MLIRContext *context, const CompileOptions &options,
                     llvm::raw_ostream &stream) {
  stream << PENSTOCK_VERSION << " " << getTargets(context, options).front()
         << " " << describeGpus() << " " << options.optimizer.getName() << " "
         << options.precision << " ";
}

std::string ProfileCache::getKey(const Unit &unit,
                                 const CompileOptions &options) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Operation *op : unit.ops)
    describe(op, stream);
  describe(unit.ops.front()->getContext(), options, stream);
  stream << unit.weightBytes;
  return hash(text);
}

std::string ProfileCache::getKey(ModuleOp program,
                                 const CompileOptions &options, int64_t devices,
                                 StringRef schedule) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (auto function : program.getOps<func::FuncOp>())
    describe(function, stream);
  describe(program.getContext(), options, stream);
  stream << devices << " " << schedule << " " << options.microbatches << " "
         << options.batchNorm << " " << options.recompute;
  for (int64_t budget : options.recomputeBudgets)
    stream << " " << budget;
  return hash(text);
}

std::optional<UnitSeconds> ProfileCache::find(StringRef key) const {
  auto it = entries.find(key.str());
  return it == entries.end() ? std::nullopt : std::optional(it->second);
}

void ProfileCache::insert(StringRef key, UnitSeconds seconds) {
  entries[key.str()] = seconds;
}

void ProfileCache::save() const {
  if (path.empty())
    return;
  llvm::json::Object object;
  for (auto &[key, unit] : entries)
    object[key] = llvm::json::Array{unit.forward, unit.backward, unit.update};
  OutputFile file(path);
  std::string ignored;
  llvm::raw_string_ostream errors(ignored);
  if (!file.check(errors))
    return;
  file.stream() << llvm::json::Value(std::move(object)) << "\n";
  file.commit(errors);
}
