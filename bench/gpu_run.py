"""Second half of bench/gpu.sh, on the machine with the GPU.

    gpu_run.py FOLDER OUT STEP.. [--seconds=N] [--minutes=N]

FOLDER is what gpu_prepare.py packed. Steps, in this order when none is named,
with the minutes that they may take on an H100:

    versions      1  GPU, driver, libraries; the rate of a copy and of products
    bits          1  each class of kernels: the bytes of the emulated GPU's outputs
    train         2  small models: --verify, losses near the emulated GPU's, and
                     the saved models of 1 and 4 stages the same bytes
    sanitize      3  compute-sanitizer over small models, without graphs
    rates         4  each class of kernels at full size, beside the rate of a copy
    kernels       3  where an update's time goes, kernel by kernel, by ncu
    compare-bf16  6  samples per second beside PyTorch: eager, compiled, with
    compare-f32   5  graphs; with --tune; processor time, launches and memory
    compare-tf32  5

A step that fails prints why and lets the others run; the last lines say which
failed. OUT gets results.json, from which a later run goes on, and the output of
every command. A command has --seconds at most, and so has each mode of PyTorch; all
steps together have --minutes. Needs numpy; versions, rates and compare need torch.
"""

import argparse
import csv
import filecmp
import functools
import gzip
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time

import numpy

import gpu_models

LIBRARIES = ("libcublasLt.so", "libcudnn_graph.so", "libnccl.so")
TOLERANCE = 1e-4  # of losses after 20 updates


class Failed(Exception):
    pass


class Late(Exception):
    pass


def find_libraries():
    """Folders of the libraries that torch brings along, and of the toolkit."""
    roots = [pathlib.Path("/usr/local/cuda")]
    roots += [pathlib.Path(path) / "nvidia" for path in sys.path if "site-packages" in path]
    found = []
    for root in roots:
        for library in LIBRARIES:
            found += {str(path.parent) for path in root.glob(f"**/{library}*")}
    return sorted(set(found))


class Runner:
    def __init__(self, options):
        self.folder, self.out, self.seconds = options.folder, options.out, options.seconds
        self.end = time.perf_counter() + 60 * options.minutes
        self.plan = json.loads((self.folder / "plan.json").read_text())
        self.saved = self.out / "results.json"
        self.results = json.loads(self.saved.read_text()) if self.saved.exists() else {}
        self.commands = sum(1 for _ in self.out.glob("[0-9]*-*.txt"))
        self.environment = {**os.environ}
        if self.plan["arch"] != "emulated":
            libraries = find_libraries()
            self.environment.setdefault("PENSTOCK_CUDA_PATH", ":".join(libraries))
            # Libraries that these load themselves.
            self.environment["LD_LIBRARY_PATH"] = ":".join(
                [*libraries, os.environ.get("LD_LIBRARY_PATH", "")])

    def time_left(self):
        """Seconds that a command may take."""
        left = min(self.seconds, self.end - time.perf_counter())
        if left < 5:
            raise Failed("no time left: run this step again, with results.json")
        return left

    def run(self, *command, fails=False, **environment):
        """Runs a command; returns what it printed."""
        seconds = self.time_left()
        self.commands += 1
        log = self.out / f"{self.commands:03}-{pathlib.Path(command[0]).name}.txt"
        begin = time.perf_counter()
        try:
            done = subprocess.run(
                [str(part) for part in command], cwd=self.folder, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, timeout=seconds,
                env={**self.environment, **environment}, check=False)
            text, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            text, code = (late.stdout or b"").decode(errors="replace"), f"after {seconds:.0f} s"
        except OSError as error:
            text, code = str(error), "not found"
        log.write_text(f"{' '.join(map(str, command))}\n{text}\n"
                       f"exit {code}, {time.perf_counter() - begin:.2f} s\n")
        if code and not fails:
            raise Failed(f"{log.name}: exit {code}: {' '.join(text.split()[-40:])}")
        return text

    def unpack(self, name):
        path = self.folder / name
        if not path.exists():
            with gzip.open(f"{path}.gz", "rb") as packed, open(path, "wb") as file:
                shutil.copyfileobj(packed, file)
        return path


# ----------------------------------------------------------------------------
# Steps
# ----------------------------------------------------------------------------

def time_of(torch, work, rounds=10):
    """Seconds, the median."""
    work()
    times = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def versions(runner):
    print(runner.run("nvidia-smi", fails=True).strip())
    print("libraries:", runner.environment.get("PENSTOCK_CUDA_PATH", "none"))
    import torch
    print(f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    if not torch.cuda.is_available():
        raise Failed("torch finds no GPU")
    a = torch.empty(2**30, dtype=torch.float32, device="cuda").normal_()
    b = torch.empty_like(a)
    seconds = time_of(torch, lambda: b.copy_(a))
    runner.results["copy"] = 2 * 4 * a.numel() / seconds
    print(f"copy: {runner.results['copy'] / 1e12:.2f} TB/s")
    del a, b
    m = torch.randn(8192, 8192, device="cuda")
    for name, kind, tf32 in (("f32", m.dtype, False), ("tf32", m.dtype, True),
                             ("bf16", torch.bfloat16, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        x = m.to(kind)
        rate = 2 * 8192**3 / time_of(torch, lambda: x @ x)
        runner.results[f"product {name}"] = rate
        print(f"product {name}: {rate / 1e12:.0f} TF")


def bits(runner):
    wrong = []
    for kernel, plan in kernels_of(runner):
        runner.unpack(f"{kernel.name}-small.onnx")
        data = gpu_models.write_inputs(kernel, plan["small"], 2, runner.folder)
        outputs = runner.folder / "out"
        shutil.rmtree(outputs, ignore_errors=True)
        try:
            runner.run(f"./{kernel.name}-small", *data, "--outputs", outputs)
        except Failed as failure:
            print(f"{kernel.name}: {failure}")
            wrong.append(kernel.name)
            continue
        for expected in sorted((runner.folder / f"{kernel.name}.out").iterdir()):
            same = filecmp.cmp(expected, outputs / expected.name, shallow=False)
            text = "equal bits"
            if not same:
                wrong.append(kernel.name)
                a, b = numpy.load(expected), numpy.load(outputs / expected.name)
                text = (f"{numpy.sum(a != b)} of {a.size} differ, "
                        f"by {numpy.nanmax(numpy.abs(a - b)):.2g} at most")
            print(f"{kernel.name} {expected.stem}: {text}")
    if wrong:
        raise Failed(f"other bits: {', '.join(wrong)}")


def kernels_of(runner):
    by_name = {kernel.name: kernel for kernel in gpu_models.KERNELS}
    return [(by_name[plan["name"]], plan) for plan in runner.plan["kernels"]]


def read_losses(path):
    return numpy.array([json.loads(line)["loss"] for line in path.read_text().splitlines()
                        if '"loss"' in line])


def has_bits_of_kernels(runner, text, command, name):
    """Whether a run without cuBLASLt's epilogues saves the same model."""
    applied = re.findall(r"(\d+) of (\d+) epilogues", text)
    if not applied:
        return True
    saved = runner.out / f"{name}.kernels.onnx"
    runner.run(*command, "--save", saved, PENSTOCK_EPILOGUES="0")
    same = filecmp.cmp(saved, runner.out / f"{name}.onnx", shallow=False)
    print(f"{name}: {sum(int(a) for a, _ in applied)} of {sum(int(b) for _, b in applied)} "
          f"epilogues by cuBLASLt, {'equal bits' if same else 'other bits'} by kernels")
    return same


def train(runner):
    wrong = []
    for run in runner.plan["small"]:
        name = run["name"]
        log, saved = runner.out / f"{name}.jsonl", runner.out / f"{name}.onnx"
        data = [flag for one in run["data"] for flag in ("--data", one)]
        command = [f"./{name}", *data, "--labels", run["labels"], "--steps", 20, "--verify",
                   "--log", log, "--save", saved, "--model", run["model"]]
        try:
            text = runner.run(*command)
        except Failed as failure:
            print(f"{name}: {failure}")
            # Call by call, so that the one that fails is named.
            text = runner.run(*command, fails=True, PENSTOCK_GRAPHS="0", CUDA_LAUNCH_BLOCKING="1")
            print(f"  call by call: {' '.join(text.split()[-40:])}")
            wrong.append(name)
            continue
        a, b = read_losses(log), read_losses(runner.folder / f"{name}.jsonl")
        difference = float(numpy.max(numpy.abs(a - b) / numpy.abs(b)))
        verified = re.search("^verify: .*", text, re.M)
        print(f"{name}: {verified[0] if verified else 'not verified'}; "
              f"losses within {difference:.1e} of the emulated GPU's")
        limit = 2e-2 if "bf16" in name else TOLERANCE
        if not verified or not difference < limit or not has_bits_of_kernels(
                runner, text, command, name):
            wrong.append(name)
    for one in runner.out.glob("*-1.onnx"):
        four = one.with_name(one.name.replace("-1.onnx", "-4.onnx"))
        same = four.exists() and filecmp.cmp(one, four, shallow=False)
        print(f"{one.stem[:-2]}: 1 and 4 stages {'equal' if same else 'differ'}")
        if not same:
            wrong.append(one.stem)
    if wrong:
        raise Failed(", ".join(wrong))


def sanitize(runner):
    wrong = []
    for tool in ("memcheck", "racecheck", "initcheck"):
        for run in runner.plan["small"]:
            if run["name"] not in ("mlp-4", "cnn-1"):
                continue
            data = [flag for one in run["data"] for flag in ("--data", one)]
            try:
                text = runner.run("compute-sanitizer", "--tool", tool, "--error-exitcode", 9,
                                  f"./{run['name']}", *data, "--labels", run["labels"], "--steps", 2,
                                  "--model", run["model"], PENSTOCK_GRAPHS="0")
                found = re.findall("^=+ .*SUMMARY.*", text, re.M)
                print(f"{tool} {run['name']}: {found[-1] if found else 'no summary'}")
            except Failed as failure:
                print(f"{tool} {run['name']}: {failure}")
                wrong.append(f"{tool} {run['name']}")
    if wrong:
        raise Failed(", ".join(wrong))


def rates(runner):
    copy = runner.results.get("copy")
    slow = []
    for kernel, plan in kernels_of(runner):
        sizes, trace = plan["large"], runner.out / f"{kernel.name}.trace.json"
        runner.unpack(f"{kernel.name}-large.onnx")
        samples = 4
        data = gpu_models.write_inputs(kernel, sizes, samples, runner.folder)
        outputs = runner.folder / "out"
        shutil.rmtree(outputs, ignore_errors=True)
        try:
            runner.run(f"./{kernel.name}-large", *data, "--outputs", outputs, "--trace", trace)
        except Failed as failure:
            print(f"{kernel.name}: {failure}")
            slow.append(kernel.name)
            continue
        events = json.loads(trace.read_text())
        events = events["traceEvents"] if isinstance(events, dict) else events
        times = [event["dur"] for event in events
                 if event.get("ph") == "X" and event.get("cat") == "action"]
        # The first one compiles and loads.
        seconds = statistics.median(times[1:]) / 1e6
        moved = sum(path.stat().st_size for path in outputs.iterdir()) / samples
        for _, (kind, shape, _) in kernel.inputs(sizes).items():
            moved += int(kind[1]) * math.prod(shape)
        if kernel.name == "gather":
            moved *= 2  # the rows that are read
        rate = moved / seconds
        runner.results[f"rate {kernel.name}"] = rate
        share = f"{rate / copy:.0%} of a copy, goal {kernel.goal:.0%}" if copy else "no copy"
        print(f"{kernel.name}: {seconds * 1e6:.0f} us, {rate / 1e12:.2f} TB/s, {share}")
        if copy and kernel.goal and rate < kernel.goal * copy:
            slow.append(kernel.name)
        shutil.rmtree(outputs)
    if slow:
        raise Failed(f"below the goal: {', '.join(slow)}")


def list_kernels(text):
    """Name, grid and microseconds of each launch in what ncu prints, in nanoseconds."""
    rows = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    return [(row["Kernel Name"], row["Grid Size"], float(row["Metric Value"].replace(",", "")) / 1e3)
            for row in rows if row["Metric Name"] == "gpu__time_duration.sum"]


def write_samples(runner, model, count):
    x, labels = gpu_models.make_samples(model, runner.plan["tiny"], count)
    numpy.save(runner.folder / "x.npy", x)
    numpy.save(runner.folder / "labels.npy", labels)


def kernels(runner):
    wrong = []
    for run in runner.plan["models"]:
        if run["stages"] != 1 or run["precision"] == "tf32":
            continue
        runner.unpack(f"{run['model']}-model.onnx")
        write_samples(runner, gpu_models.MODELS[run["model"]], run["batch"])
        try:
            text = runner.run(
                "ncu", "--csv", "--clock-control", "none", "--cache-control", "none", "--print-units", "base",
                "--metrics", "gpu__time_duration.sum", f"./{run['name']}", "--data", "x=x.npy",
                "--labels", "labels.npy", "--steps", 3, "--model", f"{run['model']}-model.onnx",
                PENSTOCK_GRAPHS="0")
            launches = list_kernels(text)
            if len(launches) < 3:
                raise Failed("ncu lists no launches")
            # The last of three updates.
            launches = launches[len(launches) - len(launches) // 3:]
        except Failed as failure:
            print(f"{run['name']}: {failure}")
            wrong.append(run["name"])
            continue
        (runner.out / f"{run['name']}.kernels.csv").write_text("".join(
            f"{time:.1f},{grid},{name}\n" for name, grid, time in launches))
        total = sum(time for _, _, time in launches)
        print(f"{run['name']}: {len(launches)} launches, {total / 1e3:.2f} ms")
        by_name = {}
        for name, _, time in launches:
            count, sum_of_times = by_name.get(name, (0, 0))
            by_name[name] = count + 1, sum_of_times + time
        for name, (count, time) in sorted(by_name.items(), key=lambda item: -item[1][1])[:10]:
            print(f"  {time / total:6.1%} {time:9.1f} us in {count:4} of {name[:80]}")
    if wrong:
        raise Failed(", ".join(wrong))


def our_rate(runner, run, *flags):
    """Samples per second, of a long run less a short one, and what else it takes."""
    few, many = (2, 60) if runner.plan["tiny"] else (10, 40)
    walls, hosts = [], []
    memory = runner.out / "memory.json"
    for steps in (few, many):
        # On the emulated GPU an update may take seconds.
        if walls and runner.plan["tiny"]:
            many = steps = few + min(many - few, 3 + int(10 * few / max(walls[0], 0.01)))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = runner.run(f"./{run['name']}", "--data", "x=x.npy", "--labels", "labels.npy",
                          "--steps", steps, "--model", f"{run['model']}-model.onnx",
                          "--memory", memory, *flags)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(float(re.search(r"samples in ([0-9.]+) s", text)[1]))
        hosts.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    (runner.out / f"{run['name']}{'-tuned' if flags else ''}.summary.txt").write_text(text)
    if walls[1] <= walls[0]:
        raise Failed(f"{few} and {many} updates take {walls[0]} and {walls[1]} s: too few to tell")
    return {"samples/s": run["batch"] * (many - few) / (walls[1] - walls[0]),
            "ms": 1e3 * (walls[1] - walls[0]) / (many - few),
            "host ms": 1e3 * (hosts[1] - hosts[0]) / (many - few),
            "GiB": sum(each["arena"] for each in json.loads(memory.read_text())["devices"]) / 2**30,
            "launches": sum(map(float, re.findall(r"([0-9.]+) launches per update", text)))}


def describe(ours):
    return (f"{ours['samples/s']:.1f} samples/s, {ours['ms']:.2f} ms an update, of the host "
            f"{ours['host ms']:.2f} ms, {ours['launches']:.0f} launches, {ours['GiB']:.2f} GiB")


def torch_rates(runner, model, precision, batch):
    """Samples per second by mode."""
    import torch
    from torch import nn
    tiny = runner.plan["tiny"]
    if not torch.cuda.is_available():
        return {}
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    x, labels = (torch.from_numpy(part).cuda() for part in gpu_models.make_samples(
        model, tiny, batch))
    found = {}

    def stop(*_):
        raise Late
    for mode in ("eager", "default", "reduce-overhead"):
        try:
            # What compiles may take minutes.
            signal.signal(signal.SIGALRM, stop)
            signal.alarm(math.ceil(runner.time_left()))
            module = model.build(tiny).cuda().train()
            optimizer = torch.optim.SGD(module.parameters(), lr=1e-4, momentum=0.9)
            call = module if mode == "eager" else torch.compile(module, mode=mode)
            criterion = nn.CrossEntropyLoss()

            def update():
                optimizer.zero_grad(set_to_none=True)
                with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
                    y = call(x)
                    loss = criterion(y.reshape(-1, y.shape[-1]), labels.reshape(-1))
                loss.backward()
                optimizer.step()
            for _ in range(10):
                update()
            torch.cuda.reset_peak_memory_stats()
            found[mode] = batch / statistics.median(time_of(torch, update, 10) for _ in range(3))
            found[f"{mode} GiB"] = torch.cuda.max_memory_allocated() / 2**30
        except Late:
            print(f"{model.name} {precision} {mode}: not within its time")
        except Failed as failure:
            print(f"{model.name} {precision} {mode}: {failure}")
        except Exception as error:  # Out of memory, or what compilers say.
            print(f"{model.name} {precision} {mode}: {(str(error).splitlines() or [type(error).__name__])[0][:120]}")
        finally:
            signal.alarm(0)
        module = optimizer = call = None
        torch.cuda.empty_cache()
    return found


def compare(runner, precision):
    """Ours first: those of PyTorch may take what time is left."""
    wrong, rates = [], {}
    batches = {run["model"]: run["batch"] for run in runner.plan["models"]}
    for model in gpu_models.MODELS.values():
        runner.unpack(f"{model.name}-model.onnx")
        write_samples(runner, model, 2 * batches[model.name])
        for run in runner.plan["models"]:
            if (run["model"], run["precision"]) != (model.name, precision):
                continue
            try:
                ours = our_rate(runner, run)
                rates[run["name"]] = ours
                print(f"{run['name']}: {describe(ours)}", flush=True)
                if run["stages"] == 1:
                    tuned = our_rate(runner, run, "--tune", runner.out / f"{run['name']}.tune")
                    runner.results[f"{run['name']} tuned"] = tuned
                    print(f"{run['name']}, tuned: {describe(tuned)}", flush=True)
            except (Failed, TypeError) as failure:
                print(f"{run['name']}: {failure}")
                wrong.append(run["name"])
    for model in gpu_models.MODELS.values():
        theirs = torch_rates(runner, model, precision, batches[model.name])
        best = max((rate for mode, rate in theirs.items() if "GiB" not in mode), default=0)
        text = ", ".join(f"{mode} {value:.1f}" for mode, value in theirs.items())
        for run in runner.plan["models"]:
            if run["model"] != model.name or run["name"] not in rates:
                continue
            runner.results[run["name"]] = {"penstock": rates[run["name"]], **theirs}
            rate = rates[run["name"]]["samples/s"]
            times = f"{rate / best:.2f} x the best of" if best else "no"
            print(f"{run['name']}: {rate:.1f} samples/s, {times} PyTorch ({text})", flush=True)
    if wrong:
        raise Failed(", ".join(wrong))


STEPS = {step.__name__: step for step in (versions, bits, train, sanitize, rates, kernels)} | {
    f"compare-{precision}": functools.partial(compare, precision=precision)
    for precision in ("bf16", "f32", "tf32")}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("out", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("steps", nargs="*", choices=[[], *STEPS], default=[])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    runner = Runner(options)
    failed = []
    for name in options.steps or STEPS:
        print(f"== {name}", flush=True)
        begin = time.perf_counter()
        try:
            STEPS[name](runner)
        except (Failed, ImportError) as failure:
            print(f"FAILED {name}: {failure}")
            failed.append(name)
        print(f"== {name}: {time.perf_counter() - begin:.0f} s", flush=True)
        runner.saved.write_text(json.dumps(runner.results, indent=1))
    print("failed: " + ", ".join(failed) if failed else "all steps passed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
