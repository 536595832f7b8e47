#!/usr/bin/env python3
"""What checkpoints cost a training, on this machine.

    checkpoints.py FOLDER [--megabytes 400] [--seconds 60] [--without PROGRAM]

Trains an MLP under Adam, whose weights and state are that large, on two stages.
Prints, each the median of several:

    the pause per checkpoint, over a memcpy of the same bytes by as many threads
    a run with a checkpoint every 20 s, over the same run without
    writing with checksums and fsync, over dd conv=fsync of the same bytes, both
    while it trains, so that they have as much of the cores
    from the files to the first update, over a start without them
    a run without checkpoints, over one of PROGRAM, which another build compiled

Needs nothing but Python and dd. FOLDER should be on the file system that counts;
on /dev/shm it is the page cache.
"""

import contextlib
import ctypes
import json
import mmap
import pathlib
import re
import shutil
import statistics
import subprocess
import threading
import time

import measure
import mlp_model

WIDTH, CLASSES, SAMPLES = 2048, 10, 256


def seconds_of_copy(size, threads, rounds=5):
    """The least time of a memcpy of `size` bytes by threads, pages in place."""
    copy = ctypes.CDLL(None).memcpy
    copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    blocks = [mmap.mmap(-1, size) for _ in range(2)]
    source, target = (ctypes.addressof(ctypes.c_char.from_buffer(block))
                      for block in blocks)
    ctypes.memset(source, 1, size)
    ctypes.memset(target, 1, size)
    share, times = size // threads, []
    for _ in range(rounds):
        workers = [threading.Thread(target=copy, args=(
            target + i * share, source + i * share, share))
            for i in range(threads)]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def checkpoint_figures(out):
    """Checkpoints, bytes, seconds of the writer, seconds of the pauses."""
    found = re.search(r"(\d+) checkpoints in '.*': ([\d.]+) (KiB|MiB) in "
                      r"([\d.]+) s, in ([\d.]+) s of which", out)
    scale = {"KiB": 1 << 10, "MiB": 1 << 20}[found.group(3)]
    return (int(found.group(1)), float(found.group(2)) * scale,
            float(found.group(4)), float(found.group(5)))


@contextlib.contextmanager
def training(program, folder, *more):
    """A run that has done its first update."""
    log = folder / "first.jsonl"
    log.unlink(missing_ok=True)
    process = subprocess.Popen(
        [program, f"--data=x={folder}/x.npy", f"--labels={folder}/labels.npy",
         "--steps=1000000", f"--log={log}", *map(str, more)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (log.exists() and log.stat().st_size):
        time.sleep(0.001)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def first_update(*arguments):
    """Seconds from the start of the process to the end of the first update."""
    begin = time.perf_counter()
    with training(*arguments):
        return time.perf_counter() - begin


def seconds_of_dd(source, target):
    """Seconds per byte, into a new file."""
    target.unlink(missing_ok=True)
    begin = time.perf_counter()
    subprocess.run(["dd", f"if={source}", f"of={target}", "bs=1M",
                    "conv=fsync"], check=True, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - begin) / source.stat().st_size


def main():
    arguments = measure.read_options(__doc__, "folder", megabytes=400.0, seconds=60.0, rounds=3,
                                     without="")
    folder = pathlib.Path(arguments.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    layers = max(2, round(arguments.megabytes * 1e6 / 12 / WIDTH / WIDTH))
    mlp_model.write_mlp(folder / "model.onnx", layers, WIDTH, CLASSES)
    mlp_model.write_data(folder, SAMPLES, WIDTH, CLASSES)
    program, checkpoints = folder / "train", folder / "run"
    subprocess.run(
        ["penstockc", folder / "model.onnx", "-o", program,
         "--loss=softmax-cross-entropy", "--microbatch-size=16",
         "--microbatches=4", "--stages=2", "--optimizer=adam",
         f"--report-json={folder}/report.json"], check=True)
    plan = json.loads((folder / "report.json").read_text())
    print(f"{plan['checkpoint_bytes'] / 1e6:.0f} MB of values, planned")

    # 1. Pauses and writing.
    per_update = measure.train(program, folder, 10)[0] / 10
    ratios, rates = [], []
    for _ in range(arguments.rounds):
        shutil.rmtree(checkpoints, ignore_errors=True)
        every = max(2, round(4 / per_update))
        _, out = measure.train(program, folder, 4 * every,
                               f"--checkpoint-dir={checkpoints}",
                               f"--checkpoint-every={every}", "--checkpoint-keep=1")
        count, size, writer, pause = checkpoint_figures(out)
        copy = seconds_of_copy(int(size / count), 2)
        ratios.append(pause / count / copy)
        state = next(checkpoints.glob("step-*")) / "state-00000.safetensors"
        alone = seconds_of_dd(state, folder / "copy")
        with training(program, folder):
            dd = seconds_of_dd(state, folder / "copy")
        rates.append(writer / size / dd)
        print(f"{count} checkpoints of {size / count / 1e6:.0f} MB: pause "
              f"{1e3 * pause / count:.1f} ms, memcpy {1e3 * copy:.1f} ms; "
              f"written at {size / writer / 1e6:.0f} MB/s, dd "
              f"{1e-6 / dd:.0f} MB/s, {1e-6 / alone:.0f} MB/s alone")
    print(f"pause over memcpy: {statistics.median(ratios):.2f} (at most 1.3)")
    print(f"writing over dd, while it trains: {statistics.median(rates):.2f} "
          "(at most 1.15)")

    # 2. The share of a run.
    steps = max(2, round(arguments.seconds / per_update))
    every = max(1, round(20 / per_update))
    without, with_them = [], []
    for _ in range(arguments.rounds):
        shutil.rmtree(checkpoints, ignore_errors=True)
        without.append(measure.train(program, folder, steps)[0])
        with_them.append(measure.train(
            program, folder, steps, f"--checkpoint-dir={checkpoints}",
            f"--checkpoint-every={every}", "--checkpoint-keep=1")[0])
    share = statistics.median(with_them) / statistics.median(without) - 1
    print(f"one every 20 s: {100 * share:.2f} % of the run (at most 2 %)  "
          f"{[round(t, 2) for t in without]} {[round(t, 2) for t in with_them]}")

    # 3. Resume.
    cold, resumed = [], []
    for _ in range(arguments.rounds):
        cold.append(first_update(program, folder))
        resumed.append(first_update(program, folder,
                                    f"--resume={checkpoints}"))
    beyond = statistics.median(resumed) - statistics.median(cold)
    print(f"resume to first update: {beyond:.2f} s beyond a start of "
          f"{statistics.median(cold):.2f} s (at most 0.5 s)")

    # 4. Without checkpoints.
    if not arguments.without:
        return
    now, before = [], []
    for _ in range(2 * arguments.rounds):
        before.append(measure.train(arguments.without, folder, max(2, steps // 4))[0])
        now.append(measure.train(program, folder, max(2, steps // 4))[0])
    print(f"without checkpoints, over before: "
          f"{statistics.median(now) / statistics.median(before):.3f} "
          "(at most 1.01)")


main()
