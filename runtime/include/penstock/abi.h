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
#define PENSTOCK_STATIC_ASSERT static_assert
#else
#define PENSTOCK_STATIC_ASSERT _Static_assert
#endif

#define PENSTOCK_ABI_VERSION 22u

/* Exit codes of every executable and return codes of the embedding API. */
enum {
  PENSTOCK_DONE = 0,
  PENSTOCK_USER_ERROR = 1,
  PENSTOCK_DEFECT = 2,
  PENSTOCK_DOES_NOT_FIT = 3,
  PENSTOCK_VERIFICATION_FAILED = 4,
  PENSTOCK_PEER_FAILED = 5,
  PENSTOCK_WATCHDOG = 6,
  PENSTOCK_NOT_FINITE = 7
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

/* What a variable is for. */
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

/* What a channel carries: messages between devices, microbatches of an input of
 * the model or of the labels, or what a sink reports: the loss (one f32, the
 * mean over the labels of the microbatch), the numbers of right predictions and
 * of labels that count (one i64 each), an output of the model, or what a metric
 * adds up (one i64 or f32), with its name as endpoint. */
enum {
  PENSTOCK_CHANNEL_TRANSFER = 0,
  PENSTOCK_CHANNEL_INPUT = 1,
  PENSTOCK_CHANNEL_LABELS = 2,
  PENSTOCK_CHANNEL_LOSS = 3,
  PENSTOCK_CHANNEL_CORRECT = 4,
  PENSTOCK_CHANNEL_COUNT = 5,
  PENSTOCK_CHANNEL_OUTPUT = 6,
  PENSTOCK_CHANNEL_METRIC = 7
};

/* What a schedule does. Under INFER every sink is an output of the model, and
 * an update stands for one microbatch on each replica. */
enum {
  PENSTOCK_SCHEDULE_TRAIN = 0,
  PENSTOCK_SCHEDULE_EVALUATE = 1,
  PENSTOCK_SCHEDULE_INFER = 2
};

#define PENSTOCK_MAX_BATCH_RANK 4
#define PENSTOCK_MAX_SPATIAL_RANK 3
/* The product is in a kernel that several devices share, or that none runs. */
#define PENSTOCK_EVERY_DEVICE 0xffffffffu
#define PENSTOCK_NO_DEVICE 0xfffffffeu
/* The device does not run the call. */
#define PENSTOCK_NO_OFFSET UINT64_MAX

enum {
  PENSTOCK_CONV_FORWARD = 0,
  PENSTOCK_CONV_INPUT_GRAD = 1,
  PENSTOCK_CONV_WEIGHT_GRAD = 2
};

/* What a summand does: it is added and receives the sum, is added and becomes
 * zero, or only receives. The first is added. */
enum {
  PENSTOCK_SUM_ADDS = 0,
  PENSTOCK_SUM_RESETS = 1,
  PENSTOCK_SUM_RECEIVES = 2
};

/* What an image of kernels is: text that the driver compiles, machine code, or
 * functions of the host for an emulated GPU. */
enum {
  PENSTOCK_IMAGE_PTX = 0,
  PENSTOCK_IMAGE_CUBIN = 1,
  PENSTOCK_IMAGE_EMULATED = 2
};

/* A device of an opened program; compiled code only passes it on. */
typedef struct penstock_device penstock_device;

/* Runs updates `first` .. `first + updates - 1` (for evaluation: microbatches
 * first .. first + updates - 1) of one segment on one device. `version` updates
 * were done before it: the newest version of every variable has this number. */
typedef void (*penstock_device_function)(penstock_device *device, int64_t first,
                                         int64_t updates, int64_t version);

/* Returns the learning rate of the next update, from the hyperparameter "lr"
 * and the number of updates done. */
typedef float (*penstock_rate_function)(penstock_device *device, float base,
                                        int64_t done);

/* One thread of an emulated kernel, with the addresses of its parameters. */
typedef void (*penstock_emulated_thread)(void **parameters);

typedef struct penstock_program penstock_program;

/* The structs, field by field, are described in abi.def. */
#define PENSTOCK_STRUCT(name)                                                  \
  typedef struct penstock_##name penstock_##name;                              \
  struct penstock_##name {
#define PENSTOCK_FIELD(name, field, type) type field;
#define PENSTOCK_ARRAY(name, field, type, length) type field[length];
#define PENSTOCK_END(name, bytes)                                              \
  }                                                                            \
  ;                                                                            \
  PENSTOCK_STATIC_ASSERT(sizeof(penstock_##name) == (bytes),                   \
                         "the size of penstock_" #name);
#include "penstock/abi.def"
#undef PENSTOCK_STATIC_ASSERT

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
/* The number of updates of the running segment. It can become smaller while the
 * segment runs. `least` is the number of updates of the shortest segment that
 * has all that this device does before it asks again. The result is at least
 * the `least` of the call before, and from the first smaller one on always the
 * same. Where it is below `least`, the caller does what the shorter segment
 * has, and no more. Asked at the head of each iteration of a device function's
 * outermost loops. */
int64_t penstock_bound(penstock_device *device, int64_t least);
/* The device is about to run the n-th microbatch (or update) of a task. */
void penstock_mark(penstock_device *device, uint32_t task, int64_t n);
double penstock_hyperparameter(penstock_device *device, uint32_t id);
/* Of one that is an integer, such as "seed"; 0 unless it is set. */
int64_t penstock_integer_hyperparameter(penstock_device *device, uint32_t id);
/* The matrices of product `id`, with elements of its type. */
void penstock_gemm(penstock_device *device, uint32_t id, const void *a,
                   const void *b, void *c);
/* Of a product with an epilogue, and its bias, null where it has none. Returns
 * 0 where the device has applied the epilogue; otherwise c is the product
 * alone, and what applies it follows. */
int32_t penstock_gemm_epilogue(penstock_device *device, uint32_t id,
                               const void *a, const void *b, void *c,
                               const void *bias);
/* The tensors in their roles, whichever of them the descriptor computes. */
void penstock_conv(penstock_device *device, uint32_t id, const void *input,
                   const void *weights, const void *output);
/* Starts program->kernels[kernel]. A parameter is a word: an address in the
 * device's memory, or a number in the low bytes. */
void penstock_launch(penstock_device *device, uint32_t kernel,
                     const uint64_t *parameters);
/* The address of program->constants[constant] in the device's memory. */
void *penstock_find_constant(penstock_device *device, uint32_t constant);
/* The address of the scalars of program->actions[action] in the device's
 * memory.
 */
void *penstock_find_scalars(penstock_device *device, uint32_t action);
/* Begins program->actions[action]. Returns 0 where the device did it all by
 * itself; otherwise its calls follow, and then penstock_end. */
int32_t penstock_begin(penstock_device *device, uint32_t action, int64_t key);
/* Returns 0 when the action is done; otherwise its calls follow once more, and
 * then penstock_end. */
int32_t penstock_end(penstock_device *device, uint32_t action);
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
/* Writes a checkpoint of now into a folder, that of the option "checkpoint-dir"
 * if it is null, and returns when it is on the disk. */
int penstock_checkpoint(penstock_run *run, const char *folder);
/* Goes on from a checkpoint, or from the newest one in a folder. Once, before
 * it trains. */
int penstock_resume(penstock_run *run, const char *folder);
/* Runs the last `updates` updates again on one device and compares. */
int penstock_replay(penstock_run *run, int64_t updates);
const char *penstock_error(const penstock_run *run);
void penstock_close(penstock_run *run);
int penstock_main(int argc, char **argv, const penstock_program *program);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_ABI_H */
