//===- ModelFile.cpp - An ONNX file, read ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A binary file is mapped, and only what is not a weight goes through protobuf.
// A textual one is parsed whole, and written as a binary one.
//===----------------------------------------------------------------------===//

#include "ModelFile.h"

#include "ExternalData.h"

#include "penstock/Import/Import.h"
#include "penstock/Support/MappedFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace penstock;
using namespace penstock::onnx;
using ::onnx::TensorProto;

static bool isTextual(StringRef path) { return path.ends_with(".onnxtext"); }

bool penstock::isModelPath(StringRef path) {
  return path.ends_with(".onnx") || isTextual(path);
}

static bool isFloat(int64_t dataType) {
  return dataType == TensorProto::FLOAT || dataType == TensorProto::DOUBLE ||
         dataType == TensorProto::FLOAT16 || dataType == TensorProto::BFLOAT16;
}

/// Weights stay where they are in the file; the file must have their bytes.
static bool needsCopy(const TensorRecord &tensor) {
  return isFloat(tensor.dataType) && !tensor.external && !tensor.hasBytes;
}

static Expected<std::unique_ptr<MemoryBuffer>> mapFile(StringRef path) {
  if (sys::fs::is_directory(path))
    return createStringError("it is a directory");
  // Devices and pipes may have no end, and cannot be mapped.
  if (sys::fs::exists(path) && !sys::fs::is_regular_file(path))
    return createStringError("it is no regular file");
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("cannot be read: " + buffer.getError().message());
  return std::move(*buffer);
}

Expected<std::unique_ptr<ModelFile>> ModelFile::open(StringRef path,
                                                     StringRef binaryCopy) {
  auto file = std::make_unique<ModelFile>();
  file->path = path.str();
  if (Error error = file->read(binaryCopy))
    return std::move(error);
  return std::move(file);
}

Error ModelFile::read(StringRef binaryCopy) {
  Expected<std::unique_ptr<MemoryBuffer>> bytes = mapFile(path);
  if (!bytes)
    return bytes.takeError();
  if (!(*bytes)->getBufferSize())
    return createStringError("the file is empty");

  ::onnx::ModelProto whole;
  if (isTextual(path)) {
    std::string error = parseText((*bytes)->getBuffer().str(), whole);
    if (!error.empty()) {
      // The parser draws the place in lines of their own.
      llvm::replace(error, '\n', ' ');
      return createStringError("not an ONNX model in textual form: " +
                               StringRef(error).trim());
    }
    bool hasWeights =
        any_of(whole.graph().initializer(), [](const TensorProto &tensor) {
          return isFloat(tensor.data_type());
        });
    if (hasWeights && binaryCopy.empty())
      return createStringError(
          "its weights are text, and a program refers to weights as bytes of "
          "a file: name an output with -o, beside which a binary copy of the "
          "model is put");
    if (!binaryCopy.empty())
      return copyTo(binaryCopy, whole);
    std::string encoded;
    if (std::string error = serialize(whole, encoded); !error.empty())
      return createStringError(error);
    return adopt(MemoryBuffer::getMemBufferCopy(encoded, path));
  }

  if (Error error = adopt(std::move(*bytes)))
    return error;
  auto tensor = find_if(record.initializers, needsCopy);
  if (tensor == record.initializers.end())
    return Error::success();
  if (binaryCopy.empty())
    return createStringError(
        "the values of initializer '" + tensor->name +
        "' are not stored as bytes, which a program could refer to: give a "
        "path for a copy of the model that has them so");
  StringRef all = buffer->getBuffer();
  if (std::string error = parseBinary(all.data(), all.size(), whole);
      !error.empty())
    return createStringError(error);
  return copyTo(binaryCopy, whole);
}

Error ModelFile::adopt(std::unique_ptr<MemoryBuffer> bytes) {
  buffer = std::move(bytes);
  Expected<ModelRecord> walked = walkModel(buffer->getBuffer());
  if (!walked)
    return walked.takeError();
  record = std::move(*walked);
  std::string error =
      parseBinary(record.skeleton.data(), record.skeleton.size(), model);
  record.skeleton.clear();
  if (!error.empty())
    return createStringError(error);
  return Error::success();
}

/// Writes under a temporary name and renames, so that no partial file is left.
static Error writeFile(StringRef path, StringRef bytes) {
  auto fail = [&](const Twine &what) {
    return createStringError("cannot write '" + path + "': " + what);
  };
  auto temporary = sys::fs::TempFile::create(path + ".%%%%%%.tmp");
  if (!temporary)
    return fail(toString(temporary.takeError()));
  bool failed;
  {
    raw_fd_ostream out(temporary->FD, /*shouldClose=*/false);
    out << bytes;
    out.flush();
    failed = out.has_error();
    out.clear_error();
  }
  if (failed) {
    consumeError(temporary->discard());
    return fail("the disk may be full");
  }
  if (Error error = temporary->keep(path))
    return fail(toString(std::move(error)));
  return Error::success();
}

Error ModelFile::copyTo(StringRef copy, ::onnx::ModelProto &whole) {
  if (sys::fs::equivalent(path, copy))
    return createStringError("its binary copy would replace it: write the "
                             "output somewhere else");
  std::string error = moveFloatsToRawData(whole);
  std::string bytes;
  if (error.empty())
    error = serialize(whole, bytes);
  if (!error.empty())
    return createStringError(error);
  if (Error error = writeFile(copy, bytes))
    return error;
  path = copy.str();
  Expected<std::unique_ptr<MemoryBuffer>> mapped = mapFile(path);
  if (!mapped)
    return mapped.takeError();
  return adopt(std::move(*mapped));
}

void ModelFile::giveBackPages() {
  penstock::giveBackPages(*buffer);
  for (auto &external : externalFiles)
    penstock::giveBackPages(*external.second);
}

Expected<ByteRange> ModelFile::getBytes(const TensorRecord &tensor,
                                        uint64_t expectedBytes) {
  if (!tensor.external) {
    if (tensor.length != expectedBytes)
      return createStringError("initializer '" + tensor.name +
                               "': its type needs " + Twine(expectedBytes) +
                               " bytes, but it has " + Twine(tensor.length));
    return ByteRange{path, tensor.offset,
                     buffer->getBuffer().substr(tensor.offset, tensor.length)};
  }
  Expected<ExternalRange> range =
      resolveExternalData(tensor, path, expectedBytes);
  if (!range)
    return range.takeError();
  std::unique_ptr<MemoryBuffer> &mapped = externalFiles[range->file];
  if (!mapped) {
    Expected<std::unique_ptr<MemoryBuffer>> bytes = mapFile(range->file);
    if (!bytes)
      return createStringError("external data '" + range->file +
                               "': " + toString(bytes.takeError()));
    mapped = std::move(*bytes);
  }
  if (range->offset + range->length > mapped->getBufferSize())
    return createStringError("external data '" + range->file +
                             "' changes while it is read");
  return ByteRange{range->file, range->offset,
                   mapped->getBuffer().substr(range->offset, range->length)};
}

Expected<TensorProto> ModelFile::decode(const TensorRecord &tensor) const {
  StringRef bytes =
      buffer->getBuffer().substr(tensor.messageOffset, tensor.messageLength);
  TensorProto proto;
  if (std::string error = parseBinary(bytes.data(), bytes.size(), proto);
      !error.empty())
    return createStringError("initializer '" + tensor.name + "': " + error);
  return proto;
}
