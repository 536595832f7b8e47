// RUN: %expect-error --any-lines "error: --split-at: the model has no node or value named 'nothing' that reaches the loss" -- penstock-opt %s --pipeline-partition='split-at=nothing'
// RUN: %expect-error --any-lines "error: --split-at: nothing comes after 'exp', it cannot end a stage" -- penstock-opt %s --pipeline-partition='split-at=exp'
// RUN: %expect-error --any-lines "error: --split-at: 'abs' does not come after 'abs'; list the cuts in the order of the model" -- penstock-opt %s --pipeline-partition='split-at=abs,abs'
// RUN: %expect-error --any-lines "error: --stages=3: the model has 2 nodes that compute, so at most 2 stages" -- penstock-opt %s --pipeline-partition='stages=3'
// RUN: %expect-error --any-lines "error: there are targets of 3 devices, and 2 stages" -- penstock-opt %s --pipeline-partition='stages=2 targets="[#cpu.target<>, #cpu.target<threads(2)>, #cpu.target<>]"'
// RUN: %expect-error --any-lines "error: '[1]' is no list of targets" -- penstock-opt %s --pipeline-partition='stages=2 targets=[1]'
// RUN: %expect-error --any-lines "error: --stages=3 contradicts --split-at, which names 1 cuts for 2 stages" -- penstock-opt %s --pipeline-partition='stages=3 split-at=abs'

pipeline.stage @model
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<5x7xf32>] sink(loss)
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  %y = func.call @model.forward(%x) : (tensor<5x7xf32>) -> tensor<5x7xf32>
  pipeline.put %y to @loss : tensor<5x7xf32>
}
func.func private @model.forward(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %1 = math.absf %x : tensor<5x7xf32> loc("abs")
  %2 = math.exp %1 : tensor<5x7xf32> loc("exp")
  return %2 : tensor<5x7xf32>
}
