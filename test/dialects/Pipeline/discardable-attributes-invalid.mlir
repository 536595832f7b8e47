// RUN: penstock-opt %s --split-input-file --verify-diagnostics

// Attributes of the dialect are where they belong, with the type that they have,
// and there are no others.

// expected-error @+1 {{'pipeline.model' is a byte range, on the module}}
func.func private @f() attributes {pipeline.model = 1}

// -----

// expected-error @+1 {{'pipeline.external_data' is a list of files, on the module}}
module attributes {pipeline.external_data = [1]} {}

// -----

// expected-error @+1 {{'pipeline.direct_convolution' is without a value, on the module}}
module attributes {pipeline.direct_convolution = 1} {}

// -----

// expected-error @+1 {{'pipeline.stage_seconds' is three numbers of type f64 for each stage, on the module}}
module attributes {pipeline.stage_seconds = array<f64: 1.0, 2.0>} {}

// -----

// expected-error @+1 {{'pipeline.unit_seconds' is three numbers of type f64 for each unit, on a function}}
func.func private @f() attributes {pipeline.unit_seconds = array<f64: 1.0>}

// -----

// expected-error @+1 {{'pipeline.device' is the number of a device, on its program}}
func.func private @f() attributes {pipeline.device = @a}

// -----

// expected-error @+1 {{'pipeline.device' is the number of a device, on its program}}
func.func private @f() attributes {pipeline.device = -1 : i64}

// -----

// expected-error @+1 {{'pipeline.schedule' is the name of a schedule, on the program of a device}}
func.func private @f() attributes {pipeline.schedule = 0}

// -----

// expected-error @+1 {{'pipeline.rate' is without a value, on a function}}
func.func private @f() attributes {pipeline.rate = 0.1}

// -----

// expected-error @+1 {{'pipeline.range' is a range, on a channel with a source of integers}}
pipeline.channel @x : [tensor<5xf32>] source(input "x") {pipeline.range = #pipeline.range<0 to 3>}

// -----

// expected-error @+1 {{'pipeline.range' is a range, on a channel with a source of integers}}
pipeline.channel @loss : [tensor<i64>] sink(loss) {pipeline.range = #pipeline.range<0 to 3>}

// -----

// expected-error @+1 {{'pipeline.range' is a range, on a channel with a source of integers}}
pipeline.channel @labels : [tensor<5xi64>] source(labels) {pipeline.range = 3}

// -----

// expected-error @+1 {{'pipeline.parameter' is the name of a parameter, on a variable or a channel}}
pipeline.stage @s {pipeline.parameter = @w}

// -----

// expected-error @+1 {{'pipeline.kind' is a word of small letters, on state of a parameter that it names}}
pipeline.variable @m : tensor<2xf32> optimizer {pipeline.kind = "momentum"}

// -----

// expected-error @+1 {{'pipeline.kind' is a word of small letters, on state of a parameter that it names}}
pipeline.variable @m : tensor<2xf32> optimizer {pipeline.kind = "m:", pipeline.parameter = @w}

// -----

// expected-error @+1 {{'pipeline.tied' is byte ranges by name, on a parameter, its master or its average, transposed where they have its rank}}
pipeline.variable @w : tensor<2xf32> parameter {pipeline.tied = {v = 1}}

// -----

// expected-error @+1 {{'pipeline.tied' is byte ranges by name, on a parameter, its master or its average, transposed where they have its rank}}
pipeline.variable @w : tensor<2xf32> gradient {pipeline.tied = {v = #pipeline.bytes<"f", 0, 8>}}

// -----

// expected-error @+1 {{'pipeline.tied' is byte ranges by name, on a parameter, its master or its average, transposed where they have its rank}}
pipeline.variable @w : tensor<2xf32> parameter {pipeline.tied = {v = #pipeline.transposed<#pipeline.bytes<"f", 0, 8> order [1, 0]>}}

// -----

// expected-error @+1 {{the order of a transpose must have each axis once}}
pipeline.variable @w : tensor<2x3xf32> parameter {pipeline.tied = {v = #pipeline.transposed<#pipeline.bytes<"f", 0, 24> order [1, 1]>}}

// -----

// expected-error @+1 {{'pipeline.parts' is a number of parts, on a gradient}}
pipeline.variable @w : tensor<2xf32> parameter {pipeline.parts = 2}

// -----

// expected-error @+1 {{'pipeline.parts' is a number of parts, on a gradient}}
pipeline.variable @w : tensor<2xf32> gradient {pipeline.parts = 0}

// -----

// expected-error @+1 {{'pipeline.senders' is a list of devices, on a channel}}
pipeline.channel @c : [tensor<f32>] {pipeline.senders = array<i64: 0, -1>}

// -----

// expected-error @+1 {{'pipeline.receivers' is a list of devices, on a channel}}
pipeline.stage @s {pipeline.receivers = array<i64: 0, 1>}

// -----

// expected-error @+1 {{'pipeline.once' is without a value, on a group}}
pipeline.stage @s {pipeline.once}

// -----

// expected-error @+1 {{'pipeline.lags' is the lags of forward and backward, and of what an update blends, on a stage}}
pipeline.stage @s {pipeline.lags = array<i64: 3>}

// -----

// expected-error @+1 {{'pipeline.lags' is the lags of forward and backward, and of what an update blends, on a stage}}
pipeline.stage @s {pipeline.lags = array<i64: 3, -1>}

// -----

// expected-error @+1 {{'pipeline.recomputes' is without a value, on a backward task or a half of one}}
pipeline.task @s.F forward of @s attributes {pipeline.recomputes}

// -----

// expected-error @+1 {{'pipeline.sent' is the name of a parameter, on an op that copies it}}
func.func private @f() attributes {pipeline.sent = @w}

// -----

// expected-error @+1 {{'pipeline.lag' is no attribute of an op}}
pipeline.stage @s {pipeline.lag = 3}

// -----

// expected-error @+1 {{'pipeline.into' is no attribute of an op}}
func.func private @f() attributes {pipeline.into = 1}

// -----

pipeline.stage @s
pipeline.task @s.U update of @s(%t) {
  %w = pipeline.read @w : tensor<2xf32>
  %d = pipeline.read @d : tensor<2xf32>
  // expected-error @+1 {{'pipeline.compensates_from' is the number of a version, on a compensation}}
  %0 = pipeline.compensate %w, %d tau(1.0) {pipeline.compensates_from = 0} : tensor<2xf32>
}

// -----

// expected-error @+1 {{'pipeline.into' names result 1 of 1}}
func.func private @f(tensor<2xf32> {pipeline.into = 1 : i64}) -> tensor<2xf32>

// -----

// expected-error @+1 {{'pipeline.into' stores 'tensor<3xf32>' into 'tensor<2xf32>'}}
func.func private @f(tensor<2xf32> {pipeline.into = 0 : i64}) -> tensor<3xf32>

// -----

// expected-error @+1 {{'pipeline.into' is the number of a function's result}}
func.func private @f(tensor<2xf32> {pipeline.into}) -> tensor<2xf32>

// -----

// expected-error @+1 {{'pipeline.out' is without a value, on a buffer of a kernel}}
func.func private @f(tensor<2xf32> {pipeline.out})

// -----

// expected-error @+1 {{'pipeline.out' is without a value, on a buffer of a kernel}}
func.func private @f(memref<2xf32> {pipeline.out = 1})

// -----

// expected-error @+1 {{'pipeline.scratch' is without a value, on the last buffer of a kernel}}
func.func private @f(memref<64xi8> {pipeline.scratch}, memref<2xf32>)

// -----

// expected-error @+1 {{'pipeline.inn' is no attribute of an argument}}
func.func private @f(memref<2xf32> {pipeline.inn})

// -----

// expected-error @below {{'pipeline.target' is the target of devices, on a function that they run}}
func.func private @f() attributes {pipeline.target = "cpu"}

// -----

// expected-error @below {{'pipeline.target' is the target of devices, on a function that they run}}
module attributes {pipeline.target = #cpu.target<>} {
}

// -----

// expected-error @+1 {{'pipeline.rate_scale' is a number of type f64 that is at least 0, on a parameter}}
pipeline.variable @w : tensor<2xf32> parameter {pipeline.rate_scale = -1.0 : f64}

// -----

// expected-error @+1 {{'pipeline.rate_scale' is a number of type f64 that is at least 0, on a parameter}}
pipeline.variable @w : tensor<2xf32> gradient {pipeline.rate_scale = 1.0 : f64}

// -----

// expected-error @+1 {{'pipeline.no_decay' is without a value, on a parameter}}
pipeline.variable @w : tensor<2xf32> parameter {pipeline.no_decay = true}

// -----

// expected-error @below {{'pipeline.turn' is the number of a worker and how many there are, on a channel with a source or a sink}}
pipeline.channel @h : [tensor<2xf32>] {pipeline.turn = array<i64: 0, 2>}

// -----

// expected-error @below {{'pipeline.turn' is the number of a worker and how many there are, on a channel with a source or a sink}}
pipeline.channel @x : [tensor<2xf32>] source(input "x") {pipeline.turn = array<i64: 2, 2>}
