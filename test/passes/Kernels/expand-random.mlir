// RUN: penstock-opt %s --nn-expand-composites --canonicalize --split-input-file | FileCheck %s

// The known answers of Random123 for Philox-4x32-10, first words: counter and
// key of zeros, of ones, and of the digits of pi.
// CHECK-LABEL: func.func @zeros
// CHECK:         %[[R:.*]] = arith.constant 1713891541 : i32
// CHECK:         return %[[R]]
func.func @zeros() -> i32 {
  %seed = arith.constant 0 : i64
  %zero = arith.constant 0 : i64
  %r = nn.random_bits %seed, %zero, %zero node(0)
  return %r : i32
}

// -----

// 0x408f276d
// CHECK-LABEL: func.func @ones
// CHECK:         %[[R:.*]] = arith.constant 1083123565 : i32
// CHECK:         return %[[R]]
func.func @ones() -> i32 {
  %seed = arith.constant 0xffffffff : i64
  %one = arith.constant -1 : i64
  %r = nn.random_bits %seed, %one, %one node(-1)
  return %r : i32
}

// -----

// Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: d16cfe09.
// CHECK-LABEL: func.func @pi
// CHECK:         %[[R:.*]] = arith.constant -781386231 : i32
// CHECK:         return %[[R]]
func.func @pi() -> i32 {
  %seed = arith.constant 0xa4093822 : i64
  %element = arith.constant 0x85a308d3243f6a88 : i64
  %microbatch = arith.constant 0x0370734413198a2e : i64
  %r = nn.random_bits %seed, %microbatch, %element node(0x299f31d0)
  return %r : i32
}

// -----

// The high word of the seed is added to the node.
// CHECK-LABEL: func.func @wide
// CHECK:         %[[R:.*]] = arith.constant -781386231 : i32
// CHECK:         return %[[R]]
func.func @wide() -> i32 {
  %seed = arith.constant 0x299f31cfa4093822 : i64
  %element = arith.constant 0x85a308d3243f6a88 : i64
  %microbatch = arith.constant 0x0370734413198a2e : i64
  %r = nn.random_bits %seed, %microbatch, %element node(1)
  return %r : i32
}

// -----

// In a body there are integers only: vectors go through it.
// CHECK-LABEL: func.func @body
// CHECK:         linalg.generic
// CHECK-NOT:     nn.
// CHECK-COUNT-18: arith.muli
// CHECK-NOT:     nn.
// CHECK:         return
func.func @body(%seed: i64, %k: i64, %e: tensor<5xi32>) -> tensor<5xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<5xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %b = nn.random_bits %seed, %k, %n node(3)
    linalg.yield %b : i32
  } -> tensor<5xi32>
  return %r : tensor<5xi32>
}
