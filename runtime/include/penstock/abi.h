/*===- abi.h - The C ABI between compiled stage programs and the runtime ----===
 *
 * Part of the Penstock project, under the Apache License v2.0 with LLVM
 * Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Compiled code exports one constant `penstock_program` and calls the
 * functions below. The compiler shares this header with the runtime and
 * nothing else. All sizes and offsets are in bytes unless a comment says
 * otherwise; k counts microbatches and t counts updates, both from the start
 * of training.
 *===-----------------------------------------------------------------------===*/

#ifndef PENSTOCK_ABI_H
#define PENSTOCK_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_ABI_VERSION 8u

/* Exit codes of every executable and return codes of the embedding API. */
enum {
  PENSTOCK_DONE = 0,
  PENSTOCK_USER_ERROR = 1,
  PENSTOCK_DEFECT = 2,
  PENSTOCK_DOES_NOT_FIT = 3,
  PENSTOCK_VERIFICATION_FAILED = 4,
  PENSTOCK_PEER_FAILED = 5,
  PENSTOCK_WATCHDOG = 6
};

/*===--- The descriptor
 * ----------------------------------------------------===*/

/* Element types carry the numbers of ONNX's TensorProto.DataType. */
enum {
  PENSTOCK_F32 = 1,
  PENSTOCK_U8 = 2,
  PENSTOCK_I8 = 3,
  PENSTOCK_U16 = 4,
  PENSTOCK_I16 = 5,
  PENSTOCK_I32 = 6,
  PENSTOCK_I64 = 7,
  PENSTOCK_BOOL = 9,
  PENSTOCK_F16 = 10,
  PENSTOCK_F64 = 11,
  PENSTOCK_U32 = 12,
  PENSTOCK_U64 = 13,
  PENSTOCK_BF16 = 16
};

/* A dense row-major tensor type. `bytes` is the size of one value. */
typedef struct {
  uint32_t element;
  uint32_t rank;
  const int64_t *shape;
  uint64_t bytes;
} penstock_tensor;

/* A file that holds initial values. files[0] of a program is the model. Paths
 * are absolute. `digest` is the SHA-256 of files[0], zero for the others. */
typedef struct {
  const char *path;
  uint64_t size;
  uint8_t digest[32];
} penstock_file;

/* Devices are numbered from 0. The arena is all memory that the device's
 * compiled code and the library calls in it use. */
typedef struct {
  uint64_t arena_bytes;
  uint64_t arena_alignment;
  uint32_t threads;
} penstock_device_descriptor;

enum {
  PENSTOCK_ROLE_PARAMETER = 0,
  PENSTOCK_ROLE_GRADIENT = 1,
  PENSTOCK_ROLE_OPTIMIZER = 2,
  PENSTOCK_ROLE_COMPENSATION = 3,
  PENSTOCK_ROLE_STATISTIC = 4,
  PENSTOCK_ROLE_MASTER = 5,
  PENSTOCK_ROLE_SCALAR = 6,
  PENSTOCK_ROLE_PREPACKED = 7
};

/* Where one copy (one replica) of a variable lives: version v (the value after
 * v updates) is at arena + offset + (v mod versions) * stride. */
typedef struct {
  uint32_t device;
  uint64_t offset;
  uint64_t stride;
} penstock_placement;

/* A variable. `name` is the initialiser's name for parameters and statistics.
 * `file` < 0: starts at zero; else the bytes are at files[file] + file_offset,
 * type.bytes long, little-endian raw data. `frozen`: never written.
 * With a `file_order`, the file holds a transpose: its axis i is axis
 * file_order[i] of the variable, which another entry for the same place starts.
 * One of role PREPACKED starts as what convolution `prepacked_by` (from
 * conv_count on: a product) makes of the start of variable `prepacked_from`,
 * which is on the same devices. */
typedef struct {
  const char *name;
  uint32_t role;
  uint32_t stage;
  uint32_t frozen;
  penstock_tensor type;
  int32_t file;
  uint64_t file_offset;
  const uint32_t *file_order;
  uint32_t versions;
  uint32_t placement_count;
  const penstock_placement *placements;
  uint32_t prepacked_from;
  uint32_t prepacked_by;
} penstock_variable;

/* A channel that is a transfer in some schedule, or has a source or a sink.
 * One message is one tensor. `source`: name of the model input (or "labels")
 * that feeds it, else null; `sink`: what it reports ("loss", "correct",
 * "count", or an output's name), else null. sender/receiver: device numbers,
 * -1 where a source or sink stands. Sinks named "loss" carry one f32 (the mean
 * over the labels of the microbatch); "correct" and "count" one i64 each (right
 * predictions, and labels that count, of the microbatch). */
typedef struct {
  const char *name;
  const char *source;
  const char *sink;
  penstock_tensor type;
  int32_t sender;
  int32_t receiver;
  uint32_t slots;
  uint32_t staging;
  /* Message n is of microbatch n * stride + offset. Where a stage has replicas,
   * a channel stands here `stride` times, one after the other, with one sender
   * and one receiver each, and, if the program trains, once more for
   * evaluation. */
  uint32_t stride;
  uint32_t offset;
} penstock_channel;

/* `letter` is the PyTorch-compatible action letter: F B I W G U E. */
typedef struct {
  const char *name;
  uint32_t letter;
  uint32_t stage;
  uint32_t device;
} penstock_task;

#define PENSTOCK_MAX_BATCH_RANK 4
/* The product is in a kernel that several devices share, or that none runs. */
#define PENSTOCK_EVERY_DEVICE 0xffffffffu
#define PENSTOCK_NO_DEVICE 0xfffffffeu

/* The device does not run the call. */
#define PENSTOCK_NO_OFFSET UINT64_MAX

/* What a library call has besides its operands: so many bytes of the arena, by
 * device from `offsets` on; null where it has none. */
typedef struct {
  uint64_t bytes;
  const uint64_t *offsets;
} penstock_scratch;

enum {
  PENSTOCK_WEIGHTS_AS_THEY_ARE = 0,
  /* The weights are what a call with PREPACK of the same convolution or product
   * made. */
  PENSTOCK_WEIGHTS_PREPACKED = 1,
  /* The call reorders the weights, as the library likes them in the convolution
   * or product that is described, into its result, and reads nothing else. */
  PENSTOCK_WEIGHTS_PREPACK = 2
};

/* C = A.B, or C += A.B when accumulate: for every index of the batch
 * dimensions a product of m x k by k x n. Strides are in elements, listed as
 * batch..., row, column; of A (m, k), of B (k, n), of C (m, n).
 * The weights are B. Prepacked, they lie in panels of `panel` columns (the last
 * one has up to 15 more, or fewer), one behind the other, each with k rows
 * that are stride_b[0] apart; PREPACK makes such panels at C, with rows
 * stride_c[0] apart, of a B as the strides say. There are no batch dimensions
 * then. */
typedef struct {
  uint32_t element;
  uint32_t batch_rank;
  int64_t batch[PENSTOCK_MAX_BATCH_RANK];
  int64_t m, n, k;
  int64_t stride_a[PENSTOCK_MAX_BATCH_RANK + 2];
  int64_t stride_b[PENSTOCK_MAX_BATCH_RANK + 2];
  int64_t stride_c[PENSTOCK_MAX_BATCH_RANK + 2];
  uint32_t accumulate;
  uint32_t device;
  uint32_t weights;
  int64_t panel;
  penstock_scratch scratch;
} penstock_gemm_descriptor;

#define PENSTOCK_MAX_SPATIAL_RANK 3

enum {
  PENSTOCK_CONV_FORWARD = 0,
  PENSTOCK_CONV_INPUT_GRAD = 1,
  PENSTOCK_CONV_WEIGHT_GRAD = 2
};

enum {
  /* Tensors as they are in memory. */
  PENSTOCK_CONV_PLAIN = 0,
  /* Reordered in the call into what the library likes, and back. */
  PENSTOCK_CONV_LIBRARY = 1,
  /* Gathered in the call into matrices, of which the gradient of the weights is
   * the product; or, of large dense windows of one element, as they are. */
  PENSTOCK_CONV_COLUMNS = 2,
  /* By Winograd's minimal filtering of 4x4 outputs at a time, which multiplies
   * four times less and rounds more; reordered like LIBRARY. */
  PENSTOCK_CONV_WINOGRAD = 3,
  /* By the same algorithm with tiles of 2x2 outputs, as products of matrices,
   * from and to tensors as they are. */
  PENSTOCK_CONV_TILES_2X2 = 4,
  /* The same with 4x4 outputs. */
  PENSTOCK_CONV_TILES_4X4 = 5,
  /* The gradient of the weights of groups of one channel as a convolution of
   * every sample with its output as the window, reordered like LIBRARY. */
  PENSTOCK_CONV_OUTPUT_WINDOWS = 6,
  /* Several groups as one, with weights of zero between them, reordered like
   * LIBRARY. */
  PENSTOCK_CONV_COMBINED_GROUPS = 7,
  /* One spatial dimension as the first of two, reordered like LIBRARY. */
  PENSTOCK_CONV_UPRIGHT = 8
};

/* A convolution of input (batch, input_channels, spatial...) with weights
 * (output_channels, input_channels / groups, spatial...) to output (batch,
 * output_channels, spatial...), all dense; `kind` says which of the three is
 * computed. The gradient of the weights is added to what is there, the others
 * are overwritten. */
typedef struct {
  uint32_t kind;
  uint32_t element;
  uint32_t layout;
  uint32_t weights;
  uint32_t spatial_rank;
  uint32_t device;
  int64_t batch, groups, input_channels, output_channels;
  int64_t input[PENSTOCK_MAX_SPATIAL_RANK];
  int64_t kernel[PENSTOCK_MAX_SPATIAL_RANK];
  int64_t output[PENSTOCK_MAX_SPATIAL_RANK];
  int64_t stride[PENSTOCK_MAX_SPATIAL_RANK];
  int64_t dilation[PENSTOCK_MAX_SPATIAL_RANK];
  int64_t pad_before[PENSTOCK_MAX_SPATIAL_RANK];
  int64_t pad_after[PENSTOCK_MAX_SPATIAL_RANK];
  penstock_scratch scratch;
} penstock_conv_descriptor;

/* A run-time knob, e.g. "lr", with the value given at compile time. */
typedef struct {
  const char *name;
  double value;
} penstock_hyperparameter_descriptor;

/* A device of an opened program; compiled code only passes it on. */
typedef struct penstock_device penstock_device;

/* Runs updates `first` .. `first + updates - 1` (for evaluation: microbatches
 * first .. first + updates - 1) of one segment on one device. `version` updates
 * were done before it: the newest version of every variable has this number. */
typedef void (*penstock_device_function)(penstock_device *device, int64_t first,
                                         int64_t updates, int64_t version);

/* `functions` has one entry per device, null where a device takes no part.
 * Names: "train" and "evaluate", or "infer", where every sink is an output of
 * the model, and an update stands for one microbatch on each replica. */
typedef struct {
  const char *name;
  uint32_t microbatches;
  double predicted_bubble;
  const penstock_device_function *functions;
} penstock_schedule;

/* What a summand does: it is added and receives the sum, is added and becomes
 * zero, or only receives. The first is added. */
enum {
  PENSTOCK_SUM_ADDS = 0,
  PENSTOCK_SUM_RESETS = 1,
  PENSTOCK_SUM_RECEIVES = 2
};

/* Values that are summed over devices. Every summand has one value of each of
 * the `types`; `devices` says where each lives, in the order of addition, and
 * `resets` what it does. */
typedef struct {
  const char *name;
  uint32_t type_count;
  const penstock_tensor *types;
  uint32_t summand_count;
  const uint32_t *devices;
  const uint32_t *resets;
} penstock_group;

/* Which integers the files of a source may hold: from `low` to before `high`,
 * and `ignored`, if `ignores` is not 0. */
typedef struct {
  const char *source;
  int64_t low, high;
  uint32_t ignores;
  int64_t ignored;
} penstock_range;

typedef struct penstock_program {
  uint32_t abi_version;
  uint32_t stage_count;
  const char *cpu;      /* what the code was compiled for, e.g. "znver5" */
  const char *features; /* x86 features that must be present, "+avx2,+fma" */
  int64_t microbatch_size;
  const char *method;   /* "sync" */
  const char *schedule; /* "1f1b" */
  const char *plan;     /* the report of the compiler, as JSON text */
  uint32_t file_count;
  const penstock_file *files;
  uint32_t device_count;
  const penstock_device_descriptor *devices;
  uint32_t variable_count;
  const penstock_variable *variables;
  uint32_t channel_count;
  const penstock_channel *channels;
  uint32_t task_count;
  const penstock_task *tasks;
  uint32_t gemm_count;
  const penstock_gemm_descriptor *gemms;
  uint32_t conv_count;
  const penstock_conv_descriptor *convs;
  uint32_t hyperparameter_count;
  const penstock_hyperparameter_descriptor *hyperparameters;
  uint32_t schedule_count;
  const penstock_schedule *schedules;
  /* The same tasks under a one-device schedule, for --verify; may be null.
   * Its variables are the same, by name, in any order; its schedule is named
   * "train". */
  const struct penstock_program *replay;
  /* The course of the learning rate: from the hyperparameter "lr" and the
   * updates done, the rate of the next update. Null where it is constant. */
  float (*rate)(penstock_device *device, float base, int64_t done);
  /* The pipe drains after each of so many updates at first. In a segment of one
   * update, all microbatches read the weights before it: it is synchronous. */
  int64_t flushed_updates;
  /* Inputs of the model that the program does not need. */
  uint32_t unused_input_count;
  const char *const *unused_inputs;
  uint32_t group_count;
  const penstock_group *groups;
  uint32_t range_count;
  const penstock_range *ranges;
} penstock_program;

/*===--- What compiled code calls
 * ------------------------------------------===*/

/* Every function returns nothing: a failure is recorded once, positions are
 * printed, and the process ends with the matching exit code. */

/* Queue a transfer; never blocks. `channel` indexes program->channels, n is the
 * message number (microbatch). */
void penstock_recv(penstock_device *device, uint32_t channel, int64_t n,
                   void *slot);
void penstock_send(penstock_device *device, uint32_t channel, int64_t n,
                   const void *slot);
/* Queue the sum of a group for update t; never blocks. `cells` are the
 * addresses of the values of this device's summands, one summand after the
 * other; they receive the sums. Additions have the order of the summands, on
 * any device. */
void penstock_all_reduce(penstock_device *device, uint32_t group, int64_t t,
                         void *const *cells);
/* This device waits until message n of the channel has arrived here (receiver)
 * or has left its slot (sender). Numbers from channel_count on are groups:
 * until the sum is there. Negative n returns at once. */
void penstock_await(penstock_device *device, uint32_t endpoint, int64_t n);
/* The device is about to run the n-th microbatch (or update) of a task. */
void penstock_mark(penstock_device *device, uint32_t task, int64_t n);
double penstock_hyperparameter(penstock_device *device, uint32_t id);
/* Of one that is an integer, such as "seed"; 0 unless it is set. */
int64_t penstock_integer_hyperparameter(penstock_device *device, uint32_t id);
void penstock_gemm(penstock_device *device, uint32_t id, const float *a,
                   const float *b, float *c);
/* The tensors in their roles, whichever of them the descriptor computes. */
void penstock_conv(penstock_device *device, uint32_t id, const float *input,
                   const float *weights, const float *output);
/* body(closure, i) for i in [0, count), split over the device's threads in a
 * fixed way. */
void penstock_parallel(penstock_device *device,
                       void (*body)(void *closure, int64_t index),
                       void *closure, int64_t count);
/* Base address of the device's arena. Constant for the life of the device. */
void *penstock_arena(penstock_device *device);

/*===--- Embedding
 * ---------------------------------------------------------===*/

typedef struct penstock_run penstock_run;

/* Options are given as strings, spelled like the flags of the executable
 * without "--", e.g. {"data", "x=train.npy"}; a null name ends the list. */
typedef struct {
  const char *name;
  const char *value;
} penstock_option;

typedef struct {
  double loss;
  double accuracy; /* negative when the loss has no classes */
  int64_t samples;
  int64_t samples_left_out;
} penstock_results;

/* Also where it fails, penstock_open sets *run, for penstock_error; close it.
 */
int penstock_open(const penstock_program *program,
                  const penstock_option *options, penstock_run **run);
int penstock_train(penstock_run *run, int64_t updates);
int penstock_evaluate(penstock_run *run, penstock_results *results);
/* Of a program that infers: writes all outputs into the folder --outputs. */
int penstock_infer(penstock_run *run);
int penstock_save(penstock_run *run, const char *path);
/* Runs the last `updates` updates again on one device and compares. */
int penstock_replay(penstock_run *run, int64_t updates);
const char *penstock_error(const penstock_run *run);
void penstock_close(penstock_run *run);
int penstock_main(int argc, char **argv, const penstock_program *program);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_ABI_H */
