#!/usr/bin/env python3
"""Models of other exporters than PyTorch's, checked against ONNX Runtime.

    bench/other_exporters.py [--only=REGEX] [--write=FILE.md]

Keras models as its own exporter writes them, scikit-learn's through skl2onnx,
PaddlePaddle's through paddle2onnx, JAX's through jax2onnx, and Keras files again
behind the tools that rewrite models: ONNX Runtime's optimizer, onnxsim,
onnxslim, the float16 and version converters, the quantizer. check_model.py says
of each whether losses, gradients and outputs are ONNX Runtime's; a refusal is a row
with its line. Needs the packages of those exporters, each for its own rows only.
"""

import os
import pathlib
import re

import check_model
import measure
from other_exporters_list import SOURCES

INTRODUCTION = """# Other exporters

Models as other exporters than PyTorch's write them, and as tools rewrite them, in small configurations.
`bench/other_exporters.py --write=FILE` makes this page: `bench/check_model.py` trains each for 3 updates
of random data and compares losses, gradients and outputs with ONNX Runtime's for the same weights. Gradients
are compared with central differences of a loss in f32, so that 3e-03 is as near as is asked for, and
more than 3e-02 is a failure; float16 rows have wider bounds still.
"""
HEADER = "| model | what came of it |\n|---|---|"


def row_of(name, make, flags, folder):
    """The text of a row, and whether it is numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    try:
        make(path)
    except Exception as error:  # The exporters' own refusals are of many types.
        said = (str(error).strip().splitlines() or ["?"])[0]
        return f"not exported: {type(error).__name__}: {said[:120]}", False
    try:
        errors = check_model.check(path, folder, ["--microbatch-size=4", *flags], limit=24)
        return check_model.describe(errors), True
    except check_model.Refused as refused:
        said = re.sub(r"\S*/model.onnx: ", "", str(refused)).split("; rewrite them")[0]
        return "refused: " + (said if len(said) < 260 else said[:260] + "..."), False
    except check_model.Failed as failed:
        return f"FAILED: {failed}", False
    except Exception as error:  # ONNX Runtime does not run every file.
        return f"ONNX Runtime: {str(error).splitlines()[0][:160]}", False


def main():
    options = measure.read_options(__doc__, only="", write="")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    lines, numbers, failures, total = [], 0, 0, 0
    print(HEADER)
    for source in SOURCES:
        for name, make, flags in source():
            if not re.search(options.only, name):
                continue
            folder = measure.work_folder() / "other_exporters" / name.replace("/", "_")
            said, well = row_of(name, make, flags, pathlib.Path(folder))
            numbers, failures, total = numbers + well, failures + said.startswith("FAILED"), total + 1
            lines.append(f"| {name} | " + said.replace("|", "\\|") + " |")
            print(lines[-1], flush=True)
    summary = (f"{total} models: {numbers} as ONNX Runtime has them, {failures} otherwise, the rest "
               "without numbers")
    print(summary)
    if options.write:
        pathlib.Path(options.write).write_text(
            "\n".join([INTRODUCTION, f"{summary}.", "", HEADER, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
