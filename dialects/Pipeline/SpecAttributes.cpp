//===- SpecAttributes.cpp - Rows of tables as attributes ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversion between records and dictionaries, and the attributes' verifiers.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/SpecAttributes.h"

#include "dialects/Pipeline/Pipeline.h"

#include <algorithm>

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static std::string spell(StringRef text, char from, char to) {
  std::string result = text.str();
  std::replace(result.begin(), result.end(), from, to);
  return result;
}

DictionaryAttr penstock::pipeline::getParameters(const Spec &spec,
                                                 MLIRContext *context) {
  Builder builder(context);
  NamedAttrList parameters;
  for (const SpecKey &key : spec.getKind().keys) {
    if (!spec.isGiven(key.name))
      continue;
    Attribute value;
    switch (key.type) {
    case SpecKey::Flag:
      value = builder.getBoolAttr(spec.has(key.name));
      break;
    case SpecKey::Whole:
      value = builder.getI64IntegerAttr(spec.getWhole(key.name));
      break;
    case SpecKey::Number:
      value = builder.getF64FloatAttr(spec.get(key.name));
      break;
    }
    parameters.set(spell(key.name, '-', '_'), value);
  }
  return parameters.getDictionary(context);
}

/// The value of a parameter, if it has the type of the key.
static std::optional<double> getValue(const SpecKey &key, Attribute value) {
  switch (key.type) {
  case SpecKey::Flag:
    if (auto flag = dyn_cast<BoolAttr>(value))
      return flag.getValue();
    break;
  case SpecKey::Whole:
    if (auto number = dyn_cast<IntegerAttr>(value);
        number && number.getType().isSignlessInteger(64))
      return static_cast<double>(number.getInt());
    break;
  case SpecKey::Number:
    if (auto number = dyn_cast<FloatAttr>(value);
        number && number.getType().isF64())
      return number.getValueAsDouble();
    break;
  }
  return std::nullopt;
}

std::optional<Spec> penstock::pipeline::getSpec(const SpecTable &table,
                                                StringRef name,
                                                DictionaryAttr parameters,
                                                std::string &error) {
  static constexpr StringLiteral kTypes[] = {"true or false", "an i64",
                                             "an f64"};
  const SpecKind *kind = table.find(name);
  if (!kind) {
    error = table.describeUnknown(name);
    return std::nullopt;
  }
  Spec spec(*kind);
  for (NamedAttribute parameter : parameters) {
    std::string keyName = spell(parameter.getName().getValue(), '_', '-');
    const SpecKey *key = kind->findKey(keyName);
    if (!key) {
      error = table.describeUnknownKey(*kind, keyName);
      return std::nullopt;
    }
    std::optional<double> value = getValue(*key, parameter.getValue());
    if (!value) {
      error = table.getSubject(*kind) + ": " + keyName + " is " +
              kTypes[key->type].str();
      return std::nullopt;
    }
    error = spec.set(*key, *value);
    if (!error.empty())
      return std::nullopt;
  }
  error = spec.check();
  if (!error.empty())
    return std::nullopt;
  return spec;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// The table of the attribute's mnemonic; null where no library has added one,
/// so that nothing is known about the rows.
static const SpecTable *findTable(MLIRContext *context, StringRef mnemonic) {
  auto *dialect = context->getLoadedDialect<PipelineDialect>();
  return dialect ? dialect->findTable(mnemonic) : nullptr;
}

static LogicalResult verifySpec(function_ref<InFlightDiagnostic()> emitError,
                                StringRef mnemonic, StringRef kind,
                                DictionaryAttr parameters) {
  const SpecTable *table = findTable(parameters.getContext(), mnemonic);
  std::string error;
  if (table && !getSpec(*table, kind, parameters, error))
    return emitError() << error;
  return success();
}

template <typename SpecAttr> static std::string printText(SpecAttr attr) {
  const SpecTable *table =
      findTable(attr.getContext(), SpecAttr::getMnemonic());
  return table ? getSpec(*table, attr).getText() : attr.getKind().str();
}

LogicalResult MethodAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef kind, DictionaryAttr parameters) {
  return verifySpec(emitError, getMnemonic(), kind, parameters);
}

std::string MethodAttr::getText() const { return printText(*this); }

LogicalResult
OptimizerAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringRef kind, DictionaryAttr parameters) {
  return verifySpec(emitError, getMnemonic(), kind, parameters);
}

std::string OptimizerAttr::getText() const { return printText(*this); }

LogicalResult RateAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringRef kind, DictionaryAttr parameters) {
  return verifySpec(emitError, getMnemonic(), kind, parameters);
}

std::string RateAttr::getText() const { return printText(*this); }

LogicalResult
GeneratorAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringRef kind, DictionaryAttr parameters) {
  return verifySpec(emitError, getMnemonic(), kind, parameters);
}

std::string GeneratorAttr::getText() const { return printText(*this); }

LogicalResult ClippingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   FloatAttr norm, ClipScope) {
  if (!norm.getType().isF64() || !(norm.getValueAsDouble() > 0) ||
      !norm.getValue().isFinite())
    return emitError() << "the bound of a norm is a positive f64, got " << norm;
  return success();
}
