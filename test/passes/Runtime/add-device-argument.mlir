// RUN: penstock-opt %s --pipeline-add-device-argument | FileCheck %s

// CHECK-LABEL: func.func private @kernel(%{{.*}}: !llvm.ptr, %{{.*}}: memref<3xf32>)
func.func private @kernel(%x: memref<3xf32>) { return }

// CHECK-LABEL: func.func private @lr(%{{.*}}: !llvm.ptr, %{{.*}}: f32, %{{.*}}: index) -> f32
func.func private @lr(%base: f32, %t: index) -> f32 { return %base : f32 }

// A function of somebody else keeps its form.
// CHECK: func.func private @expf(f32) -> f32
func.func private @expf(f32) -> f32

// CHECK-LABEL: func.func @train.0(
// CHECK-SAME:    %[[D:.*]]: !llvm.ptr, %[[T:.*]]: index, %[[X:.*]]: memref<3xf32>, %[[B:.*]]: f32)
// CHECK:         call @kernel(%[[D]], %[[X]])
// CHECK:         call @lr(%[[D]], %[[B]], %[[T]])
// CHECK:         call @expf(%[[B]])
func.func @train.0(%t: index, %x: memref<3xf32>, %b: f32) {
  func.call @kernel(%x) : (memref<3xf32>) -> ()
  %r = func.call @lr(%b, %t) : (f32, index) -> f32
  %e = func.call @expf(%b) : (f32) -> f32
  return
}

// The same kernels, declared for the replay.
// CHECK: module @replay
module @replay {
  // CHECK: func.func private @kernel(!llvm.ptr, memref<3xf32>)
  func.func private @kernel(memref<3xf32>)
  // CHECK: func.func @train.0(%[[E:.*]]: !llvm.ptr, %[[Y:.*]]: memref<3xf32>)
  // CHECK:   call @kernel(%[[E]], %[[Y]])
  func.func @train.0(%x: memref<3xf32>) {
    func.call @kernel(%x) : (memref<3xf32>) -> ()
    return
  }
}
