// With one microbatch per update, gradients are made from nothing and stay.
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training='microbatches=1 optimizer=sgd:momentum=0.9' --lower-stages-to-training --pipeline-verify | FileCheck %s --check-prefix=MLP
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training --lower-stages-to-training=split-backward=true --pipeline-verify | FileCheck %s --check-prefix=SPLIT
// RUN: penstock-opt %s --pipeline-set-training --pipeline-overwrite-gradients --split-input-file | FileCheck %s
// RUN: penstock-opt %s --pipeline-set-training=microbatches=2 --pipeline-overwrite-gradients --split-input-file | FileCheck %s --check-prefix=SUM

// MLP-LABEL: pipeline.task @s1.B backward
// MLP-NOT:     pipeline.read @fc3.grad
// MLP:         %[[R:.*]]:2 = func.call @s1.backward(
// MLP:         pipeline.write %[[R]]#1 to @fc3.grad
// MLP-LABEL: pipeline.task @s1.U update
// MLP-DAG:     %[[W:.*]] = pipeline.read @fc3 :
// MLP-DAG:     %[[G:.*]] = pipeline.read @fc3.grad
// MLP-DAG:     %[[M:.*]] = pipeline.read @fc3.momentum
// MLP:         %[[N:.*]]:2 = func.call @sgd.13x3(%[[W]], %[[G]], %[[M]], %
// MLP-NEXT:    pipeline.write %[[N]]#0 to @fc3 :
// MLP-NEXT:    pipeline.write %[[N]]#1 to @fc3.momentum
// MLP-NEXT:  }
// MLP:       func.func private @s1.backward(
// MLP-SAME:    tensor<13x3xf32>) -> (tensor<5x13xf32>, tensor<13x3xf32>)
// MLP:         %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<13x3xf32>
// MLP-NEXT:    linalg.contract {{.*}} outs(%[[ZEROS]] : tensor<13x3xf32>)
// MLP:       func.func private @sgd.13x3(%{{.*}}: tensor<13x3xf32>, %[[GRADIENT:[^:]*]]: tensor<13x3xf32>, %[[STATE:[^:]*]]: tensor<13x3xf32> {pipeline.into = 1 : i64}, %{{.*}}: f32)
// MLP:         linalg.generic {{.*}} ins(%{{.*}}, %[[GRADIENT]] : {{.*}}) outs(%{{.*}}, %[[STATE]] :

// SPLIT-LABEL: pipeline.task @s1.W weight_grad
// SPLIT-NOT:     pipeline.read @fc3.grad
// SPLIT:         pipeline.write %{{.*}} to @fc3.grad

// An elementwise op adds to zero in its body. A parameter that two nodes read
// has two gradients, which stay sums.
pipeline.stage @s0
pipeline.variable @w : tensor<3x5xf32> parameter of @s0
pipeline.variable @v : tensor<3x5xf32> parameter of @s0
pipeline.variable @w.grad : tensor<3x5xf32> gradient of @s0 {pipeline.parameter = @w}
pipeline.variable @v.grad : tensor<3x5xf32> gradient of @s0 {pipeline.parameter = @v}
pipeline.variable @v.grad_0 : tensor<3x5xf32> gradient of @s0 {pipeline.parameter = @v}
pipeline.channel @dy : [tensor<3x5xf32>]
// CHECK-LABEL: pipeline.task @s0.B
// SUM-LABEL:   pipeline.task @s0.B
pipeline.task @s0.B backward of @s0(%k) {
  // CHECK: %[[DY:.*]] = pipeline.take
  %dy = pipeline.take @dy : tensor<3x5xf32>
  // CHECK-NOT: pipeline.read @w.grad
  // SUM:       pipeline.read @w.grad
  %gw = pipeline.read @w.grad : tensor<3x5xf32>
  // CHECK-DAG: %[[V0:.*]] = pipeline.read @v.grad :
  %gv = pipeline.read @v.grad : tensor<3x5xf32>
  // CHECK-DAG: %[[V1:.*]] = pipeline.read @v.grad_0 :
  %gv0 = pipeline.read @v.grad_0 : tensor<3x5xf32>
  // CHECK: %[[N:.*]]:3 = func.call @s0.backward(%[[DY]], %[[V0]], %[[V1]])
  %n:3 = func.call @s0.backward(%dy, %gw, %gv, %gv0) : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
  // CHECK: pipeline.write %[[N]]#0 to @w.grad
  pipeline.write %n#0 to @w.grad : tensor<3x5xf32>
  pipeline.write %n#1 to @v.grad : tensor<3x5xf32>
  pipeline.write %n#2 to @v.grad_0 : tensor<3x5xf32>
}
#id = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: func.func private @s0.backward(
// CHECK-SAME:    {pipeline.into = 1 : i64}, %{{.*}}: tensor<3x5xf32> {pipeline.into = 2 : i64})
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.0
// CHECK-DAG:     %[[EMPTY:.*]] = tensor.empty()
// CHECK-NOT:     linalg.fill
// CHECK:         linalg.generic {{.*}} outs(%[[EMPTY]] : tensor<3x5xf32>)
// CHECK-NEXT:    ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      arith.addf %[[ZERO]], %[[IN]]
func.func private @s0.backward(%dy: tensor<3x5xf32>, %gw: tensor<3x5xf32> {pipeline.into = 0 : i64}, %gv: tensor<3x5xf32> {pipeline.into = 1 : i64}, %gv0: tensor<3x5xf32> {pipeline.into = 2 : i64}) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%dy : tensor<3x5xf32>) outs(%gw : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %b = linalg.add ins(%dy, %gv : tensor<3x5xf32>, tensor<3x5xf32>) outs(%gv : tensor<3x5xf32>) -> tensor<3x5xf32>
  %c = linalg.add ins(%dy, %gv0 : tensor<3x5xf32>, tensor<3x5xf32>) outs(%gv0 : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %a, %b, %c : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>
}
