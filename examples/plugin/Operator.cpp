// org.example.SoftCap: cap * tanh(x / cap), which bounds scores as Gemma 2
// does. The derivative follows from the ops that it becomes.

#include "Example.h"

#include "lib/Import/Operators/OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

/// The attribute `cap`, 30 if the node has none.
static FailureOr<double> getCap(NodeBinder &node) {
  double cap = 30;
  if (failed(node.attribute("cap", cap)))
    return failure();
  if (!(cap > 0))
    return node.badAttribute("cap", "a positive number");
  return cap;
}

/// One float operand; the result has its type.
static Types inferSoftCap(NodeBinder &node) {
  if (failed(getCap(node)))
    return failure();
  return inferFloatUnary(node);
}

static Value softCap(NodeBinder &node, Emitter &emitter, Value x) {
  Value cap = emitter.scalar(x.getType(), *getCap(node));
  return emitter.mul(emitter.make<math::TanhOp>(emitter.div(x, cap)), cap);
}

void example::registerOperator() {
  addOperators([](OperatorTable &table) {
    table.entries.push_back({"org.example", "SoftCap", /*since=*/1,
                             inferSoftCap, /*fold=*/nullptr,
                             lowerUnary<softCap>, Operator::Differentiable});
  });
}
