// The orders have become functions.
pipeline.stage @a devices [0]
pipeline.schedule @train microbatches(4)
