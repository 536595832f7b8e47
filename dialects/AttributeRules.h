//===- AttributeRules.h - Tables of discardable attributes ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dialect lists its discardable attributes on ops in a table, and verifies
// them by it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_ATTRIBUTERULES_H
#define PENSTOCK_DIALECTS_ATTRIBUTERULES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"

namespace penstock {

struct AttributeRule {
  llvm::StringLiteral name;
  bool (*holds)(mlir::Operation *op, mlir::Attribute value);
  /// Completes "'name' is".
  llvm::StringLiteral statement;
};

/// The rule of an attribute that is on an `Op` and is a `Value`.
template <typename Op, typename Value>
bool isOn(mlir::Operation *op, mlir::Attribute value) {
  return llvm::isa<Op>(op) && llvm::isa<Value>(value);
}

/// An attribute without a rule is an error.
inline llvm::LogicalResult verifyAttribute(llvm::ArrayRef<AttributeRule> rules,
                                           mlir::Operation *op,
                                           mlir::NamedAttribute attribute) {
  const AttributeRule *rule =
      llvm::find_if(rules, [&](const AttributeRule &rule) {
        return rule.name == attribute.getName();
      });
  if (rule == rules.end())
    return op->emitOpError() << "'" << attribute.getName().getValue()
                             << "' is no attribute of an op";
  if (rule->holds(op, attribute.getValue()))
    return llvm::success();
  return op->emitOpError() << "'" << rule->name << "' is " << rule->statement;
}

} // namespace penstock

#endif // PENSTOCK_DIALECTS_ATTRIBUTERULES_H
