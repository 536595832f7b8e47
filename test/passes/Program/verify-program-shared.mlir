// RUN: %expand-cases %s | penstock-opt --pipeline-verify-program --split-input-file \
// RUN:   --verify-diagnostics

// Messages and temporaries may lie in the same bytes when they are never needed
// at the same time.

pipeline.stage @s devices [0]
pipeline.task @F forward of @s
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(128)
pipeline.channel @a : [tensor<f32>] slots(2)
pipeline.channel @b : [tensor<f32>] slots(2)
func.func private @read(memref<f32>)
func.func private @write(memref<f32> {pipeline.out})
func.func private @work(memref<128xi8> {pipeline.scratch})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c1 = arith.constant 1 : index
  %end = arith.addi %first, %updates : index
  scf.for %t = %first to %end step %c1 {
    pipeline.mark @F[%t]
    %a = pipeline.slot @a[%t] ring(2) at(0) stride(64) : memref<f32>
    func.call @write(%a) : (memref<f32>) -> ()
    func.call @read(%a) : (memref<f32>) -> ()
    %b = pipeline.slot @b[%t] ring(2) at(0) stride(64) : memref<f32>
    func.call @write(%b) : (memref<f32>) -> ()
    func.call @read(%b) : (memref<f32>) -> ()
    %s = pipeline.scratch at(0) : memref<128xi8>
    func.call @work(%s) : (memref<128xi8>) -> ()
  }
  return
}

// -----

@@
-    func.call @read(%a) : (memref<f32>) -> ()
     %b = pipeline.slot @b[%t] ring(2) at(0) stride(64) : memref<f32>
+    // expected-error @below {{S9: device 0 in a segment of 1 updates takes bytes of slot 0 of @a while message 0 is there}}
     func.call @write(%b) : (memref<f32>) -> ()
+    func.call @read(%a) : (memref<f32>) -> ()

// -----

@@
     func.call @write(%b) : (memref<f32>) -> ()
+    // expected-error @below {{S2: device 0 in a segment of 1 updates reads @a[0], but nothing was stored there}}
+    func.call @read(%a) : (memref<f32>) -> ()

// -----

@@
-    func.call @read(%b) : (memref<f32>) -> ()
     %s = pipeline.scratch at(0) : memref<128xi8>
+    // expected-error @below {{S9: device 0 in a segment of 1 updates takes bytes of slot 0 of @b while message 0 is there}}
     func.call @work(%s) : (memref<128xi8>) -> ()
+    func.call @read(%b) : (memref<f32>) -> ()

// -----

@@
-func.func private @work(memref<128xi8> {pipeline.scratch})
+func.func private @work(memref<f32> {pipeline.out}, memref<128xi8> {pipeline.scratch})
@@
-    func.call @write(%b) : (memref<f32>) -> ()
-    func.call @read(%b) : (memref<f32>) -> ()
     %s = pipeline.scratch at(0) : memref<128xi8>
-    func.call @work(%s) : (memref<128xi8>) -> ()
+    // expected-error @below {{S9: device 0 in a segment of 1 updates writes @b[0] into bytes of its own temporaries}}
+    func.call @work(%b, %s) : (memref<f32>, memref<128xi8>) -> ()
