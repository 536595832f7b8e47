pipeline.stage @m
pipeline.task @m.F forward of @m(%k) {
  func.call @f() : () -> ()
}
func.func private @f()
