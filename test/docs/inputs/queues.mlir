// N2. Two messages between the same devices, in another order at either end.

pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.channel @h : [tensor<f32>] slots(1) staging(1)
pipeline.channel @g : [tensor<f32>] slots(1) staging(1)
pipeline.task @F0 forward of @s0
pipeline.task @F1 forward of @s1
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
pipeline.arena 1 bytes(1024)
func.func private @read(memref<f32>)
func.func private @write(memref<f32> {pipeline.out})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  pipeline.mark @F0[%first]
  %a = pipeline.slot @h[%first] at(0) : memref<f32>
  func.call @write(%a) : (memref<f32>) -> ()
  %b = pipeline.slot @g[%first] at(64) : memref<f32>
  func.call @write(%b) : (memref<f32>) -> ()
  pipeline.start_send @h[%first], %a : memref<f32>
  pipeline.start_send @g[%first], %b : memref<f32>
  pipeline.await @h[%first]
  pipeline.await @g[%first]
  return
}
func.func @train.1(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
  pipeline.mark @F1[%first]
  %a = pipeline.slot @g[%first] at(0) : memref<f32>
  pipeline.start_recv @g[%first], %a : memref<f32>
  %b = pipeline.slot @h[%first] at(64) : memref<f32>
  pipeline.start_recv @h[%first], %b : memref<f32>
  pipeline.await @h[%first]
  func.call @read(%a) : (memref<f32>) -> ()
  func.call @read(%b) : (memref<f32>) -> ()
  return
}
