// RUN: penstock-opt %s --pipeline-plan-memory=limit=100 --split-input-file \
// RUN:   --verify-diagnostics
// RUN: %expect-error --any-lines "error: pipeline-plan-memory: alignment must be a power of two" -- penstock-opt /dev/null --pipeline-plan-memory=alignment=48

// expected-error @below {{device 1 (stages @b) needs 192 bytes of memory, 92 more than its limit of 100}}
// expected-note @below {{variables 64, channels 128, temporaries 0}}
module {
  pipeline.stage @a devices [0]
  pipeline.stage @b devices [1]
  pipeline.variable @w : tensor<5xf32> parameter of @b
  pipeline.channel @c : [tensor<i64>] slots(2)
  func.func @train.1(%first: index, %updates: index)
      attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
    %0 = pipeline.slot @w[%first] : memref<5xf32>
    %1 = pipeline.slot @c[%first] ring(2) : memref<i64>
    return
  }
}

// -----

func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  // expected-error @below {{needs a buffer of static shape and identity layout}}
  %0 = pipeline.slot @w[%first] : memref<?xf32>
  return
}
