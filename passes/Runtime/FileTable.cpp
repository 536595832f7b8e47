//===- FileTable.cpp - The files of the model -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what the program must know about them to recognize them.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/FileTable.h"
#include "passes/Runtime/AbiStructs.h"

#include "dialects/Pipeline/ModelFiles.h"
#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Support/MappedFile.h"
#include "penstock/checksum.h"
#include "penstock/sha256.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {
/// The checksum of what has been read of the model. Its pages are given back:
/// the memory of the compiler does not grow with the weights.
struct ModelReader {
  explicit ModelReader(llvm::MemoryBuffer &buffer) : buffer(buffer) {}

  void readUpTo(uint64_t end) {
    checksum.add(buffer.getBufferStart() + read, end - read);
    read = end;
    giveBackPages(buffer);
  }

  llvm::MemoryBuffer &buffer;
  uint64_t read = 0;
  runtime::Checksum checksum;
};
} // namespace

LogicalResult FileTable::add(Operation *op, StringRef name) {
  if (files.contains(name))
    return success();
  File file;
  SmallString<256> path(name);
  std::error_code error = llvm::sys::fs::make_absolute(path);
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  file.path = path.str().str();
  file.digest.fill(0);
  file.checksum.fill(0);
  if (files.empty()) {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    if (!buffer)
      return op->emitError()
             << "cannot read '" << name << "': " << buffer.getError().message();
    file.size = static_cast<int64_t>((*buffer)->getBufferSize());
    ModelReader reader(**buffer);
    penstock_sha256_in_parts((*buffer)->getBufferStart(),
                             (*buffer)->getBufferSize(), file.digest.data(),
                             [](void *context, uint64_t end) {
                               static_cast<ModelReader *>(context)->readUpTo(
                                   end);
                             },
                             &reader);
    reader.readUpTo((*buffer)->getBufferSize());
    file.checksum = reader.checksum.getBytes();
  } else {
    uint64_t size = 0;
    if (!error)
      error = llvm::sys::fs::file_size(path, size);
    if (error)
      return op->emitError()
             << "cannot read '" << name << "': " << error.message();
    file.size = static_cast<int64_t>(size);
  }
  files[name] = file;
  return success();
}

llvm::SetVector<StringRef> FileTable::findNames(ModuleOp root) {
  llvm::SetVector<StringRef> names;
  if (auto model = root->getAttrOfType<BytesAttr>(kModelAttr))
    names.insert(model.getFile());
  for (auto variable : root.getOps<VariableOp>()) {
    if (BytesAttr init = variable.getInitAttr())
      names.insert(init.getFile());
    if (auto tied = variable->getAttrOfType<DictionaryAttr>(kTiedAttr))
      for (NamedAttribute other : tied)
        names.insert(getBytes(other.getValue()).getFile());
  }
  if (auto external = root->getAttrOfType<ArrayAttr>(kExternalDataAttr))
    for (StringRef name : external.getAsValueRange<StringAttr>())
      names.insert(name);
  return names;
}

LogicalResult FileTable::collect(ModuleOp root) {
  for (StringRef name : findNames(root))
    if (failed(add(root, name)))
      return failure();
  return success();
}

int64_t FileTable::getIndex(StringRef name) const {
  return files.find(name) - files.begin();
}

std::vector<Constant> FileTable::getTable(ConstantBuilder &constants) const {
  std::vector<Constant> table;
  for (auto &[name, file] : files)
    table.push_back(abi::file{.path = constants.string(file.path),
                              .size = file.size,
                              .digest = file.digest,
                              .checksum = file.checksum}
                        .get());
  return table;
}
