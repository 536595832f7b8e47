//===- Proto.h - The border to libonnx and protobuf -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proto.cpp is the one file compiled with exceptions; it lets none through.
// Every function returns an empty string, or what went wrong.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_PROTO_H
#define PENSTOCK_LIB_IMPORT_PROTO_H

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>

namespace penstock::onnx {

std::string parseText(const std::string &text, ::onnx::ModelProto &model);
std::string parseBinary(const char *bytes, size_t size,
                        google::protobuf::MessageLite &message);
std::string serialize(const google::protobuf::MessageLite &message,
                      std::string &bytes);

/// Moves the values of every float initializer into raw_data, little-endian.
std::string moveFloatsToRawData(::onnx::ModelProto &model);

/// The default values of a function's attributes, which libonnx 1.12 does not
/// know yet.
std::string readAttributeDefaults(
    const ::onnx::FunctionProto &function,
    google::protobuf::RepeatedPtrField<::onnx::AttributeProto> &defaults);

/// The since-version of `type` in the ONNX standard at `opset` of the default
/// domain; 0 when the standard has no such operator.
int64_t getStandardSinceVersion(const std::string &type, int64_t opset);

/// Returns true if `type` has an attribute of this name at since-version
/// `since`. True for operators that are not known here.
bool isKnownAttribute(const std::string &domain, const std::string &type,
                      int64_t since, const std::string &name);

/// Returns the type that the ONNX standard gives an attribute, or UNDEFINED
/// where the attribute is not known here.
::onnx::AttributeProto::AttributeType
getStandardAttributeType(const std::string &type, int64_t since,
                         const std::string &name);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_PROTO_H
