"""Trains small models as threads of one process and as processes under MPI, and
prints a table of what came out.

usage: transports.py PENSTOCKC FOLDER [--rows NAME ...] [--ranks 1,2,3,4]
           [--mpi openmpi mpich] [--steps N] [--emulated]

A row is a method, a schedule, or a model; a column an MPI and a number of
processes, among which the four or fewer devices are divided. A cell is `=` where
the log (without its times), what is printed of evaluations and the saved model
have the bits that one process gave, and --verify found them, too; ` ` where there
are fewer devices than processes. Anything else ends the script with exit code 1
and what was said. An MPI that is not installed has no columns.

With --emulated, devices are emulated GPUs, each with a process of its own, between
which NCCL moves the messages; --ranks says nothing. Besides the MPIs there is a
launcher `none`, which sets the variables of torchrun. NCCL has one order of all
messages, which hetpipe has not: that row is left out unless it is asked for.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

from verify_methods import MODELS as SMALL

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}
# Whatever takes -n N and a command.
STARTS = {**{name: [file] for name, file in LAUNCHERS.items()},
          "none": [sys.executable,
                   str(pathlib.Path(__file__).with_name("launch.py"))]}
REGRESSION = ("test/fixtures/regression.onnx",
              "x=test/fixtures/regression-x.npy",
              "test/fixtures/regression-y.npy", 5, "mse")
MODELS = {**SMALL, "regression": REGRESSION,
          "ties": ("test/fixtures/tied-nodes.onnx", *REGRESSION[1:]),
          "skips": ("test/e2e/inputs/skip.onnxtext", *REGRESSION[1:])}
MOMENTUM = "--optimizer=sgd:lr=0.05,momentum=0.9"
ROWS = {
    # name: (model, flags)
    "sync": ("mlp", "--stages=4 --microbatches=4"),
    "naive": ("mlp", "--stages=4 --method=naive"),
    "pipedream": ("mlp", "--stages=4 --method=pipedream"),
    "2bw": ("mlp", "--stages=4 --microbatches=4 --method=2bw"),
    "pipemare": ("mlp", "--stages=4 --microbatches=2 "
                        "--method=pipemare:anneal-steps=6,warmup-steps=3"),
    "spectrain": ("mlp", f"--stages=4 --method=spectrain {MOMENTUM}"),
    "xpipe": ("mlp", "--stages=4 --microbatches=4 --method=xpipe "
                     "--optimizer=adam:lr=0.001"),
    "pipeoptim": ("mlp", f"--stages=4 --method=pipeoptim {MOMENTUM}"),
    "timeprest": ("mlp", f"--stages=4 --microbatches=4 --method=timeprest {MOMENTUM}"),
    "v-timeprest": ("mlp", f"--stages=4 --microbatches=4 --method=v-timeprest {MOMENTUM}"),
    "i-timeprest": ("mlp", f"--stages=4 --microbatches=4 --method=i-timeprest {MOMENTUM}"),
    "hetpipe": ("mlp", "--stages=2 --method=hetpipe:workers=2,distance=1 "
                       f"{MOMENTUM}"),
    "gpipe": ("mlp", "--stages=4 --microbatches=8 --schedule=gpipe"),
    "zb-h1": ("mlp", "--stages=4 --microbatches=8 --schedule=zb-h1"),
    "zb-h2": ("mlp", "--stages=4 --microbatches=8 --schedule=zb-h2"),
    "interleaved": ("mlp", "--stages=4 --devices=2 --microbatches=4 "
                           "--schedule=interleaved:chunks=2"),
    "zb-v": ("mlp", "--stages=4 --devices=2 --microbatches=4 --schedule=zb-v"),
    "chimera": ("mlp", "--stages=4 --microbatches=4 --schedule=chimera"),
    "replicas 2,1": ("regression", "--stages=2 --microbatches=6 "
                                   "--replicas=2,1"),
    "replicas 1,2": ("regression", "--stages=2 --microbatches=6 "
                                   "--replicas=1,2"),
    "replicas 2,2": ("mlp", "--stages=2 --microbatches=4 --replicas=2"),
    "ties": ("ties", "--stages=4 --microbatches=4 "
                     "--optimizer=adamw:lr=0.01,weight-decay=0.1"),
    "asynchronous ties": ("tied", "--stages=2 --method=pipedream"),
    "skips": ("skips", "--stages=3 --microbatches=4"),
    "batch norm": ("cnn", "--stages=3 --microbatches=4"),
    "dropout": ("stochastic", "--stages=3 --microbatches=4"),
    "transformer": ("transformer", "--stages=4 --microbatches=4"),
}
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT,
                          env=ENVIRONMENT, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit code "
                 f"{done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def read_log(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        for key in [key for key in record if "second" in key]:
            del record[key]
    return records


def train(folder, model, launcher, steps):
    """Returns all that has to be the same."""
    _, data, labels, _, _ = MODELS[model]
    log, saved = folder / "run.jsonl", folder / "saved.onnx"
    for path in (log, saved):
        path.unlink(missing_ok=True)
    out = run([*launcher, folder / "run", "--data", data, "--labels", labels,
               "--steps", str(steps), "--eval-data", data, "--eval-labels",
               labels, "--eval-every", str(steps // 2), "--shuffle", "--verify",
               "--peer-timeout", "20", "--log", log, "--save", saved])
    evaluations = [line for line in out.splitlines() if line.startswith("eval")]
    if "bitwise equal" not in out:
        sys.exit(f"no verification in\n{out}")
    return read_log(log), evaluations, saved.read_bytes()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("penstockc")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", nargs="*")
    parser.add_argument("--ranks", default="1,2,3,4")
    parser.add_argument("--mpi", nargs="*", default=list(LAUNCHERS))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--emulated", action="store_true")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    columns = [(mpi, int(ranks)) for mpi in options.mpi
               if shutil.which(STARTS[mpi][0])
               for ranks in ("0" if options.emulated else options.ranks).split(",")]
    print(f"{'':18}" + "".join(f"{mpi:>9} {ranks or 'D'}"
                               for mpi, ranks in columns))
    cells = 0
    for name in options.rows or ROWS:
        if name == "hetpipe" and options.emulated and not options.rows:
            continue
        model, flags = ROWS[name]
        file, _, _, size, loss = MODELS[model]
        report = options.folder / "report.json"
        run([options.penstockc, file, "-o", options.folder / "run",
             f"--microbatch-size={size}", f"--loss={loss}",
             f"--report-json={report}", *flags.split(),
             *(["--target=cuda", "--gpu-arch=emulated"] if options.emulated
               else [])])
        devices = {stage["device"]
                   for stage in json.loads(report.read_text())["stages"]}
        expected = train(options.folder, model, [], options.steps)
        plan = json.loads(run([options.folder / "run", "--plan"]))
        count = max([*devices, *(device for stage in plan["stages"]
                                 for device in stage.get("devices", []))]) + 1
        ENVIRONMENT["PENSTOCK_EMULATED_GPUS"] = str(count)
        text = ""
        for mpi, ranks in columns:
            ranks = ranks or count
            if ranks > count:
                text += f"{'':11}"
                continue
            found = train(options.folder, model,
                          [*STARTS[mpi], "-n", str(ranks)], options.steps)
            for what, one, other in zip(("log", "evaluations", "model"),
                                        expected, found):
                if one != other:
                    sys.exit(f"{name}: the {what} of {ranks} processes under "
                             f"{mpi} differs from that of one")
            cells += 1
            text += f"{f'= {ranks}' if options.emulated else '=':>11}"
        print(f"{name:18}{text}", flush=True)
    print(f"{cells} runs over processes have the bits of threads")


if __name__ == "__main__":
    main()
