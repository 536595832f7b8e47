#!/usr/bin/env python3
"""Exported architectures against PyTorch: the same model, data and optimizer.

    bench/architectures.py [--only=REGEX] [--exporter=dynamo|script|both]
                           [--stages=1,2,3,4,5] [--updates=20] [--timeout=600]
                           [--again=never|none|failed|rows|all] [--write=FILE.md]

Every architecture of architectures_list.py gets random weights, is exported by
PyTorch's two exporters, compiled by penstockc and trained, for every number of
stages. The table has the largest relative difference of the losses from
PyTorch's f32, and of both from PyTorch's f64; whether logs and saved models of
all numbers of stages are equal byte for byte; or the error in which a model was
refused.

A row has processes of its own and stays in the work folder: started again, the
script measures only what is missing, with --again=failed what failed as well, with
--again=rows all rows and with --again=all all exports, too; --again=never only
prints what there is. Needs torch, onnx, torchvision, timm and transformers, which nothing
else of the project does.
"""

import datetime
import json
import os
import re
import signal
import subprocess
import sys

import architectures_list
import measure

GOAL = 1e-4
HEADER = ("| architecture | exporter | from PyTorch | from f64 | PyTorch from f64 | "
          "stages | penstockc | loss |\n|---|---|---|---|---|---|---|---|")


def row_folder(architecture, exporter):
    return (measure.work_folder() / "architectures" /
            f"{architecture.name.replace('/', '_')}-{exporter}")


def run(command, folder, timeout):
    """None, or what became of a process that did not end well."""
    with open(folder / "output.txt", "w", encoding="utf-8") as output:
        process = subprocess.Popen([sys.executable, *command], stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            if not process.wait(timeout=timeout):
                return None
            failed = f"the script ended with {process.returncode}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"not finished in {timeout} s"
    lines = (folder / "output.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"{failed}: {last[:200]}"


def measure_row(architecture, exporter, settings):
    """Runs the row in processes; whatever becomes of them is a row."""
    folder, bench = row_folder(architecture, exporter), measure.ROOT / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "row.json").unlink(missing_ok=True)
    updates, failed = str(settings["updates"]), None
    if settings["again"] == "all" or not (folder / "reference.json").exists():
        (folder / "reference.json").unlink(missing_ok=True)
        failed = run([bench / "architectures_export.py", architecture.name, exporter, updates,
                      folder], folder, settings["timeout"])
    if not failed:
        failed = run([bench / "architectures_row.py", settings["stages"], updates, folder],
                     folder, settings["timeout"])
    if failed:
        (folder / "row.json").write_text(json.dumps({"failed": failed}))


def read_row(architecture, exporter):
    path = row_folder(architecture, exporter) / "row.json"
    return json.loads(path.read_text()) if path.exists() else None


def passed(row):
    return ("failed" not in row and row["equal"] and not row["problems"] and row["ours"] <= GOAL)


def format_row(architecture, exporter, row):
    if "failed" in row:
        cells = [row["failed"].replace("|", "\\|"), "", "", "", "", ""]
    else:
        stages = ", ".join(row["stages"])
        if len(row["stages"]) > 1:
            stages += ": equal" if row["equal"] else ": DIFFERENT"
        if row["problems"]:
            stages += f"; {', '.join(row['problems'])}: {next(iter(row['problems'].values()))}"
        cells = [f"{row['ours']:.1e}", f"{row['ours_exact']:.1e}", f"{row['pytorch_exact']:.1e}",
                 stages.replace("|", "\\|"), f"{row['seconds']:.1f} s" if row["seconds"] else "",
                 f"{row['first']:.4f} -> {row['last']:.4f}"]
    return f"| {architecture.name} | {exporter} | " + " | ".join(cells) + " |"


def document(rows, settings):
    """The page of the documentation; `rows` are (architecture, exporter, row)."""
    done = [entry for entry in rows if "failed" not in entry[2]]
    equal = [entry for entry in done if entry[2]["equal"] and len(entry[2]["stages"]) > 1]
    near = [entry for entry in done if entry[2]["ours"] <= GOAL]
    compilers = sorted({row["compiler"] for _, _, row in rows if "compiler" in row})
    versions = sorted({row["versions"] for _, _, row in rows if "versions" in row})

    def count(entries):
        return f"{len(entries)} rows of {len({entry[0].name for entry in entries})} architectures"
    lines = [
        "# Architectures", "",
        "Models as PyTorch's two exporters write them (`dynamo`: `torch.export`; `script`: "
        "TorchScript, opset 17), in small configurations with random weights, trained by compiled "
        "programs and by PyTorch on the same data. `bench/architectures.py --write=FILE` makes "
        "this page; `bench/architectures_list.py` has the configurations.", "",
        f"{datetime.date.today().isoformat()}; {'; '.join(compilers + versions)}. "
        f"{settings['updates']} updates of 2 microbatches each, SGD with momentum 0.9.", "",
        f"- {count(rows)} in all.",
        f"- {count(near)}: the losses stay within {GOAL:.0e} of PyTorch's, relative.",
        f"- {count(equal)}: losses and saved model are the same bytes for every number of stages "
        "that was tried, where it was more than one.",
        f"- {len(rows) - len(done)} rows have no numbers: the table says why.", "",
        "*From PyTorch* is the largest relative difference of a loss from PyTorch's in f32; *from "
        "f64* and *PyTorch from f64* are those of both from PyTorch in f64, which tell rounding "
        "from mistakes. *Penstockc* is processor time of the slowest compilation.", "",
        HEADER]
    lines += [format_row(*entry) for entry in rows]
    return "\n".join(lines) + "\n"


def main():
    settings = vars(measure.read_options(
        __doc__, only="", exporter="both", stages="1,2,3,4,5", updates=20, timeout=600,
        again="none", write=""))
    exporters = ["dynamo", "script"] if settings["exporter"] == "both" else [settings["exporter"]]
    print(HEADER, flush=True)
    rows = []
    for architecture in architectures_list.ARCHITECTURES:
        if not re.search(settings["only"], architecture.name):
            continue
        for exporter in exporters:
            row = read_row(architecture, exporter)
            if settings["again"] == "never" and row is None:
                continue
            if (settings["again"] != "never" and row is None or settings["again"] in ("rows", "all") or
                    settings["again"] == "failed" and not passed(row)):
                measure_row(architecture, exporter, settings)
                row = read_row(architecture, exporter)
            rows.append((architecture, exporter, row))
            print(format_row(*rows[-1]), flush=True)
    if settings["write"]:
        with open(settings["write"], "w", encoding="utf-8") as page:
            page.write(document(rows, settings))
    print(f"{sum(passed(row) for _, _, row in rows)} of {len(rows)} rows within {GOAL:.0e}, and equal "
          "for all numbers of stages that were tried")


if __name__ == "__main__":
    main()
