//===- ModelWriter.cpp - The model with its trained weights ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values in the model file are patched in a copy of it. External data files get
// a copy at the same relative place beside the saved model, so the locations in
// it stay right; saving beside the input would overwrite the input's own data
// and is refused.
//===----------------------------------------------------------------------===//

#include "runtime/io/ModelWriter.h"
#include "runtime/io/ModelFiles.h"
#include "runtime/io/Npy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

using namespace penstock::runtime;

bool penstock::runtime::isSaved(const penstock_variable &variable) {
  // The first worker's stand for all.
  if (variable.frozen || variable.worker)
    return false;
  // Of a parameter that is rounded, the master is saved; without one it is as
  // it is in the file.
  if (variable.role == PENSTOCK_ROLE_PARAMETER)
    return !variable.file_element;
  return variable.role == PENSTOCK_ROLE_STATISTIC ||
         variable.role == PENSTOCK_ROLE_MASTER;
}

std::vector<char>
penstock::runtime::inFileOrder(const penstock_variable &variable,
                               const char *values) {
  const penstock_tensor &type = variable.type;
  uint64_t width = elementBytes(type.element);
  std::vector<uint64_t> strides(type.rank, width);
  for (uint32_t i = type.rank; i-- > 1;)
    strides[i - 1] = strides[i] * uint64_t(type.shape[i]);
  std::vector<char> ordered(type.bytes);
  std::vector<int64_t> index(type.rank);
  for (uint64_t to = 0, from = 0; to < type.bytes; to += width) {
    std::memcpy(ordered.data() + to, values + from, width);
    for (uint32_t i = type.rank; i-- > 0;) {
      uint32_t axis = variable.file_order[i];
      from += strides[axis];
      if (++index[i] < type.shape[axis])
        break;
      from -= strides[axis] * uint64_t(index[i]);
      index[i] = 0;
    }
  }
  return ordered;
}

std::string ModelWriter::getTarget(const std::string &path,
                                   uint32_t file) const {
  if (file == 0)
    return path;
  return folderOf(path) + "/" + getRelativePath(program, file).string();
}

Error ModelWriter::checkExternal(const std::string &path, uint32_t file,
                                 const char *flag) {
  std::filesystem::path relative = getRelativePath(program, file);
  if (relative.empty() ||
      std::find(relative.begin(), relative.end(), "..") != relative.end())
    return userError("%s: the model's external data '%s' is not inside its "
                     "folder",
                     flag, program.files[file].path);
  // What is embedded has no folder.
  const std::string &model = files[0].getPath();
  const std::string &source = files[file].getPath();
  std::string target = getTarget(path, file);
  if (!model.empty() &&
      (sameFile(folderOf(path), folderOf(model)) || sameFile(source, target)))
    return userError("%s: '%s' would overwrite the model's own weights in "
                     "'%s'; save into another folder",
                     flag, path.c_str(), source.c_str());
  if (std::filesystem::path(target).lexically_normal() ==
      std::filesystem::path(path).lexically_normal())
    return userError("%s: '%s' is also the name of the model's external data",
                     flag, path.c_str());
  return {};
}

Error ModelWriter::check(const std::string &path, const char *given) {
  const char *flag = given ? given : this->flag;
  if (Error error = checkWritable(path, flag))
    return error;
  for (uint32_t i = 0; i < files.size(); ++i)
    if (!files[i].getPath().empty() && sameFile(path, files[i].getPath()))
      return userError("%s: '%s' is a file that this program was compiled "
                       "from; choose another name",
                       flag, path.c_str());
  if (program.file_count == 0)
    return defect("%s: the program names no model file", flag);
  for (uint32_t file = 1; file < program.file_count; ++file)
    if (Error error = checkExternal(path, file, flag))
      return error;
  for (uint32_t i = 0; i < program.variable_count; ++i)
    if (isSaved(program.variables[i]) && program.variables[i].file < 0)
      return defect("%s: variable '%s' is in no file of the model", flag,
                    program.variables[i].name);
  return {};
}

Error ModelWriter::write(const std::string &path, const ReadVariable &read) {
  auto fill = [&](OutputFile &output, const MappedFile &from, int32_t file) {
    std::vector<const penstock_variable *> inFile;
    for (uint32_t i = 0; i < program.variable_count; ++i)
      if (isSaved(program.variables[i]) && program.variables[i].file == file)
        inFile.push_back(&program.variables[i]);
    std::sort(inFile.begin(), inFile.end(), [](auto *left, auto *right) {
      return left->file_offset < right->file_offset;
    });
    // Of the original, what lies between the values: nothing is written twice.
    uint64_t end = 0;
    Error error;
    auto keep = [&](uint64_t begin) {
      if (!error && begin > end)
        error = output.overwrite(end, from.data() + end, begin - end);
    };
    for (const penstock_variable *variable : inFile) {
      keep(std::min(variable->file_offset, from.size()));
      uint64_t at = variable->file_offset;
      end = std::max(end, at + variable->type.bytes);
      if (!error)
        error = read(*variable, [&](const char *bytes, uint64_t size) {
          Error failure = output.overwrite(at, bytes, size);
          at += size;
          return failure;
        });
    }
    keep(from.size());
    return error ? error : output.close();
  };

  // The model comes last: where it stands, its data stands too.
  std::vector<OutputFile> outputs;
  for (uint32_t file = program.file_count; file-- > 0;) {
    std::string target = getTarget(path, file);
    std::error_code status;
    if (file > 0)
      std::filesystem::create_directories(folderOf(target), status);
    OutputFile &output = outputs.emplace_back();
    if (Error error = output.create(target))
      return error;
    if (Error error = fill(output, files[file], int32_t(file)))
      return error;
  }
  for (OutputFile &output : outputs)
    if (Error error = output.commit())
      return error;
  return {};
}

Error ModelWriter::verify(const std::string &path, const ReadVariable &read) {
  auto compare = [&](const std::string &name, int32_t file) -> Error {
    MappedFile saved;
    if (Error error = saved.open(name, flag))
      return error;
    for (uint32_t i = 0; i < program.variable_count; ++i) {
      const penstock_variable &variable = program.variables[i];
      // All workers have the same weights, each its own statistics.
      bool isInFile =
          (variable.role == PENSTOCK_ROLE_STATISTIC && !variable.worker) ||
          variable.role == PENSTOCK_ROLE_MASTER ||
          (variable.role == PENSTOCK_ROLE_PARAMETER && !variable.file_element);
      if (!isInFile || variable.file != file || variable.placement_count == 0)
        continue;
      uint64_t at = variable.file_offset;
      auto take = [&](const char *bytes, uint64_t size) -> Error {
        uint64_t begin = std::exchange(at, at + size);
        if (begin + size <= saved.size() &&
            !std::memcmp(saved.data() + begin, bytes, size))
          return {};
        return notEqual("verify: '%s' does not hold what training left in "
                        "variable '%s'",
                        name.c_str(), variable.name);
      };
      if (Error error = read(variable, take))
        return error;
    }
    return {};
  };
  for (uint32_t file = 0; file < program.file_count; ++file)
    if (Error error = compare(getTarget(path, file), int32_t(file)))
      return error;
  return {};
}
