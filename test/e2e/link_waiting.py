"""Links a program that penstockc made with --emit=obj so that its forwards wait, as
those of a slower model would."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAITS = """
#include "penstock/abi.h"
#include <time.h>
extern const penstock_program program __asm__("penstock_program");
extern void __real_penstock_mark(penstock_device *, uint32_t, int64_t);
void __wrap_penstock_mark(penstock_device *device, uint32_t task, int64_t n) {
  const penstock_task *own = &program.tasks[task];
  __real_penstock_mark(device, task, n);
  if (own->letter == 'F') {
    int64_t wait = NANOSECONDS;
    struct timespec time = {wait / 1000000000, wait % 1000000000};
    if (wait)
      nanosleep(&time, 0);
  }
}
"""


def link_waiting(nanoseconds, obj, program, build):
    """`nanoseconds` is a C expression: of `n`, the number of the forward, and of
    `own->device`."""
    source = pathlib.Path(f"{obj}.waits.c")
    source.write_text(WAITS)
    waits = source.with_suffix(".o")
    subprocess.run(["cc", "-c", "-O2", f"-I{ROOT}/runtime/include", source, "-o", waits,
                    f"-DNANOSECONDS=({nanoseconds})"], check=True)
    subprocess.run(["c++", obj, waits, "-o", program, "-Wl,--wrap=penstock_mark",
                    f"-L{build}/runtime", "-Wl,-u,penstock_cpu", "-lpenstock_start",
                    "-lpenstock_cpu", "-lpenstock_runtime", "-lgomp", "-ldl", "-lpthread", "-lm"],
                   check=True)
