func.func private @kernel(%s: memref<64xi8> {pipeline.scratch}) {
  return
}
func.func @train.0(%first: index, %updates: index) {
  %s = pipeline.scratch : memref<64xi8>
  func.call @kernel(%s) : (memref<64xi8>) -> ()
  return
}
