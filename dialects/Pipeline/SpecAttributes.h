//===- SpecAttributes.h - Rows of tables as attributes ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Methods, optimizers, learning-rate schedules and schedules are attributes
// `#pipeline.method<name, key = value>`. The libraries that know the rows
// register their tables with the dialect, which verifies by them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_SPECATTRIBUTES_H
#define PENSTOCK_DIALECTS_PIPELINE_SPECATTRIBUTES_H

#include "penstock/Support/Assert.h"
#include "penstock/Support/Spec.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace penstock::pipeline {

/// Returns the values that were given: of flags `bool`, of whole numbers `i64`,
/// of others `f64`. Keys have underscores in place of hyphens.
mlir::DictionaryAttr getParameters(const Spec &spec,
                                   mlir::MLIRContext *context);

/// Returns the row `name` with these values. On failure `error` says what is
/// wrong and what would be right.
std::optional<Spec> getSpec(const SpecTable &table, llvm::StringRef name,
                            mlir::DictionaryAttr parameters,
                            std::string &error);

/// The same of an attribute that was verified by this table.
template <typename SpecAttr>
Spec getSpec(const SpecTable &table, SpecAttr attr) {
  std::string error;
  std::optional<Spec> spec =
      getSpec(table, attr.getKind(), attr.getParameters(), error);
  PENSTOCK_ASSERT(spec, "attributes are verified by their table");
  return std::move(*spec);
}

} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_SPECATTRIBUTES_H
