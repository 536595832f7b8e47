// RUN: penstock-opt %s --split-input-file --verify-diagnostics --pipeline-outline-gpu-kernels

func.func private @load(%x: memref<f32>) -> f32 {
  // expected-error @below {{'memref.load' op gives the host a value from the memory of the GPU, which it cannot read; run this stage on a CPU}}
  %v = memref.load %x[] : memref<f32>
  return %v : f32
}

// -----

func.func private @dynamic(%x: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{'linalg.fill' op has no form as a GPU kernel: it is on a buffer whose shape or strides are not constant: 'memref<?xf32>'}}
  linalg.fill ins(%zero : f32) outs(%x : memref<?xf32>)
  return
}

// -----

func.func private @views(%x: memref<48xi8>, %at: memref<5xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    %k = memref.load %at[%i] : memref<5xindex>
    // expected-error @below {{'memref.view' op has no form within a GPU kernel}}
    %y = memref.view %x[%k][] : memref<48xi8> to memref<7xf32>
    %v = memref.load %y[%i] : memref<7xf32>
    memref.store %v, %y[%c0] : memref<7xf32>
  }
  return
}

// -----

func.func private @call(%x: memref<7x7xf32>) {
  // expected-error @below {{'scf.forall' op calls a library within a GPU kernel}}
  scf.forall (%i) in (5) {
    kernel.gemm %x, %x, %x sizes [7, 7, 7] strides [7, 1] [7, 1] [7, 1]
        : memref<7x7xf32>, memref<7x7xf32>, memref<7x7xf32>
  }
  return
}
