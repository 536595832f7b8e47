/* Trains a compiled model from a program of one's own: a pass at a time, until
 * the accuracy is good enough. docs/embedding.md explains it.
 *
 *   embed TRAIN-IMAGES TRAIN-LABELS TEST-IMAGES TEST-LABELS TRAINED.onnx */

#include <penstock/abi.h>

#include <stdio.h>
#include <string.h>

/* The constant has the name of its type, which C cannot say. */
extern const penstock_program model __asm__("penstock_program");

/* Says what went wrong, and returns the exit code. */
static int fail(penstock_run *run, int code) {
  fprintf(stderr, "embed: error: %s\n", penstock_error(run));
  penstock_close(run);
  return code;
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: embed IMAGES LABELS TEST-IMAGES TEST-LABELS OUT\n");
    return PENSTOCK_USER_ERROR;
  }
  char images[4096], tests[4096];
  snprintf(images, sizeof images, "x=%s", argv[1]);
  snprintf(tests, sizeof tests, "x=%s", argv[3]);

  /* 1. Options are the flags of an executable, as strings. */
  const penstock_option options[] = {
      {"data", images},         {"labels", argv[2]}, {"eval-data", tests},
      {"eval-labels", argv[4]}, {"shuffle", NULL},   {"quiet", NULL},
      {"log", "embed.jsonl"},   {NULL, NULL},
  };
  penstock_run *run;
  int code = penstock_open(&model, options, &run);
  if (code)
    return fail(run, code);

  /* 2. So many updates at a time, from where the last call ended. */
  penstock_results results = {0};
  for (int pass = 1; pass <= 20 && results.accuracy < 0.95; ++pass) {
    if ((code = penstock_train(run, 44)))
      return fail(run, code);
    if ((code = penstock_evaluate(run, &results)))
      return fail(run, code);
    printf("pass %d: loss %.4f, accuracy %.1f %% of %lld samples\n", pass,
           results.loss, 100 * results.accuracy, (long long)results.samples);
  }

  /* 3. The model, and the end: files are whole when it returns. */
  if ((code = penstock_save(run, argv[5])))
    return fail(run, code);
  penstock_close(run);
  return PENSTOCK_DONE;
}
