//===- Proto.cpp - The border to libonnx and protobuf ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libonnx gives us the textual syntax and the table of operator versions up to
// opset 17; its checker and its shape inference reject or mistake today's files
// and are not used.
//===----------------------------------------------------------------------===//

#include "Proto.h"

#include <onnx/defs/parser.h>
#include <onnx/defs/schema.h>

#include <bit>
#include <cstring>
#include <exception>

using namespace penstock::onnx;
using ::onnx::TensorProto;

static_assert(std::endian::native == std::endian::little,
              "byte images of tensors are little-endian");

/// Runs `body`, and turns what it throws into a message.
template <typename Body> static std::string guarded(Body body) {
  // The library would print to stderr what we report ourselves.
  google::protobuf::SetLogHandler(nullptr);
  try {
    return body();
  } catch (const std::exception &error) {
    return error.what()[0] ? error.what() : "unknown error";
  } catch (...) {
    return "unknown error";
  }
}

std::string penstock::onnx::parseText(const std::string &text,
                                      ::onnx::ModelProto &model) {
  return guarded([&]() -> std::string {
    ::onnx::OnnxParser parser(text.c_str());
    ::onnx::Common::Status status = parser.Parse(model);
    if (!status.IsOK())
      return status.ErrorMessage();
    if (!parser.EndOfInput())
      return "text after the end of the model";
    return "";
  });
}

std::string
penstock::onnx::parseBinary(const char *bytes, size_t size,
                            google::protobuf::MessageLite &message) {
  return guarded([&]() -> std::string {
    if (size > size_t(INT32_MAX))
      return "it has more than 2 GiB outside of its weights";
    if (!message.ParseFromArray(bytes, int(size)))
      return "not an ONNX model: malformed message";
    return "";
  });
}

std::string
penstock::onnx::serialize(const google::protobuf::MessageLite &message,
                          std::string &bytes) {
  return guarded([&]() -> std::string {
    if (!message.SerializeToString(&bytes))
      return "the model is too large to be written (2 GiB)";
    return "";
  });
}

template <typename Value, typename List>
static void moveToRaw(TensorProto &tensor, List &list) {
  std::string raw(list.size() * sizeof(Value), '\0');
  char *out = raw.data();
  for (auto element : list) {
    Value value = Value(element);
    std::memcpy(out, &value, sizeof(Value));
    out += sizeof(Value);
  }
  list.Clear();
  tensor.set_raw_data(std::move(raw));
}

std::string penstock::onnx::moveFloatsToRawData(::onnx::ModelProto &model) {
  return guarded([&]() -> std::string {
    for (TensorProto &tensor : *model.mutable_graph()->mutable_initializer()) {
      if (tensor.data_location() == TensorProto::EXTERNAL)
        return "it has external data, which a binary copy cannot refer to";
      if (tensor.has_raw_data())
        continue;
      switch (tensor.data_type()) {
      case TensorProto::FLOAT:
        moveToRaw<float>(tensor, *tensor.mutable_float_data());
        break;
      case TensorProto::DOUBLE:
        moveToRaw<double>(tensor, *tensor.mutable_double_data());
        break;
      case TensorProto::FLOAT16:
      case TensorProto::BFLOAT16:
        moveToRaw<uint16_t>(tensor, *tensor.mutable_int32_data());
        break;
      default:
        break;
      }
    }
    return "";
  });
}

std::string penstock::onnx::readAttributeDefaults(
    const ::onnx::FunctionProto &function,
    google::protobuf::RepeatedPtrField<::onnx::AttributeProto> &defaults) {
  constexpr int kAttributeProtoField = 11;
  return guarded([&]() -> std::string {
    const google::protobuf::UnknownFieldSet &fields =
        function.GetReflection()->GetUnknownFields(function);
    for (int i = 0; i < fields.field_count(); ++i) {
      const google::protobuf::UnknownField &field = fields.field(i);
      if (field.number() != kAttributeProtoField ||
          field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        continue;
      if (!defaults.Add()->ParseFromString(field.length_delimited()))
        return "function '" + function.name() +
               "': malformed default of an attribute";
    }
    return "";
  });
}

namespace {
struct NewVersions {
  int64_t opset;
  const char *types;
};
} // namespace

// Operators that opsets 18 to 23 added or changed; libonnx knows the older
// ones.
static constexpr NewVersions kNewVersions[] = {
    {18, " BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CenterCropPad Col2Im "
         "GroupNormalization LpPool Mish OptionalGetElement "
         "OptionalHasElement Pad ReduceL1 ReduceL2 ReduceLogSum "
         "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
         "ReduceSumSquare Resize ScatterElements ScatterND Split "},
    {19, " AveragePool Cast CastLike Constant DeformConv DequantizeLinear "
         "Equal Identity If Loop Pad QuantizeLinear Reshape Resize Scan Shape "
         "Size "},
    {20, " AffineGrid ConstantOfShape DFT Gelu GridSample ImageDecoder IsInf "
         "IsNaN ReduceMax ReduceMin RegexFullMatch StringConcat StringSplit "},
    {21, " Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten "
         "GroupNormalization Identity If Loop Pad QLinearMatMul "
         "QuantizeLinear Reshape Scan Shape Size Squeeze Transpose "
         "Unsqueeze "},
    {22, " Acos Acosh Asin Asinh Atan Atanh AveragePool Bernoulli Conv "
         "ConvTranspose Cos Cosh DeformConv Det Dropout Elu EyeLike GRU "
         "GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample HardSigmoid "
         "HardSwish InstanceNormalization LSTM LpNormalization LpPool MaxPool "
         "MaxRoiPool MaxUnpool Mish Multinomial NegativeLogLikelihoodLoss "
         "NonMaxSuppression RNN RandomNormal RandomNormalLike RandomUniform "
         "RandomUniformLike RoiAlign Round Selu Sin Sinh Softplus Softsign "
         "Tan ThresholdedRelu "},
    {23, " Attention Cast CastLike Constant ConstantOfShape DequantizeLinear "
         "Flatten Identity If Loop Pad QuantizeLinear RMSNormalization "
         "Reshape RotaryEmbedding Scan Shape Size Squeeze Transpose "
         "Unsqueeze "}};

namespace {
struct NewAttributes {
  int64_t since;
  const char *types;
  const char *names;
};
} // namespace

// All attributes of those operators whose attributes opsets 18 to 23 changed.
static constexpr NewAttributes kNewAttributes[] = {
    {18, " BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Mish ", " "},
    {18, " CenterCropPad ", " axes "},
    {18, " Col2Im ", " dilations pads strides "},
    {18, " GroupNormalization ", " epsilon num_groups "},
    {18, " LpPool ",
     " auto_pad ceil_mode dilations kernel_shape p pads strides "},
    {18,
     " ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
     "ReduceMin ReduceProd ReduceSumSquare ",
     " keepdims noop_with_empty_axes "},
    {18, " Resize ",
     " antialias axes coordinate_transformation_mode cubic_coeff_a "
     "exclude_outside extrapolation_value keep_aspect_ratio_policy mode "
     "nearest_mode "},
    {18, " Split ", " axis num_outputs "},
    {19, " AveragePool ",
     " auto_pad ceil_mode count_include_pad dilations kernel_shape pads "
     "strides "},
    {19, " Cast ", " saturate to "},
    {19, " CastLike ", " saturate "},
    {19, " DeformConv ",
     " dilations group kernel_shape offset_group pads strides "},
    {19, " QuantizeLinear ", " axis saturate "},
    {20, " AffineGrid ", " align_corners "},
    {20, " DFT ", " inverse onesided "},
    {20, " Gelu ", " approximate "},
    {20, " ImageDecoder ", " pixel_format "},
    {20, " RegexFullMatch ", " pattern "},
    {20, " StringConcat ", " "},
    {20, " StringSplit ", " delimiter maxsplit "},
    {21, " DequantizeLinear ", " axis block_size "},
    {21, " GroupNormalization ", " epsilon num_groups stash_type "},
    {21, " QuantizeLinear ", " axis block_size output_dtype saturate "},
    {23, " Attention ",
     " is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap "
     "softmax_precision "},
    {23, " DequantizeLinear ", " axis block_size output_dtype "},
    {23, " QuantizeLinear ",
     " axis block_size output_dtype precision saturate "},
    {23, " RMSNormalization ", " axis epsilon stash_type "},
    {23, " RotaryEmbedding ", " interleaved num_heads rotary_embedding_dim "}};

// Those of com.microsoft, of which libonnx knows nothing, as ONNX Runtime has
// them.
static constexpr NewAttributes kMicrosoftAttributes[] = {
    {1, " BiasGelu FastGelu Gelu ", " "},
    {1, " EmbedLayerNormalization ", " epsilon mask_index_type "},
    {1, " FusedConv ",
     " activation activation_params auto_pad dilations group kernel_shape "
     "pads strides "},
    {1, " FusedGemm ",
     " activation activation_alpha activation_beta activation_gamma alpha "
     "beta transA transB "},
    {1, " FusedMatMul ", " alpha transA transB transBatchA transBatchB "},
    {1, " LayerNormalization SimplifiedLayerNormalization ",
     " axis epsilon stash_type "},
    {1, " QuickGelu ", " alpha "},
    {1, " SkipLayerNormalization SkipSimplifiedLayerNormalization ",
     " epsilon "}};

// The newest opset of which libonnx has the schemas.
static constexpr int64_t kNewestKnown = 17;

static bool hasWord(const char *words, const std::string &word) {
  return std::strstr(words, (" " + word + " ").c_str());
}

bool penstock::onnx::isKnownAttribute(const std::string &domain,
                                      const std::string &type, int64_t since,
                                      const std::string &name) {
  const char *names = nullptr;
  auto search = [&](const auto &rows) {
    for (const NewAttributes &row : rows)
      if (row.since <= since && hasWord(row.types, type))
        names = row.names;
  };
  if (domain.empty())
    search(kNewAttributes);
  else if (domain == "com.microsoft")
    search(kMicrosoftAttributes);
  if (names)
    return hasWord(names, name);
  bool known = true;
  if (!domain.empty())
    return known;
  guarded([&]() -> std::string {
    if (const ::onnx::OpSchema *schema = ::onnx::OpSchemaRegistry::Schema(
            type, int(std::min(since, kNewestKnown)), ""))
      known = schema->attributes().contains(name);
    return "";
  });
  return known;
}

::onnx::AttributeProto::AttributeType
penstock::onnx::getStandardAttributeType(const std::string &type, int64_t since,
                                         const std::string &name) {
  auto result = ::onnx::AttributeProto::UNDEFINED;
  guarded([&]() -> std::string {
    if (const ::onnx::OpSchema *schema = ::onnx::OpSchemaRegistry::Schema(
            type, int(std::min(since, kNewestKnown)), ""))
      if (auto attribute = schema->attributes().find(name);
          attribute != schema->attributes().end())
        result = attribute->second.type;
    return "";
  });
  return result;
}

int64_t penstock::onnx::getStandardSinceVersion(const std::string &type,
                                                int64_t opset) {
  int64_t since = 0;
  for (const NewVersions &row : kNewVersions)
    if (row.opset <= opset && hasWord(row.types, type))
      since = row.opset;
  if (since)
    return since;
  guarded([&]() -> std::string {
    if (const ::onnx::OpSchema *schema = ::onnx::OpSchemaRegistry::Schema(
            type, int(std::min(opset, kNewestKnown)), ""))
      since = schema->SinceVersion();
    return "";
  });
  return since;
}
