"""Links a program that penstockc made with --emit=obj with C code of a test in it,
which may stand before functions of the runtime (`__wrap_penstock_mark`)."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def link_with(code, obj, program, build, wraps=(), **definitions):
    """`code` is C, `definitions` are those of its preprocessor."""
    source = pathlib.Path(f"{obj}.added.c")
    source.write_text(code)
    added = source.with_suffix(".o")
    subprocess.run(["cc", "-c", "-O2", f"-I{ROOT}/runtime/include", source, "-o", added,
                    *(f"-D{name}={value}" for name, value in definitions.items())], check=True)
    subprocess.run(["c++", obj, added, "-o", program, *(f"-Wl,--wrap={name}" for name in wraps),
                    f"-L{build}/runtime", "-Wl,-u,penstock_cpu", "-lpenstock_start",
                    "-lpenstock_cpu", "-lpenstock_runtime", "-lgomp", "-ldl", "-lpthread", "-lm"],
                   check=True)
