pipeline.stage @m
pipeline.task @m.F forward of @m(%k) {
}
