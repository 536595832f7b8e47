//===- Files.h - Files for the import tests ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models to put into a folder, byte by byte where they are wrong.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_IMPORT_FILES_H
#define PENSTOCK_TEST_UNIT_IMPORT_FILES_H

#include "test/unit/ScratchFolder.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace penstock::test {

class Folder : public ScratchFolder {
public:
  std::string write(llvm::StringRef name, llvm::StringRef bytes) const {
    std::string file = *this / name;
    std::error_code error;
    llvm::raw_fd_ostream out(file, error);
    out << bytes;
    return file;
  }
};

template <typename Value>
std::string bytesOf(const std::vector<Value> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(Value));
}

inline onnx::TensorProto *addInitializer(onnx::ModelProto &model,
                                         const std::string &name,
                                         std::vector<int64_t> dims,
                                         int type = onnx::TensorProto::FLOAT) {
  onnx::TensorProto *tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (int64_t dim : dims)
    tensor->add_dims(dim);
  return tensor;
}

inline void addNode(onnx::ModelProto &model, const std::string &type,
                    std::vector<std::string> inputs, const std::string &output,
                    const std::string &name = "") {
  onnx::NodeProto *node = model.mutable_graph()->add_node();
  node->set_op_type(type);
  node->set_name(name);
  for (const std::string &input : inputs)
    node->add_input(input);
  node->add_output(output);
}

inline onnx::ValueInfoProto *addInput(onnx::ModelProto &model,
                                      const std::string &name,
                                      std::vector<int64_t> dims) {
  onnx::ValueInfoProto *input = model.mutable_graph()->add_input();
  input->set_name(name);
  auto *tensor = input->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx::TensorProto::FLOAT);
  tensor->mutable_shape();
  for (int64_t dim : dims)
    tensor->mutable_shape()->add_dim()->set_dim_value(dim);
  return input;
}

/// Adds metadata to `message`, which has them as the field of this number.
/// They are younger than libonnx 1.12, which keeps what it does not know.
template <typename Message>
inline void addMetadata(Message &message, unsigned field,
                        const std::string &key, const std::string &value) {
  onnx::StringStringEntryProto entry;
  entry.set_key(key);
  entry.set_value(value);
  std::string bytes;
  for (uint64_t number :
       {uint64_t(field << 3 | 2), uint64_t(entry.ByteSizeLong())}) {
    for (; number >= 0x80; number >>= 7)
      bytes.push_back(char(number | 0x80));
    bytes.push_back(char(number));
  }
  message.MergeFromString(bytes + entry.SerializeAsString());
}

/// Notes something of the value `name`.
inline void noteValue(onnx::ModelProto &model, const std::string &name,
                      const std::string &key, const std::string &value) {
  onnx::ValueInfoProto *info = model.mutable_graph()->add_value_info();
  info->set_name(name);
  addMetadata(*info, 4, key, value);
}

/// Says of the value `name` what it was to torch.export.
inline void markValue(onnx::ModelProto &model, const std::string &name,
                      const std::string &kind) {
  noteValue(model, name, "pkg.torch.export.graph_signature.InputSpec.kind",
            kind);
}

/// z = MatMul(x, w), x: 5x2, w: 2x3, without the values of w.
inline onnx::ModelProto makeModel(int64_t opset = 20) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("m");
  addInput(model, "x", {5, 2});
  addNode(model, "MatMul", {"x", "w"}, "z", "product");
  model.mutable_graph()->add_output()->set_name("z");
  return model;
}

inline const std::vector<float> kWeights{1, 2, 3, 4, 5, 6};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_IMPORT_FILES_H
