//===- ImportTest.cpp - Models that text cannot express -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Binary files, good and bad: what the textual syntax covers is tested by lit.
//===----------------------------------------------------------------------===//

#include "Files.h"

#include "dialects/Pipeline/Pipeline.h"
#include "lib/Import/FoldedTensors.h"
#include "penstock/Import/Import.h"

#include "dialects/Onnx/Onnx.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace llvm;
using namespace mlir;
using namespace penstock;
using namespace penstock::test;
using ::onnx::TensorProto;

namespace {

class Import : public testing::Test {
protected:
  OwningOpRef<ModuleOp> import(StringRef path,
                               const ImportOptions &options = {}) {
    raw_string_ostream stream(diagnostics);
    ModelDiagnosticHandler handler(&context, "m.onnx", stream);
    diagnostics.clear();
    return importModel(&context, path, options);
  }
  OwningOpRef<ModuleOp> import(const ::onnx::ModelProto &model,
                               const ImportOptions &options = {}) {
    return import(folder.write("m.onnx", model.SerializeAsString()), options);
  }
  /// The diagnostics of a model that must not import.
  std::string errorOf(const ::onnx::ModelProto &model,
                      const ImportOptions &options = {}) {
    EXPECT_FALSE(bool(import(model, options)));
    return diagnostics;
  }
  static pipeline::VariableOp variable(ModuleOp module, StringRef name) {
    return module.lookupSymbol<pipeline::VariableOp>(name);
  }
  /// The bytes that a variable refers to.
  static std::string bytesAt(pipeline::VariableOp variable) {
    auto init = *variable.getInit();
    auto buffer = MemoryBuffer::getFile(init.getFile());
    return (*buffer)
        ->getBuffer()
        .substr(init.getOffset(), init.getLength())
        .str();
  }

  Folder folder;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string diagnostics;
};

} // namespace

TEST_F(Import, VariablesReferToBytesOfTheFile) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  OwningOpRef<ModuleOp> module = import(model);
  ASSERT_TRUE(bool(module)) << diagnostics;
  pipeline::VariableOp w = variable(*module, "w");
  ASSERT_TRUE(bool(w));
  EXPECT_FALSE(w.getFrozen());
  EXPECT_EQ(w.getInit()->getFile(), folder / "m.onnx");
  EXPECT_EQ(bytesAt(w), bytesOf(kWeights));
}

TEST_F(Import, ExternalDataIsReferredTo) {
  ::onnx::ModelProto model = makeModel();
  TensorProto *w = addInitializer(model, "w", {2, 3});
  w->set_data_location(TensorProto::EXTERNAL);
  auto *entry = w->add_external_data();
  entry->set_key("location");
  entry->set_value("m.data");
  folder.write("m.data", bytesOf(kWeights));
  TensorProto *indices = addInitializer(model, "i", {2}, TensorProto::INT64);
  indices->set_data_location(TensorProto::EXTERNAL);
  entry = indices->add_external_data();
  entry->set_key("location");
  entry->set_value("i.data");
  folder.write("i.data", bytesOf(std::vector<int64_t>{1, 2}));
  OwningOpRef<ModuleOp> module = import(model);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_EQ(variable(*module, "w").getInit()->getFile(), folder / "m.data");
  EXPECT_EQ(bytesAt(variable(*module, "w")), bytesOf(kWeights));
  // The program saves all files of the model, with weights or without.
  auto files = (*module)->getAttrOfType<ArrayAttr>("pipeline.external_data");
  ASSERT_TRUE(files);
  EXPECT_EQ(files, Builder(&context).getStrArrayAttr(
                       {folder / "i.data", folder / "m.data"}));

  folder.write("m.data", bytesOf(std::vector<float>{1, 2}));
  EXPECT_EQ(
      errorOf(model),
      "m.onnx: error: external data of initializer 'w': its type needs 24 "
      "bytes, but 8 are given\n");
}

// float16 values stored as integers have no image in the file: a copy has.
TEST_F(Import, EncodedWeightsNeedACopy) {
  ::onnx::ModelProto model = makeModel();
  TensorProto *w = addInitializer(model, "w", {2, 3}, TensorProto::FLOAT16);
  std::vector<uint16_t> halves{15360, 0, 48128, 1, 2, 16384};
  for (uint16_t half : halves)
    w->add_int32_data(half);
  EXPECT_EQ(
      errorOf(model),
      "m.onnx: error: the values of initializer 'w' are not stored as bytes, "
      "which a program could refer to: give a path for a copy of the "
      "model that has them so\n");
  ImportOptions options;
  options.binaryCopy = folder / "copy.onnx";
  OwningOpRef<ModuleOp> module = import(model, options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_EQ(variable(*module, "w").getInit()->getFile(), folder / "copy.onnx");
  EXPECT_EQ(bytesAt(variable(*module, "w")), bytesOf(halves));
}

TEST_F(Import, WhatTrains) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  float inf = std::numeric_limits<float>::infinity();
  std::vector<float> mask(40, 0);
  mask[17] = -inf;
  addInitializer(model, "mask", {40})->set_raw_data(bytesOf(mask));
  std::vector<float> nan(40, std::nanf(""));
  addInitializer(model, "nan", {40})->set_raw_data(bytesOf(nan));
  addInitializer(model, "eps", {})
      ->set_raw_data(bytesOf(std::vector<float>{1e-5f}));
  addInitializer(model, "b", {3})
      ->set_raw_data(bytesOf(std::vector<float>{1, 2, 3}));
  addInitializer(model, "unused", {3})
      ->set_raw_data(bytesOf(std::vector<float>{1, 2, 3}));
  addNode(model, "Sum", {"z", "mask", "nan", "eps", "b"}, "s");
  model.mutable_graph()->mutable_output(0)->set_name("s");

  ImportOptions options;
  options.freezeRegex = "^b$";
  OwningOpRef<ModuleOp> module = import(model, options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_FALSE(variable(*module, "w").getFrozen());
  EXPECT_TRUE(variable(*module, "mask").getFrozen());
  EXPECT_TRUE(variable(*module, "nan").getFrozen());
  EXPECT_TRUE(variable(*module, "b").getFrozen());
  EXPECT_FALSE(variable(*module, "unused"));
  EXPECT_FALSE(variable(*module, "eps"));
  auto constants = (*module)->getAttrOfType<ArrayAttr>(
      penstock::onnx::kConstantInitializersAttr);
  ASSERT_TRUE(constants && constants.size() == 1);
  EXPECT_EQ(cast<StringAttr>(constants[0]).getValue(), "eps");

  options.trainRegex = "eps";
  module = import(model, options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_FALSE(variable(*module, "eps").getFrozen());
  // It names all that trains: the weight does not any more, and is small enough
  // to be a constant.
  EXPECT_FALSE(variable(*module, "w"));

  options.trainRegex = "mask";
  EXPECT_EQ(
      errorOf(model, options),
      "m.onnx: error: --train=mask: initializer 'mask' has infinite or NaN "
      "values\n");
  options.trainRegex = "(";
  EXPECT_EQ(
      errorOf(model, options),
      "m.onnx: error: --train=( is not a regular expression: parentheses not "
      "balanced\n");
  options.trainRegex = "b";
  EXPECT_EQ(errorOf(model, options),
            "m.onnx: error: initializer 'b' matches both "
            "--train and --freeze\n");
}

// PyTorch's newer exporter says of every initializer what it was in the module:
// llama's rotary frequencies are floats that a gradient reaches, and a buffer.
TEST_F(Import, BuffersOfTheExporterDoNotTrain) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  std::vector<float> values(21, 0.5);
  for (StringRef name : {"inv_freq", "lifted", "bias"}) {
    addInitializer(model, name.str(), {7, 1, 3})->set_raw_data(bytesOf(values));
    markValue(model, name.str(),
              name == "bias"     ? "PARAMETER"
              : name == "lifted" ? "CONSTANT_TENSOR"
                                 : "BUFFER");
  }
  addNode(model, "Sum", {"z", "inv_freq", "lifted", "bias"}, "s");
  model.mutable_graph()->mutable_output(0)->set_name("s");

  OwningOpRef<ModuleOp> module = import(model);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_FALSE(variable(*module, "w").getFrozen());
  EXPECT_FALSE(variable(*module, "bias").getFrozen());
  EXPECT_TRUE(variable(*module, "inv_freq").getFrozen());
  EXPECT_TRUE(variable(*module, "lifted").getFrozen());

  // Whoever names it trains it.
  ImportOptions options;
  options.trainRegex = "freq";
  module = import(model, options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_FALSE(variable(*module, "inv_freq").getFrozen());
}

// A scalar is an epsilon or a factor, unless the exporter says that it trains.
TEST_F(Import, ScalarsThatAreParametersTrain) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  for (StringRef name : {"temperature", "factor"})
    addInitializer(model, name.str(), {})
        ->set_raw_data(bytesOf(std::vector<float>{0.5}));
  markValue(model, "temperature", "PARAMETER");
  addNode(model, "Mul", {"z", "temperature"}, "t");
  addNode(model, "Mul", {"t", "factor"}, "s");
  model.mutable_graph()->mutable_output(0)->set_name("s");

  OwningOpRef<ModuleOp> module = import(model);
  ASSERT_TRUE(bool(module)) << diagnostics;
  ASSERT_TRUE(bool(variable(*module, "temperature")));
  EXPECT_FALSE(variable(*module, "temperature").getFrozen());
  EXPECT_FALSE(bool(variable(*module, "factor")));
}

// PyTorch's older exporter marks nothing: whoever trains is told.
TEST_F(Import, WarnsOfScalarsThatMayBeParameters) {
  ::onnx::ModelProto model = makeModel();
  model.set_producer_name("pytorch");
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  for (StringRef name : {"onnx::Mul_5", "temperature", "unused"})
    addInitializer(model, name.str(), {})
        ->set_raw_data(bytesOf(std::vector<float>{0.5}));
  addNode(model, "Mul", {"z", "temperature"}, "t");
  addNode(model, "Mul", {"t", "onnx::Mul_5"}, "s");
  model.mutable_graph()->mutable_output(0)->set_name("s");
  auto warnings = [&](const ImportOptions &options) {
    EXPECT_TRUE(bool(import(model, options))) << diagnostics;
    return diagnostics;
  };

  ImportOptions options;
  EXPECT_EQ(warnings(options), "");
  options.onlyLossOutput = true;
  EXPECT_TRUE(StringRef(warnings(options))
                  .contains("1 scalar initializers do not train, the first "
                            "'temperature': "))
      << diagnostics;
  options.freezeRegex = "^temp";
  EXPECT_EQ(warnings(options), "");
  options.freezeRegex.clear();
  options.trainRegex = "w";
  EXPECT_EQ(warnings(options), "");
  options.trainRegex.clear();
  markValue(model, "w", "PARAMETER");
  EXPECT_EQ(warnings(options), "");
}

// The exporter's optimizer computes what depends on no input: of constants, it
// is one. Of a parameter that is still there, it must not train on its own.
TEST_F(Import, FoldedTensorsAreWhatTheyComeFrom) {
  auto makeFolded = [](const std::string &sources, float last) {
    ::onnx::ModelProto model = makeModel();
    addMetadata(*model.mutable_graph(), 16,
                "pkg.torch.export.ExportedProgram.graph_signature",
                "\n# inputs\np_w: PARAMETER target='w'\n"
                "p_v: PARAMETER target='v'\n"
                "b_c: BUFFER target='c' persistent=True\nx: USER_INPUT\n");
    addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
    std::vector<float> values = kWeights;
    values.back() = last;
    addInitializer(model, "val_1", {3, 2})->set_raw_data(bytesOf(values));
    noteValue(model, "val_1", "pkg.onnxscript.optimizer.folded_from", sources);
    addNode(model, "MatMul", {"z", "val_1"}, "s");
    model.mutable_graph()->mutable_output(0)->set_name("s");
    return model;
  };

  ImportOptions options;
  options.onlyLossOutput = true;
  OwningOpRef<ModuleOp> module =
      import(makeFolded("['c', 'val_0']", 7), options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_FALSE(bool(variable(*module, "val_1")) &&
               !variable(*module, "val_1").getFrozen());

  // Whoever names it trains it.
  options.trainRegex = "val";
  module = import(makeFolded("['c', 'val_0']", 7), options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_FALSE(variable(*module, "val_1").getFrozen());
  options.trainRegex.clear();

  // Of a parameter that is not in the file any more, it stands for that.
  module = import(makeFolded("['v', 'val_0']", 7), options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_TRUE(StringRef(diagnostics)
                  .contains("1 initializers are what the exporter's optimizer "
                            "computed of parameters, the first 'val_1' of 'v'"))
      << diagnostics;

  // The same values in another shape are the parameter.
  module = import(makeFolded("['val_0', 'w']", 6), options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_FALSE(bool(variable(*module, "val_1")));
  auto tied = variable(*module, "w")
                  ->getAttrOfType<DictionaryAttr>(pipeline::kTiedAttr);
  ASSERT_TRUE(bool(tied));
  EXPECT_TRUE(tied.contains("val_1"));

  EXPECT_EQ(
      errorOf(makeFolded("['val_0', 'w']", 7), options),
      "m.onnx: error: initializer 'val_1' is what the exporter's optimizer "
      "computed of parameter 'w', which would train apart from it; "
      "export the model without that (PyTorch: optimize=False), or hold "
      "one of them with --freeze\n");

  // Of zeros nobody can tell which is which: it may be a transpose.
  ::onnx::ModelProto zeros = makeFolded("['val_0', 'w']", 0);
  for (::onnx::TensorProto &tensor :
       *zeros.mutable_graph()->mutable_initializer())
    tensor.set_raw_data(bytesOf(std::vector<float>(6)));
  EXPECT_TRUE(StringRef(errorOf(zeros, options))
                  .contains("'val_1' is what the exporter's optimizer computed "
                            "of parameter 'w'"));
}

// A transpose, as of an embedding that is the last layer, too, is the parameter
// in that order.
TEST_F(Import, FoldedTransposesAreWhatTheyComeFrom) {
  auto makeFolded = [](const std::vector<float> &values) {
    ::onnx::ModelProto model = makeModel();
    addMetadata(*model.mutable_graph(), 16,
                "pkg.torch.export.ExportedProgram.graph_signature",
                "\n# inputs\np_w: PARAMETER target='w'\nx: USER_INPUT\n");
    addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
    addInitializer(model, "val_1", {1, 3, 2})->set_raw_data(bytesOf(values));
    noteValue(model, "val_1", "pkg.onnxscript.optimizer.folded_from", "['w']");
    addNode(model, "MatMul", {"z", "val_1"}, "s");
    model.mutable_graph()->mutable_output(0)->set_name("s");
    return model;
  };

  ImportOptions options;
  options.onlyLossOutput = true;
  OwningOpRef<ModuleOp> module =
      import(makeFolded({1, 4, 2, 5, 3, 6}), options);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_FALSE(bool(variable(*module, "val_1")));
  auto tied = variable(*module, "w")
                  ->getAttrOfType<DictionaryAttr>(pipeline::kTiedAttr);
  ASSERT_TRUE(bool(tied));
  auto transposed = tied.getAs<pipeline::TransposedAttr>("val_1");
  ASSERT_TRUE(bool(transposed));
  EXPECT_EQ(transposed.getOrder(), ArrayRef<int64_t>({1, 0}));
  EXPECT_EQ(transposed.getBytes().getLength(), 24);
  std::vector<std::string> nodes;
  module->walk([&](penstock::onnx::NodeOp node) {
    nodes.push_back(node.getOpType().str());
  });
  EXPECT_EQ(nodes, std::vector<std::string>(
                       {"Transpose", "Reshape", "MatMul", "MatMul"}));

  EXPECT_TRUE(StringRef(errorOf(makeFolded({1, 4, 2, 5, 6, 3}), options))
                  .contains("'val_1' is what the exporter's optimizer computed "
                            "of parameter 'w'"));
}

TEST(FoldedTensorsTest, ValuesTellTheOrderOfAxes) {
  using Order = std::vector<int64_t>;
  auto find = [](std::vector<float> source, std::vector<int64_t> shape,
                 std::vector<float> values) {
    std::optional<SmallVector<int64_t>> order =
        penstock::onnx::findOrder(bytesOf(source), shape, bytesOf(values));
    return order ? Order(order->begin(), order->end()) : Order({-1});
  };
  std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(find(matrix, {2, 3}, matrix), Order({0, 1}));
  EXPECT_EQ(find(matrix, {2, 3}, {1, 4, 2, 5, 3, 6}), Order({1, 0}));
  EXPECT_EQ(find(matrix, {2, 3}, {1, 4, 2, 5, 3, 7}), Order({-1}));
  EXPECT_EQ(find(matrix, {2, 3}, {1, 2, 3}), Order({-1}));
  EXPECT_EQ(find({0, 0, 0, 0, 0, 0}, {2, 3}, {0, 0, 0, 0, 0, 0}), Order({-1}));
  // A vector has one order, whatever its values.
  EXPECT_EQ(find({0, 0, 0}, {1, 3, 1}, {0, 0, 0}), Order({0, 1, 2}));
  EXPECT_EQ(find({}, {0, 3}, {}), Order({-1}));
  // A symmetric matrix; one that is not; axes of one element between others.
  EXPECT_EQ(find({1, 2, 2, 1}, {2, 1, 2}, {1, 2, 2, 1}), Order({-1}));
  EXPECT_EQ(find({1, 2, 3, 1}, {2, 1, 2}, {1, 3, 2, 1}), Order({1, 2, 0}));
  // Three axes; the last two cannot be told apart.
  std::vector<float> cube = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(find(cube, {2, 2, 2}, {1, 5, 2, 6, 3, 7, 4, 8}), Order({1, 2, 0}));
  EXPECT_EQ(find({1, 2, 2, 3, 4, 5, 5, 6}, {2, 2, 2}, {1, 2, 2, 3, 4, 5, 5, 6}),
            Order({-1}));
}

// Running statistics are buffers, too, and move: also where the exporter put
// the normalization into a function, or an Identity before it.
TEST_F(Import, StatisticsThatAreBuffersMove) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  for (StringRef name : {"scale", "bias", "mean", "var"}) {
    addInitializer(model, name.str(), {3})
        ->set_raw_data(bytesOf(std::vector<float>{1, 2, 3}));
    markValue(model, name.str(),
              name == "mean" || name == "var" ? "BUFFER" : "PARAMETER");
  }
  ::onnx::FunctionProto *function = model.add_functions();
  function->set_name("norm");
  function->set_domain("torchlib");
  function->add_opset_import()->set_version(20);
  for (StringRef name : {"x", "s", "b", "v", "m"})
    function->add_input(name.str());
  function->add_output("y");
  ::onnx::NodeProto *identity = function->add_node();
  identity->set_op_type("Identity");
  identity->add_input("m");
  identity->add_output("m1");
  ::onnx::NodeProto *norm = function->add_node();
  norm->set_op_type("BatchNormalization");
  for (StringRef name : {"x", "s", "b", "m1", "v"})
    norm->add_input(name.str());
  norm->add_output("y");
  auto *opset = model.add_opset_import();
  opset->set_domain("torchlib");
  opset->set_version(1);
  addNode(model, "norm", {"z", "scale", "bias", "var", "mean"}, "n");
  model.mutable_graph()->mutable_node(1)->set_domain("torchlib");
  model.mutable_graph()->mutable_output(0)->set_name("n");

  OwningOpRef<ModuleOp> module = import(model);
  ASSERT_TRUE(bool(module)) << diagnostics;
  for (StringRef name : {"mean", "var"}) {
    pipeline::VariableOp statistic = variable(*module, name);
    ASSERT_TRUE(bool(statistic)) << name.str();
    EXPECT_EQ(statistic.getRole(), pipeline::Role::Statistic);
    EXPECT_FALSE(statistic.getFrozen());
  }
  EXPECT_EQ(variable(*module, "scale").getRole(), pipeline::Role::Parameter);
}

// A pattern that matches nothing is a mistyped one, most likely.
TEST_F(Import, PatternsThatMatchNothing) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  ImportOptions options;
  options.freezeRegex = "encoder";
  EXPECT_TRUE(bool(import(model, options)));
  EXPECT_EQ(diagnostics, "m.onnx: warning: --freeze=encoder matches the name "
                         "of no initializer\n");
}

TEST_F(Import, ACopyNeverReplacesTheModel) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3}, TensorProto::FLOAT16)->add_int32_data(1);
  ImportOptions options;
  options.binaryCopy = folder / "m.onnx";
  EXPECT_EQ(errorOf(model, options),
            "m.onnx: error: its binary copy would replace it: write the output "
            "somewhere else\n");
}

// Before IR version 4, initializers were also inputs.
TEST_F(Import, InitializersAmongTheInputs) {
  ::onnx::ModelProto model = makeModel(7);
  addInput(model, "w", {2, 3});
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  OwningOpRef<ModuleOp> module = import(model);
  ASSERT_TRUE(bool(module)) << diagnostics;
  EXPECT_TRUE(variable(*module, "w"));
  unsigned channels = 0;
  for (auto channel : module->getOps<pipeline::ChannelOp>()) {
    EXPECT_EQ(channel.getSource()->getEndpoint(), "x");
    ++channels;
  }
  EXPECT_EQ(channels, 1u);
}

TEST_F(Import, NodeAndValueNamesAreLocations) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  OwningOpRef<ModuleOp> module = import(model);
  ASSERT_TRUE(bool(module)) << diagnostics;
  module->walk([](penstock::onnx::NodeOp node) {
    auto loc = cast<NameLoc>(node.getLoc());
    EXPECT_EQ(loc.getName(), "product");
    EXPECT_EQ(cast<NameLoc>(loc.getChildLoc()).getName(), "z");
  });
}

TEST_F(Import, FilesThatAreNoModels) {
  auto errorAt = [&](StringRef path) {
    EXPECT_FALSE(bool(import(path)));
    return diagnostics;
  };
  EXPECT_EQ(errorAt(folder / "absent.onnx"),
            "m.onnx: error: cannot be read: No such file or directory\n");
  EXPECT_EQ(errorAt(folder.write("empty.onnx", "")),
            "m.onnx: error: the file is empty\n");
  ASSERT_FALSE(sys::fs::create_directory(folder / "dir.onnx"));
  EXPECT_EQ(errorAt(folder / "dir.onnx"), "m.onnx: error: it is a directory\n");
  EXPECT_EQ(errorAt(folder.write("png.onnx", "\x89PNG\r\n\x1a\n")),
            "m.onnx: error: not an ONNX model: byte 0: a field runs beyond the "
            "end: the "
            "file is truncated or corrupt\n");
  EXPECT_EQ(StringRef(errorAt(folder.write("bad.onnxtext", "agraph (")))
                .take_front(54),
            "m.onnx: error: not an ONNX model in textual form: [Par");
}

// No prefix and no changed bit of a model makes the importer crash, and every
// refusal is one line.
TEST_F(Import, SurvivesTruncationAndCorruption) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  const std::string bytes = model.SerializeAsString();
  auto check = [&](StringRef changed) {
    if (import(folder.write("m.onnx", changed)))
      return;
    EXPECT_EQ(StringRef(diagnostics).count('\n'), 1u) << diagnostics;
  };
  for (size_t length = 0; length < bytes.size(); ++length)
    check(StringRef(bytes).take_front(length));
  for (size_t at = 0; at < bytes.size(); ++at)
    for (unsigned bit = 0; bit < 8; bit += 3) {
      std::string corrupt = bytes;
      corrupt[at] ^= char(1u << bit);
      check(corrupt);
    }
}

TEST_F(Import, WrongTensors) {
  ::onnx::ModelProto model = makeModel();
  TensorProto *w = addInitializer(model, "w", {2, 4});
  w->set_raw_data(bytesOf(kWeights));
  EXPECT_EQ(errorOf(model),
            "m.onnx: error: initializer 'w': its type needs 32 bytes, "
            "but it has 24\n");
  w->set_dims(0, int64_t(1) << 40);
  w->set_dims(1, int64_t(1) << 40);
  EXPECT_EQ(errorOf(model),
            "m.onnx: error: initializer 'w': its dimensions are too large\n");
  w->set_dims(0, -2);
  EXPECT_EQ(errorOf(model),
            "m.onnx: error: initializer 'w': negative dimension -2\n");
  w->set_dims(0, 2);
  w->set_data_type(TensorProto::STRING);
  EXPECT_EQ(
      errorOf(model),
      "m.onnx: error: initializer 'w': ONNX element type 8 (STRING) is not "
      "supported; floats, integers and truth values are\n");
}

TEST_F(Import, Cycles) {
  ::onnx::ModelProto model = makeModel();
  addNode(model, "Add", {"z", "q"}, "p", "first");
  addNode(model, "Relu", {"p"}, "q", "second");
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  EXPECT_EQ(errorOf(model),
            "m.onnx: error: node 'first' (Add, since-version 14): it reads "
            "'q', which "
            "no earlier node computes: the nodes are in a cycle, or not "
            "sorted\n");
}

// A default in place of a value that has the wrong type would be other numbers.
TEST_F(Import, AttributesHaveOneValueOfTheirType) {
  using ::onnx::AttributeProto;
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  ::onnx::NodeProto *node = model.mutable_graph()->mutable_node(0);
  std::string head = "m.onnx: error: node '" + node->name() +
                     "' (LeakyRelu, since-version 16)";
  node->set_op_type("LeakyRelu");
  while (node->input_size() > 1)
    node->mutable_input()->RemoveLast();
  AttributeProto *alpha = node->add_attribute();
  alpha->set_name("alpha");
  auto expectError = [&](const std::string &text) {
    std::string error = errorOf(model);
    EXPECT_EQ(error.rfind(head, 0), 0u) << error;
    EXPECT_NE(error.find("attribute 'alpha' " + text), std::string::npos)
        << error;
  };
  expectError("has neither a type nor a value; write the file anew");
  alpha->set_f(0.25f);
  OwningOpRef<ModuleOp> module = import(model);
  EXPECT_TRUE(bool(module)) << diagnostics; // as in files of IR version 1
  alpha->set_i(1);
  expectError("has no type, and more than one value; write the file anew");
  alpha->set_type(AttributeProto::FLOAT);
  expectError("is of type FLOAT, but has a value of type INT");
  alpha->clear_f();
  alpha->set_type(AttributeProto::INT);
  expectError("is of type INT, this operator takes FLOAT");
  alpha->clear_i();
  alpha->set_type(AttributeProto::GRAPH);
  expectError("is of type GRAPH, this operator takes FLOAT");
  // Zero may be left out of a file.
  alpha->set_type(AttributeProto::FLOAT);
  module = import(model);
  EXPECT_TRUE(bool(module)) << diagnostics;
}
