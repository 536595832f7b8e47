// RUN: penstock-opt %s --pipeline-bufferize-functions | FileCheck %s

// A convolution that fills half of a concatenation gets a buffer of its own.

// CHECK-LABEL: func.func private @joined.kernel
// CHECK:         %[[DENSE:.*]] = memref.view %{{.*}} : memref<640xi8> to memref<2x3x5x5xf32>
// CHECK:         %[[PART:.*]] = memref.subview %{{.*}}[0, 3, 0, 0] [2, 3, 5, 5]
// CHECK:         nn.conv %{{.*}} outs(%[[DENSE]])
// CHECK-NEXT:    linalg.copy ins(%[[DENSE]] : {{.*}}) outs(%[[PART]] :
func.func private @joined(%x: tensor<2x3x5x5xf32>, %w: tensor<3x3x1x1xf32>) -> tensor<2x6x5x5xf32> {
  %e = tensor.empty() : tensor<2x3x5x5xf32>
  %y = nn.conv %x, %w outs(%e) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : tensor<2x3x5x5xf32>, tensor<3x3x1x1xf32>, tensor<2x3x5x5xf32> -> tensor<2x3x5x5xf32>
  %z = tensor.empty() : tensor<2x6x5x5xf32>
  %a = tensor.insert_slice %x into %z[0, 0, 0, 0] [2, 3, 5, 5] [1, 1, 1, 1] : tensor<2x3x5x5xf32> into tensor<2x6x5x5xf32>
  %b = tensor.insert_slice %y into %a[0, 3, 0, 0] [2, 3, 5, 5] [1, 1, 1, 1] : tensor<2x3x5x5xf32> into tensor<2x6x5x5xf32>
  return %b : tensor<2x6x5x5xf32>
}

// Every second column of a matrix has no unit stride: it is copied for a product,
// as it would be for another stage. Every second row needs no copy.

// CHECK-LABEL: func.func private @everySecond.kernel
// CHECK:         %[[DENSE:.*]] = memref.view %{{.*}} : memref<64xi8> to memref<5x3xf32>
// CHECK:         %[[COLUMNS:.*]] = memref.subview %{{.*}}[0, 0] [5, 3] [1, 2]
// CHECK:         linalg.copy ins(%[[COLUMNS]] : {{.*}}) outs(%[[DENSE]] :
// CHECK:         linalg.contract {{.*}} ins(%[[DENSE]], %{{.*}} : memref<5x3xf32>, memref<3x7xf32>)
// CHECK-LABEL: func.func private @everySecondRow.kernel
// CHECK-NOT:     linalg.copy
// CHECK:         linalg.contract
// CHECK-NOT:     linalg.copy
// CHECK:         return
func.func private @everySecond(%x: tensor<5x6xf32>, %w: tensor<3x7xf32>) -> tensor<5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = tensor.extract_slice %x[0, 0] [5, 3] [1, 2] : tensor<5x6xf32> to tensor<5x3xf32>
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%s, %w : tensor<5x3xf32>, tensor<3x7xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

func.func private @everySecondRow(%x: tensor<10x3xf32>, %w: tensor<3x7xf32>) -> tensor<5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = tensor.extract_slice %x[0, 0] [5, 3] [2, 1] : tensor<10x3xf32> to tensor<5x3xf32>
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%s, %w : tensor<5x3xf32>, tensor<3x7xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}
