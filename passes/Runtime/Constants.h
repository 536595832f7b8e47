//===- Constants.h - Builds constant tables in LLVM IR ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Structs, arrays and strings of the C ABI as LLVM globals. A table is written
// as a tree of fields; types follow from the fields as in C.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_CONSTANTS_H
#define PENSTOCK_PASSES_RUNTIME_CONSTANTS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/ADT/StringMap.h"

#include <variant>
#include <vector>

namespace penstock {

/// A constant: a number, the address of a symbol, or a struct of constants.
class Constant {
public:
  static Constant i32(int64_t value) { return Constant(Integer{32, value}); }
  static Constant i64(int64_t value) { return Constant(Integer{64, value}); }
  static Constant f64(double value) { return Constant(value); }
  /// The null pointer, if empty.
  static Constant address(llvm::StringRef symbol) {
    return Constant(symbol.str());
  }
  static Constant null() { return address(""); }
  static Constant fields(std::vector<Constant> fields) {
    return Constant(Fields{std::move(fields), false});
  }
  /// Constants of one type, at least one.
  static Constant array(std::vector<Constant> elements) {
    return Constant(Fields{std::move(elements), true});
  }
  static Constant bytes(llvm::ArrayRef<uint8_t> bytes) {
    return Constant(std::vector<uint8_t>(bytes.begin(), bytes.end()));
  }
  static Constant integers(llvm::ArrayRef<int64_t> values);

private:
  friend class ConstantBuilder;
  struct Integer {
    unsigned width;
    int64_t value;
  };
  struct Fields {
    std::vector<Constant> parts;
    bool isArray;
  };
  template <typename T> explicit Constant(T value) : value(std::move(value)) {}

  std::variant<Integer, double, std::string, std::vector<uint8_t>, Fields>
      value;
};

/// Adds globals to a module.
class ConstantBuilder {
public:
  explicit ConstantBuilder(mlir::ModuleOp module);

  /// A global of this name; `exported` ones are visible to the linker.
  void add(llvm::StringRef name, const Constant &value, bool exported = false);
  /// The address of a symbol that another module defines.
  Constant declare(llvm::StringRef symbol);
  /// The address of the values of a constant, which has this name.
  Constant values(llvm::StringRef name, mlir::DenseElementsAttr values);
  /// The address of a string that ends with a zero; equal ones are shared.
  Constant string(llvm::StringRef text);
  /// The address of an array, or null when it is empty.
  Constant table(llvm::StringRef name, std::vector<Constant> elements);
  /// The address of an array of i64; equal ones are shared.
  Constant shape(llvm::ArrayRef<int64_t> sizes);

private:
  mlir::Type getType(const Constant &value);
  static bool isZero(const Constant &value);
  mlir::Value emit(mlir::OpBuilder &builder, const Constant &value);
  mlir::Value emitLeaf(mlir::OpBuilder &builder, mlir::Type type,
                       mlir::Attribute value);

  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  llvm::StringMap<std::string> strings;
  llvm::StringMap<std::string> shapes;
  /// The numbers and addresses of the global that is being built.
  llvm::DenseMap<std::pair<mlir::Type, mlir::Attribute>, mlir::Value> leaves;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_CONSTANTS_H
