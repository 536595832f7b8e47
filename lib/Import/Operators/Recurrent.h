//===- Recurrent.h - What RNN, GRU and LSTM share ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Their attributes and shapes, their scalar functions, and the steps of one
// direction.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_RECURRENT_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_RECURRENT_H

#include "Emitter.h"
#include "NodeBinder.h"

namespace penstock::onnx {

enum class Cell { Rnn, Gru, Lstm };
namespace recurrent {
enum Operand { X, W, R, Bias, Lengths, InitialH, InitialC, Peepholes };
} // namespace recurrent

/// A scalar function of the specification, with its parameters.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;

  /// Takes the name's own alpha and beta; false: there is no such function.
  bool setDefaults();
  mlir::Value apply(Emitter &e, mlir::Value x) const;
};

struct Recurrence {
  Cell cell;
  int64_t gates;
  int64_t steps, batch, inputs, hidden, directions;
  bool isReverse = false;
  bool batchFirst = false;
  /// True if some sequences may end before the last step.
  bool isRagged = false;
  bool linearBeforeReset = false, inputForget = false;
  double clip = 0;
  /// Per direction, those of a cell one after another.
  llvm::SmallVector<Activation> activations;

  llvm::LogicalResult bind(NodeBinder &node, Cell cell);
  mlir::RankedTensorType sequenceType(NodeBinder &node) const;
  mlir::RankedTensorType stateType(NodeBinder &node) const;

private:
  llvm::LogicalResult bindActivations(NodeBinder &node);
  llvm::LogicalResult bindShapes(NodeBinder &node);
  llvm::LogicalResult bindLengths(NodeBinder &node);
  llvm::LogicalResult checkShape(NodeBinder &node, unsigned i,
                                 llvm::ArrayRef<int64_t> expected);
};

/// Emits one direction.
class DirectionWriter {
public:
  DirectionWriter(NodeBinder &node, Emitter &emitter,
                  const Recurrence &recurrence, int64_t direction);

  /// The states after each step, by their place in the sequence.
  void run(mlir::Value inputs);
  llvm::SmallVector<mlir::Value> outputs;
  /// The state at the end.
  mlir::Value hidden, cell;

private:
  mlir::Value slice(mlir::Value value, llvm::ArrayRef<int64_t> offsets,
                    llvm::ArrayRef<int64_t> sizes);
  /// The part of this direction of an operand [directions, ...].
  mlir::Value ofDirection(mlir::Value value);
  mlir::Value initial(unsigned operand);
  /// A gate's columns of [batch, gates * hidden].
  mlir::Value gate(mlir::Value all, int64_t number);
  /// A gate's part of a bias [.. * hidden].
  mlir::Value part(mlir::Value all, int64_t number);
  mlir::Value product(mlir::Value left, mlir::Value right,
                      mlir::RankedTensorType type);
  mlir::Value activate(Emitter &e, unsigned number, mlir::Value x) const;
  template <typename Body>
  mlir::Value elementwise(llvm::ArrayRef<mlir::Value> operands, Body body) {
    return emitter.elementwise(state, operands, body);
  }
  /// The sum in an op of its own, so that it is a value of the forward wherever
  /// a derivative reads it: a backward may have other parameters.
  mlir::Value emitAdd(mlir::Value a, mlir::Value b);
  /// The first activation of a sum.
  mlir::Value activated(mlir::Value a, mlir::Value b);
  void stepRnn(mlir::Value input);
  void stepGru(mlir::Value input);
  void stepLstm(mlir::Value input);
  /// `value` in the sequences that have the step, `other` in those that ended.
  mlir::Value keepWhere(int64_t step, mlir::Value value, mlir::Value other);

  NodeBinder &node;
  Emitter &emitter;
  const Recurrence &r;
  int64_t direction;
  mlir::Type element;
  mlir::RankedTensorType state;
  mlir::Value recurrent, recurrentBias, peepholes, lengths;
  /// The state is the initial one: no data, so that what the recurrent weights
  /// make of it is made of parameters only.
  bool isFirst = false;
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_RECURRENT_H
