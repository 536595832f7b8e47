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
