// RUN: penstock-opt %s --pipeline-place-constants | FileCheck %s

// A library call reads a constant in the memory of the device.

memref.global "private" constant @weights : memref<3x5xf32> = dense<2.0>

// CHECK-LABEL: func.func @product(
// CHECK:         %[[B:.*]] = kernel.constant @weights : memref<3x5xf32>
// CHECK-NOT:     memref.get_global
// CHECK:         kernel.gemm %{{.*}}, %[[B]], %{{.*}} sizes [7, 5, 3]
func.func @product(%a: memref<7x3xf32>, %c: memref<7x5xf32>) {
  %b = memref.get_global @weights : memref<3x5xf32>
  %unused = memref.get_global @weights : memref<3x5xf32>
  kernel.gemm %a, %b, %c sizes [7, 5, 3] strides [3, 1] [5, 1] [5, 1]
    config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x5xf32>, memref<7x5xf32>
  return
}
