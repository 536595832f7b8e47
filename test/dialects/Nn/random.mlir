// Random numbers and dropout, printed and parsed, and what the verifier says.
// RUN: penstock-opt %s --split-input-file --verify-diagnostics --verify-roundtrip

func.func @all(%x: tensor<5x7xf32>, %s: i64, %k: i64) -> (tensor<5x7xf32>, i32) {
  %y, %m = nn.dropout %x ratio(0.25) node(-3) : tensor<5x7xf32> -> tensor<5x7xi1>
  %b = nn.random_bits %s, %k, %k node(7)
  return %y, %b : tensor<5x7xf32>, i32
}

// -----

func.func @ratio(%x: tensor<5x7xf32>) {
  // expected-error @below {{'nn.dropout' op M27: ratio is from 0 to 1, got 1.5}}
  %y, %m = nn.dropout %x ratio(1.5) node(0) : tensor<5x7xf32> -> tensor<5x7xi1>
  return
}
