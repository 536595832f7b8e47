// RUN: penstock-opt %s --pipeline-outline-kernels | FileCheck %s
// RUN: penstock-opt %s --lower-program-to-llvm | FileCheck %s --check-prefix=LLVM

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Two equal layers, at different places of the scratch memory, are one kernel;
// the sum differs, and so does a layer with another constant.
// CHECK-LABEL: func.func private @forward(
// CHECK-SAME: %[[X:.*]]: memref<5x7xf32>, %[[Y:.*]]: memref<5xf32>, %[[SCRATCH:.*]]: memref<448xi8>
// CHECK: %[[A:.*]] = memref.view %[[SCRATCH]][%c0][]
// CHECK: %[[B:.*]] = memref.view %[[SCRATCH]][%c192][]
// CHECK-NOT: linalg.generic
// CHECK: call @[[RELU:forward.elementwise]](%[[X]], %[[A]])
// CHECK: call @[[RELU]](%[[A]], %[[B]])
// CHECK: call @[[OTHER:forward.elementwise_[0-9]+]](%[[B]], %[[A]])
// CHECK: call @[[SUM:forward.reduction]](%[[A]], %[[Y]])
// CHECK: return
// CHECK-DAG: func.func private @[[RELU]](%{{.*}}: memref<5x7xf32>, %{{.*}}: memref<5x7xf32>) attributes {passthrough = ["noinline"]}
// CHECK-DAG: func.func private @[[OTHER]](
// CHECK-DAG: func.func private @[[SUM]](

// Neither inlined nor visible from outside.
// LLVM-DAG: llvm.func internal @forward.elementwise(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) attributes {{{.*}}passthrough = ["noinline"]
func.func private @forward(%x: memref<5x7xf32>, %y: memref<5xf32>,
    %scratch: memref<448xi8> {pipeline.scratch}) {
  %c0 = arith.constant 0 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %a = memref.view %scratch[%c0][] : memref<448xi8> to memref<5x7xf32>
  %b = memref.view %scratch[%c192][] : memref<448xi8> to memref<5x7xf32>
  linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<5x7xf32>) outs(%a : memref<5x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.maximumf %in, %zero : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<5x7xf32>) outs(%b : memref<5x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.maximumf %in, %zero : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%b : memref<5x7xf32>) outs(%a : memref<5x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.maximumf %in, %one : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<5x7xf32>) outs(%y : memref<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  }
  return
}

// A number comes along; a loop over rows is a kernel; one alone stays.
// CHECK-LABEL: func.func private @rows(
// CHECK: call @rows.rows(%{{.*}}, %{{.*}}) : (memref<5x7xf32>, f32) -> ()
// CHECK: call @rows.elementwise(%{{.*}}, %{{.*}}) : (f32, memref<5x7xf32>) -> ()
func.func private @rows(%x: memref<5x7xf32>, %rate: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    %row = memref.subview %x[%i, 0] [1, 7] [1, 1]
        : memref<5x7xf32> to memref<1x7xf32, strided<[7, 1], offset: ?>>
    linalg.fill ins(%rate : f32)
        outs(%row : memref<1x7xf32, strided<[7, 1], offset: ?>>)
  }
  linalg.fill ins(%rate : f32) outs(%x : memref<5x7xf32>)
  return
}

// CHECK-LABEL: func.func private @alone(
// CHECK-SAME: noinline
// CHECK: linalg.fill
func.func private @alone(%x: memref<5x7xf32>, %rate: f32) {
  linalg.fill ins(%rate : f32) outs(%x : memref<5x7xf32>)
  return
}

// Slices of one array that begin elsewhere: equal loops, told where.
// CHECK-LABEL: func.func private @slices(
// CHECK: %[[A:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [5, 7], strides: [21, 1]
// CHECK: call @[[SLICE:slices.elementwise]](%{{.*}}, %[[A]], %c7{{.*}}) : (f32, memref<5x7xf32, strided<[21, 1]>>, index) -> ()
// CHECK: call @[[SLICE]](%{{.*}}, %{{.*}}, %c14{{.*}})
// CHECK: func.func private @[[SLICE]](%{{.*}}: f32, %[[FROM:.*]]: memref<5x7xf32, strided<[21, 1]>>, %[[OFFSET:.*]]: index)
// CHECK: memref.reinterpret_cast %[[FROM]] to offset: [%[[OFFSET]]], sizes: [5, 7], strides: [21, 1]
func.func private @slices(%x: memref<5x21xf32>, %rate: f32) {
  %a = memref.subview %x[0, 7] [5, 7] [1, 1]
      : memref<5x21xf32> to memref<5x7xf32, strided<[21, 1], offset: 7>>
  %b = memref.subview %x[0, 14] [5, 7] [1, 1]
      : memref<5x21xf32> to memref<5x7xf32, strided<[21, 1], offset: 14>>
  linalg.fill ins(%rate : f32)
      outs(%a : memref<5x7xf32, strided<[21, 1], offset: 7>>)
  linalg.fill ins(%rate : f32)
      outs(%b : memref<5x7xf32, strided<[21, 1], offset: 14>>)
  return
}

// What has an offset that is only known at run time stays.
// CHECK-LABEL: func.func private @dynamic(
// CHECK: linalg.fill
// CHECK: call @rows.elementwise
func.func private @dynamic(%x: memref<5x7xf32>, %i: index, %rate: f32) {
  %row = memref.subview %x[%i, 0] [1, 7] [1, 1]
      : memref<5x7xf32> to memref<1x7xf32, strided<[7, 1], offset: ?>>
  linalg.fill ins(%rate : f32)
      outs(%row : memref<1x7xf32, strided<[7, 1], offset: ?>>)
  linalg.fill ins(%rate : f32) outs(%x : memref<5x7xf32>)
  return
}
