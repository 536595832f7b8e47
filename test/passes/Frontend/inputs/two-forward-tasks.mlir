pipeline.stage @m
pipeline.task @m.F forward of @m(%k) {
}
pipeline.task @m.again forward of @m(%k) {
}
