//===- NnOps.td - Composite ops of neural networks ---------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What autodiff must see whole, because the derivative of the composite is
// stabler or cheaper than the derivative of its parts. Everything else of a
// network is upstream linalg.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_NNOPS_TD
#define PENSTOCK_DIALECTS_NN_NNOPS_TD

include "dialects/Nn/NnDialect.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Nn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Nn_Dialect, mnemonic, traits>;

defvar crossEntropyRules = [{
    Constraints:
    - **M19**: the labels have the shape of the logits without the class axis,
      which is the last.
    - **M20**: the probabilities, and the result of the gradient, have the type
      of the logits.
    - **M21**: the loss and its cotangent are scalars.
    - **M22**: `smoothing` is at least 0 and less than 1.
    - **M23**: there are as many class weights as classes, each a finite number
      of at least 0.
}];

def Nn_CrossEntropyOp : Nn_Op<"cross_entropy", [Pure]> {
  let summary = "Mean softmax cross-entropy of logits against class labels";
  let description = !strconcat([{
    `logits` is [..., C] with the classes last, `labels` [...] of integers. The
    loss is the mean of -log softmax(logits)[label] over the labels that differ
    from `ignore`; `probabilities` is softmax(logits), kept for the derivative.

    With `class_weights` w, each label y counts w[y] times in the mean. With
    `smoothing` e, the target is not the label alone: the term of a row is
    (1 - e) * w[y] * nll[y] + e / C * sum(w * nll), with nll = -log softmax, and
    the divisor stays the sum of w[y], as PyTorch defines both.

    ```mlir
    %l, %p = nn.cross_entropy %z, %y ignore(-100) smoothing(0.1)
             class_weights [1.0, 2.0, 0.5]
           : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf32>)
    ```
  }], crossEntropyRules);
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$logits,
                       RankedTensorOf<[AnySignlessInteger]>:$labels,
                       OptionalAttr<I64Attr>:$ignore,
                       OptionalAttr<F64Attr>:$smoothing,
                       OptionalAttr<DenseF64ArrayAttr>:$class_weights);
  let results = (outs RankedTensorOf<[AnyFloat]>:$loss,
                      RankedTensorOf<[AnyFloat]>:$probabilities);
  let assemblyFormat = [{
    $logits `,` $labels (`ignore` `(` $ignore^ `)`)?
    (`smoothing` `(` $smoothing^ `)`)? (`class_weights` $class_weights^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Nn_CrossEntropyGradOp : Nn_Op<"cross_entropy_grad", [Pure]> {
  let summary = "Cotangent of the logits of nn.cross_entropy";
  let description = !strconcat([{
    (probabilities - onehot(labels)) * seed / (labels that count), zero where a
    label equals `ignore`. `seed` is the cotangent of the loss, a scalar tensor.
    With `smoothing` and `class_weights`, the derivative of what they say there.

    ```mlir
    %dz = nn.cross_entropy_grad %p, %y, %dl
        : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> tensor<5x3xf32>
    ```
  }], crossEntropyRules);
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$probabilities,
                       RankedTensorOf<[AnySignlessInteger]>:$labels,
                       RankedTensorOf<[AnyFloat]>:$seed,
                       OptionalAttr<I64Attr>:$ignore,
                       OptionalAttr<F64Attr>:$smoothing,
                       OptionalAttr<DenseF64ArrayAttr>:$class_weights);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $probabilities `,` $labels `,` $seed (`ignore` `(` $ignore^ `)`)?
    (`smoothing` `(` $smoothing^ `)`)? (`class_weights` $class_weights^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Nn_LogSoftmaxOp : Nn_Op<"log_softmax", [Pure, SameOperandsAndResultType]> {
  let summary = "Logarithm of the softmax along one axis";
  let description = [{
    x - max(x) - log(sum(exp(x - max(x)))) along axis `dim`: neither overflows
    nor takes the logarithm of 0. The cotangent of x is dy - exp(y) * sum(dy).

    ```mlir
    %y = nn.log_softmax %x dim(1) : tensor<5x3xf32>
    ```

    Constraints:
    - **M15**: `dim` is an axis of the operand.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = "$input `dim` `(` $dim `)` attr-dict `:` type($input)";
  let hasVerifier = 1;
}

include "dialects/Nn/ConvOps.td"
include "dialects/Nn/IndexOps.td"
include "dialects/Nn/NormalizeOps.td"
include "dialects/Nn/PoolOps.td"
include "dialects/Nn/RandomOps.td"

#endif // PENSTOCK_DIALECTS_NN_NNOPS_TD
