//===- WireFormatTest.cpp - Byte ranges of weights ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walker must find what protobuf wrote, and survive what it did not write.
//===----------------------------------------------------------------------===//

#include "Files.h"

#include "lib/Import/WireFormat.h"

#include <gtest/gtest.h>

using namespace llvm;
using namespace penstock::onnx;
using namespace penstock::test;
using ::onnx::TensorProto;

static ModelRecord walk(StringRef bytes) {
  Expected<ModelRecord> record = walkModel(bytes);
  EXPECT_TRUE(bool(record)) << toString(record.takeError());
  return record ? std::move(*record) : ModelRecord();
}

static std::string walkError(StringRef bytes) {
  Expected<ModelRecord> record = walkModel(bytes);
  return record ? "" : toString(record.takeError());
}

TEST(WireFormat, FindsRawData) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  std::string bytes = model.SerializeAsString();
  ModelRecord record = walk(bytes);
  ASSERT_EQ(record.initializers.size(), 1u);
  const TensorRecord &w = record.initializers[0];
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.dataType, TensorProto::FLOAT);
  EXPECT_EQ(w.dims, (SmallVector<int64_t>{2, 3}));
  ASSERT_TRUE(w.hasBytes);
  EXPECT_EQ(bytes.substr(w.offset, w.length), bytesOf(kWeights));
}

TEST(WireFormat, FindsPackedFloatsAndDoubles) {
  ::onnx::ModelProto model = makeModel();
  TensorProto *w = addInitializer(model, "w", {2, 3});
  for (float value : kWeights)
    w->add_float_data(value);
  TensorProto *d = addInitializer(model, "d", {2}, TensorProto::DOUBLE);
  d->add_double_data(0.5);
  d->add_double_data(-3);
  std::string bytes = model.SerializeAsString();
  ModelRecord record = walk(bytes);
  ASSERT_EQ(record.initializers.size(), 2u);
  const TensorRecord &first = record.initializers[0];
  ASSERT_TRUE(first.hasBytes);
  EXPECT_EQ(bytes.substr(first.offset, first.length), bytesOf(kWeights));
  const TensorRecord &second = record.initializers[1];
  ASSERT_TRUE(second.hasBytes);
  EXPECT_EQ(bytes.substr(second.offset, second.length),
            bytesOf(std::vector<double>{0.5, -3}));
}

// Not packed: a tag before every value, so there is no image of the array.
TEST(WireFormat, UnpackedFloatsHaveNoBytes) {
  std::string tensor = "\x08\x02"; // dims: 2
  tensor += "\x10\x01";            // data_type: FLOAT
  tensor += StringRef("\x25\x00\x00\x80\x3f\x25\x00\x00\x00\x40", 10).str();
  tensor += "\x42\x01w"; // name: "w"
  std::string graph = "\x2a";
  graph += char(tensor.size());
  graph += tensor;
  std::string model = "\x3a";
  model += char(graph.size());
  model += graph;
  ModelRecord record = walk(model);
  ASSERT_EQ(record.initializers.size(), 1u);
  EXPECT_EQ(record.initializers[0].name, "w");
  EXPECT_FALSE(record.initializers[0].hasBytes);
  EXPECT_EQ(record.initializers[0].messageLength, tensor.size());
}

// Half floats in int32_data take four bytes each.
TEST(WireFormat, HalfFloatsInIntegersHaveNoBytes) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {1}, TensorProto::FLOAT16)->add_int32_data(15360);
  ModelRecord record = walk(model.SerializeAsString());
  ASSERT_EQ(record.initializers.size(), 1u);
  EXPECT_FALSE(record.initializers[0].hasBytes);
}

TEST(WireFormat, ReadsExternalData) {
  ::onnx::ModelProto model = makeModel();
  TensorProto *w = addInitializer(model, "w", {2, 3});
  w->set_data_location(TensorProto::EXTERNAL);
  auto *entry = w->add_external_data();
  entry->set_key("location");
  entry->set_value("m.data");
  ModelRecord record = walk(model.SerializeAsString());
  ASSERT_EQ(record.initializers.size(), 1u);
  EXPECT_TRUE(record.initializers[0].external);
  EXPECT_FALSE(record.initializers[0].hasBytes);
  ASSERT_EQ(record.initializers[0].externalData.size(), 1u);
  EXPECT_EQ(record.initializers[0].externalData[0].second, "m.data");
}

// Readers differ in which values they take.
TEST(WireFormat, RejectsTwoFieldsOfValues) {
  ::onnx::ModelProto model = makeModel();
  ::onnx::TensorProto *weight = addInitializer(model, "w", {2, 3});
  weight->set_raw_data(bytesOf(kWeights));
  weight->add_float_data(0.5f);
  EXPECT_EQ(walkError(model.SerializeAsString()),
            "initializer 'w' has values in more than one field; write the file "
            "anew");
}

TEST(WireFormat, SkeletonIsTheModelWithoutWeights) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  ModelRecord record = walk(model.SerializeAsString());
  ::onnx::ModelProto rest;
  ASSERT_TRUE(rest.ParseFromString(record.skeleton));
  model.mutable_graph()->clear_initializer();
  EXPECT_EQ(rest.SerializeAsString(), model.SerializeAsString());
}

// Every prefix of a model is an error, or a model without the missing fields;
// never a range outside of the file.
TEST(WireFormat, SurvivesTruncation) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  std::string bytes = model.SerializeAsString();
  for (size_t length = 0; length < bytes.size(); ++length) {
    Expected<ModelRecord> record =
        walkModel(StringRef(bytes).take_front(length));
    if (!record) {
      consumeError(record.takeError());
      continue;
    }
    for (const TensorRecord &tensor : record->initializers)
      EXPECT_LE(tensor.offset + tensor.length, length);
  }
}

// The same for every byte changed in every bit.
TEST(WireFormat, SurvivesCorruption) {
  ::onnx::ModelProto model = makeModel();
  addInitializer(model, "w", {2, 3})->set_raw_data(bytesOf(kWeights));
  const std::string bytes = model.SerializeAsString();
  for (size_t at = 0; at < bytes.size(); ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string corrupt = bytes;
      corrupt[at] ^= char(1u << bit);
      Expected<ModelRecord> record = walkModel(corrupt);
      if (!record) {
        consumeError(record.takeError());
        continue;
      }
      for (const TensorRecord &tensor : record->initializers)
        EXPECT_LE(tensor.offset + tensor.length, corrupt.size());
    }
}

TEST(WireFormat, SaysWhereItStops) {
  EXPECT_EQ(walkError("\x0a\x7f"),
            "not an ONNX model: byte 0: a field runs beyond the end: the file "
            "is truncated or corrupt");
  EXPECT_EQ(walkError("\x08\x01\x0b"),
            "not an ONNX model: byte 2: unknown wire type");
  EXPECT_EQ(walkError("\x08\x80"),
            "not an ONNX model: byte 1: it ends within "
            "a number: the file is truncated or corrupt");
  EXPECT_EQ(walkError("\x08\x01"), "not an ONNX model: it has no graph");
  EXPECT_EQ(walkError(StringRef("\x3a\x00\x3a\x00", 4)),
            "not an ONNX model: byte 2: a second graph");
}
