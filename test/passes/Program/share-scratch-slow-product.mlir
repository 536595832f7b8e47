// Which products oneDNN has code for depends on the processor.
// REQUIRES: avx512
// RUN: not penstock-opt %S/inputs/slow-product.mlir --pipeline-share-scratch \
// RUN:   2>&1 | FileCheck %s

// CHECK: error: no library can compute this product: oneDNN has only its reference implementation
