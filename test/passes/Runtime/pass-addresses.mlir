// RUN: penstock-opt %s --pipeline-pass-addresses | FileCheck %s
// RUN: penstock-opt %s --pipeline-pass-addresses --expand-strided-metadata \
// RUN:   --finalize-memref-to-llvm --convert-arith-to-llvm \
// RUN:   --convert-func-to-llvm=use-bare-ptr-memref-call-conv=1 \
// RUN:   --reconcile-unrealized-casts --canonicalize \
// RUN:   | FileCheck %s --check-prefix=LLVM

// Who only passes a buffer on has its address and no descriptor.

// CHECK-LABEL: func.func private @stage(
// CHECK-SAME:    %[[X:[^:]*]]: !llvm.ptr, %[[Y:[^:]*]]: !llvm.ptr, %[[N:.*]]: index) {
// CHECK-NEXT:    call @kernel(%[[X]], %[[Y]]) : (!llvm.ptr, !llvm.ptr) -> ()
// CHECK-NEXT:    call @kernel(%[[Y]], %[[X]]) : (!llvm.ptr, !llvm.ptr) -> ()
// CHECK-NEXT:    return
func.func private @stage(%x: memref<2x3xf32>, %y: memref<2x3xf32>, %n: index) {
  call @kernel(%x, %y) : (memref<2x3xf32>, memref<2x3xf32>) -> ()
  call @kernel(%y, %x) : (memref<2x3xf32>, memref<2x3xf32>) -> ()
  return
}

// Who reads or writes a buffer makes one of the address.

// CHECK-LABEL: func.func private @kernel(
// CHECK-SAME:    %[[X:[^:]*]]: !llvm.ptr, %[[Y:[^:]*]]: !llvm.ptr) {
// CHECK:         llvm.insertvalue %[[X]], %{{.*}}[1]
// CHECK:         %[[A:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<{{.*}}> to memref<2x3xf32>
// CHECK:         memref.load %[[A]]

// LLVM-LABEL:  llvm.func @kernel(
// LLVM-SAME:     %[[X:[^:]*]]: !llvm.ptr, %[[Y:[^:]*]]: !llvm.ptr)
// LLVM:          %[[A:.*]] = llvm.getelementptr inbounds|nuw %[[X]][%{{.*}}]
// LLVM-NEXT:     %[[V:.*]] = llvm.load %[[A]] : !llvm.ptr -> f32
// LLVM:          %[[B:.*]] = llvm.getelementptr inbounds|nuw %[[Y]][%{{.*}}]
// LLVM-NEXT:     llvm.store %[[V]], %[[B]] : f32, !llvm.ptr
// LLVM-NEXT:     llvm.return
func.func private @kernel(%x: memref<2x3xf32>, %y: memref<2x3xf32>) {
  %zero = arith.constant 0 : index
  %v = memref.load %x[%zero, %zero] : memref<2x3xf32>
  memref.store %v, %y[%zero, %zero] : memref<2x3xf32>
  return
}

// The address of a device's slot goes to the call as it is; a cast that nobody
// else needs is gone.

// CHECK-LABEL: llvm.func @train.0(
// CHECK-SAME:    %[[ARENA:.*]]: !llvm.ptr)
// CHECK-NEXT:    %[[SLOT:.*]] = llvm.getelementptr %[[ARENA]][64]
// CHECK-NEXT:    %[[N:.*]] = arith.constant 1 : index
// CHECK-NEXT:    call @stage(%[[ARENA]], %[[SLOT]], %[[N]]) : (!llvm.ptr, !llvm.ptr, index) -> ()
llvm.func @train.0(%arena: !llvm.ptr) {
  %x = builtin.unrealized_conversion_cast %arena : !llvm.ptr to memref<2x3xf32>
  %slot = llvm.getelementptr %arena[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %y = builtin.unrealized_conversion_cast %slot : !llvm.ptr to memref<2x3xf32>
  %n = arith.constant 1 : index
  func.call @stage(%x, %y, %n) : (memref<2x3xf32>, memref<2x3xf32>, index) -> ()
  llvm.return
}

// A part of a buffer, whose base is its descriptor's, is passed by that.

// CHECK-LABEL: func.func private @part(
// CHECK:         %[[A:.*]] = memref.collapse_shape
// CHECK:         %[[D:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<6xf32> to !llvm.struct
// CHECK:         %[[P:.*]] = llvm.extractvalue %[[D]][1]
// CHECK:         call @flat(%[[P]]) : (!llvm.ptr) -> ()
// LLVM-LABEL:  llvm.func @part(
// LLVM-SAME:     %[[X:.*]]: !llvm.ptr)
// LLVM-NEXT:     llvm.call @flat(%[[X]]) : (!llvm.ptr) -> ()
func.func private @part(%x: memref<2x3xf32>) {
  %flat = memref.collapse_shape %x [[0, 1]] : memref<2x3xf32> into memref<6xf32>
  call @flat(%flat) : (memref<6xf32>) -> ()
  return
}
// CHECK:       func.func private @flat(!llvm.ptr)
func.func private @flat(memref<6xf32>)

// Sizes that are not in the type need a descriptor.

// CHECK:       func.func private @dynamic(memref<?xf32>)
func.func private @dynamic(memref<?xf32>)
