//===- RandomOps.td - Random numbers and dropout -----------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A random number is a function of seed, node, microbatch and element, not the
// next one of a sequence: so it does not matter where, when and how often it is
// computed.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_RANDOMOPS_TD
#define PENSTOCK_DIALECTS_NN_RANDOMOPS_TD

def Nn_RandomBitsOp : Nn_Op<"random_bits", [Pure]> {
  let summary = "32 random bits of an element";
  let description = [{
    The first word of Philox-4x32-10 (Salmon et al., Parallel random numbers: as
    easy as 1, 2, 3, SC 2011) of the counter (`element`, `microbatch`), low word
    first, with the key (`seed`, `node`), where the high word of `seed` is added
    to `node`. A scalar op, for bodies of generics.

    ```mlir
    %bits = nn.random_bits %seed, %microbatch, %element node(7)
    ```
  }];
  let arguments = (ins I64:$seed, I64:$microbatch, I64:$element, I32Attr:$node);
  let results = (outs I32:$result);
  let assemblyFormat = [{
    $seed `,` $microbatch `,` $element `node` `(` $node `)` attr-dict
  }];
}

def Nn_DropoutOp : Nn_Op<"dropout",
    [Pure, AllTypesMatch<["input", "result"]>,
     AllShapesMatch<["input", "mask"]>,
     DeclareOpInterfaceMethods<ModeDependentOpInterface>]> {
  let summary = "Drops elements at random in training";
  let description = [{
    In training each element is zero with probability `ratio`, and divided by
    1 - ratio otherwise; `mask` says which were kept. The choice follows from
    the seed of the run, the number of the microbatch, `node` and the element's
    position. In evaluation nothing is dropped.

    ```mlir
    %y, %mask = nn.dropout %x ratio(0.1) node(7)
              : tensor<5x7xf32> -> tensor<5x7xi1>
    ```

    Constraints:
    - **M27**: `ratio` is from 0 to 1.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input, F64Attr:$ratio,
                       I32Attr:$node);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result,
                      RankedTensorOf<[I1]>:$mask);
  let assemblyFormat = [{
    $input `ratio` `(` $ratio `)` `node` `(` $node `)` attr-dict
    `:` type($input) `->` type($mask)
  }];
  let hasVerifier = 1;
}

#endif // PENSTOCK_DIALECTS_NN_RANDOMOPS_TD
