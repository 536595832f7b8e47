#!/usr/bin/env python3
"""The slowest stage of the default cuts against that of the best cuts there are.

    bench/default_cuts.py [--only=REGEX] [--stages=2,3,4] [--cache=FOLDER]
                          [--rounds=N] [--tries=N]

For each model and number of stages: the cuts that penstockc makes by itself,
those with --profile, and the best of all.

A stage is an interval of nodes, and takes forward, backward, and an eighth of an
update. Stages are timed on one core, one after the other: the program of some
cuts is trained on one device, and the shortest of each action counts, of all its
updates and rounds; rounds alternate between the programs. Needs an idle core: on
a busy machine no action of more than a few milliseconds runs undisturbed.

The best of all cuts is found by trial: times of intervals that were measured, and
of others what their nodes would add up to, as far as that is known by then, less
2 %, make a dynamic program. What it takes is measured, until it takes what was.

With --cache, models, programs and times are kept, for calls with the same
compiler: the next one measures anew what the table shows, and searches on.
--tries=0 does not search, and --rounds is how often each program of the table is
trained. Needs PyTorch and torchvision.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from measure import build_folder, machine, read_options  # noqa: E402
from mlp_model import write_data, write_mlp  # noqa: E402

MICROBATCHES = 8
SECONDS = 0.8  # Of one run, about.
OPTIMISM = 0.98


def export_vgg(folder):
    """The convolutions of VGG-11 without the last two, and a small head."""
    import numpy
    import torch
    import torchvision
    import training_steps
    torch.manual_seed(7)
    vgg = torchvision.models.vgg
    net = vgg.VGG(vgg.make_layers([64, "M", 128, "M", 256, 256, "M", 512, 512, "M"]))
    net.avgpool = torch.nn.Identity()
    net.classifier = torch.nn.Sequential(torch.nn.Linear(2048, 512), torch.nn.ReLU(),
                                         torch.nn.Linear(512, 10))
    images = torch.randn(128, 3, 32, 32)
    numpy.save(folder / "x.npy", images.numpy())
    numpy.save(folder / "labels.npy", torch.randint(10, (128,)).numpy())
    training_steps.export(net.train(), images[:8], folder / "partial.onnx")
    (folder / "partial.onnx").rename(folder / "model.onnx")


def list_models(folder, only):
    """Name, folder and microbatch; x.npy and labels.npy lie beside model.onnx."""
    own = [(f"mlp{width}", 64, lambda place, width=width: (
        write_data(place, 1024, width, 100), write_mlp(place / "model.onnx", 8, width, 100)))
        for width in (256, 1024)] + [("vgg", 8, export_vgg)]
    for name, batch, make in own:
        if re.search(only, name):
            (folder / name).mkdir(parents=True, exist_ok=True)
            if not (folder / name / "model.onnx").exists():
                make(folder / name)
            yield name, folder / name, batch
    import memory_models
    for model in memory_models.export_all(folder, only):
        yield model.name, model.path.parent, model.batch


def read_actions(trace, shortest):
    """Keeps the shortest of each stage, kind and microbatch of an update."""
    rows, bars = {}, []
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "thread_name":
            if found := re.match(r"stage (\d+) ", event["args"]["name"]):
                rows[event["tid"]] = int(found[1])
        elif event.get("cat") == "action":
            bars.append((event["ts"], event["dur"], event["tid"], event["name"]))
    free = None
    for begin, duration, row, name in sorted(bars):
        end = begin + duration
        # An action takes from when the device was done with the one before.
        seconds = 1e-6 * (end - (begin if free is None else free))
        free = end
        if row not in rows or not re.fullmatch(r"[FBU]\d+", name):
            continue
        number = 0 if name[0] == "U" else int(name[1:]) % MICROBATCHES
        key = (rows[row], name[0], number)
        shortest[key] = min(seconds, shortest.get(key, seconds))


class Model:
    def __init__(self, place, batch):
        self.place, self.batch = place, batch
        self.file = place / "times.json"
        self.known = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.input = None
        header, *listed = self.compile("--list-nodes").stdout.splitlines()
        self.nodes = [line[header.index("node"):] for line in listed]
        # Seconds of each node, as far as known: at first, in any unit.
        self.weights = [max(float(line.split()[0]), 0.01) for line in listed]

    def compile(self, *flags):
        return subprocess.run(
            [build_folder() / "bin" / "penstockc", str(self.place / "model.onnx"), "-o",
             str(self.place / "program"), "--loss=softmax-cross-entropy",
             f"--microbatch-size={self.batch}", f"--microbatches={MICROBATCHES}", *flags],
            check=True, capture_output=True, text=True,
            env={**os.environ, "XDG_CACHE_HOME": str(self.place / "cache")})

    def find(self, name):
        return max(i for i, node in enumerate(self.nodes) if node == name) + 1

    def cuts(self, stages, *flags):
        """Numbers of the nodes that begin a stage."""
        text = self.compile(f"--stages={stages}", "--explain", "--emit=stages", *flags).stderr
        return tuple(self.find(name) for name in
                     re.findall(r"stage \d+ begins here, after '([^']*)'", text))

    def intervals(self, cuts):
        bounds = (0, *cuts, len(self.nodes))
        return [f"{begin}:{end}" for begin, end in zip(bounds, bounds[1:])]

    def train(self, cuts):
        """Trains these stages on one device once; keeps the shortest actions."""
        program = self.place / ("program-" + "-".join(map(str, cuts)))
        if not program.exists():
            names = ",".join(self.nodes[cut - 1] for cut in cuts)
            self.compile(f"--split-at={names}", "--devices=1", "--schedule=1f1b")
            (self.place / "program").rename(program)
        if self.input is None:
            text = subprocess.run([program, "--help"], check=True, capture_output=True,
                                  text=True).stdout
            self.input = re.search(r"--data ([^ =]+)=FILE", text)[1]
        updates = self.known.get("updates", 6)
        trace = self.place / "trace.json"
        subprocess.run(
            [program, "--data", f"{self.input}={self.place / 'x.npy'}",
             "--labels", str(self.place / "labels.npy"), "--steps", str(updates + 2),
             "--trace", str(trace), "--trace-steps", f"3:{updates + 2}", "--lr", "1e-12"],
            check=True, capture_output=True)
        shortest = {}
        read_actions(trace, shortest)
        whole = sum(shortest.values())
        self.known["updates"] = int(min(max(SECONDS / whole, 6), 200))
        times = collections.defaultdict(dict)
        for (stage, letter, number), seconds in shortest.items():
            times[stage][f"{letter}{number}"] = seconds
        for stage, interval in enumerate(self.intervals(cuts)):
            own = self.known.setdefault(interval, {})
            for action, seconds in times[stage].items():
                own[action] = min(seconds, own.get(action, seconds))
        self.file.write_text(json.dumps(self.known))

    def seconds(self, interval):
        """Of a stage per microbatch; None if it was not measured."""
        own = self.known.get(interval)
        if not own:
            return None
        return sum(own.values()) / MICROBATCHES

    def slowest(self, cuts):
        return max(self.seconds(interval) for interval in self.intervals(cuts))

    def fit(self):
        """Scales nodes until they add up to the intervals that were measured."""
        measured = []
        for key in self.known:
            if found := re.fullmatch(r"(\d+):(\d+)", key):
                measured.append((int(found[1]), int(found[2]), self.seconds(key)))
        measured.sort(key=lambda interval: interval[0] - interval[1])
        for _ in range(30):
            for begin, end, seconds in measured:
                ratio = seconds / sum(self.weights[begin:end])
                for node in range(begin, end):
                    self.weights[node] *= ratio ** 0.7
        sums = [0.0]
        for weight in self.weights:
            sums.append(sums[-1] + weight)
        return lambda begin, end: (self.seconds(f"{begin}:{end}")
                                   or OPTIMISM * (sums[end] - sums[begin]))

    def propose(self, stages):
        """The best cuts, as far as known."""
        time, count = self.fit(), len(self.nodes)
        best = {0: (0.0, ())}
        for stage in range(1, stages + 1):
            last = stage == stages
            best = {end: min((max(slowest, time(begin, end)), (*cuts, end))
                             for begin, (slowest, cuts) in best.items() if begin < end)
                    for end in ([count] if last else range(stage, count - stages + stage + 1))}
        return best[count][1][:-1]

    def search(self, stages, tries):
        for _ in range(tries):
            cuts = self.propose(stages)
            if all(self.seconds(interval) for interval in self.intervals(cuts)):
                return
            self.train(cuts)

    def best(self, stages):
        """Of all cuts whose intervals were measured."""
        known = {}
        for key in self.known:
            if found := re.fullmatch(r"(\d+):(\d+)", key):
                known.setdefault(int(found[2]), []).append(int(found[1]))
        best = {0: (0.0, ())}
        for _ in range(stages):
            best = {end: min(((max(best[begin][0], self.seconds(f"{begin}:{end}")),
                               (*best[begin][1], end))
                              for begin in begins if begin in best), default=None)
                    for end, begins in known.items()}
            best = {end: found for end, found in best.items() if found}
        return best[len(self.nodes)][1][:-1]


def main():
    options = read_options(__doc__, only="", stages="2,3,4", cache="", rounds=3, tries=12)
    print(f"{machine()}\n\n{'model':10}{'stages':>7}{'default ms':>12}{'profiled ms':>13}"
          f"{'best ms':>9}{'over best':>11}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(options.cache or name)
        for title, place, batch in list_models(folder, options.only):
            (place / "cache").mkdir(exist_ok=True)
            model = Model(place, batch)
            rows = []
            for stages in map(int, options.stages.split(",")):
                default, profiled = model.cuts(stages), model.cuts(stages, "--profile")
                for cuts in {default, profiled}:
                    if not all(model.seconds(interval) for interval in model.intervals(cuts)):
                        model.train(cuts)
                model.search(stages, options.tries)
                rows.append((stages, default, profiled))
            for _ in range(options.rounds):
                for cuts in sorted({cuts for stages, *own in rows
                                    for cuts in (*own, model.best(stages))}):
                    model.train(cuts)
            for stages, default, profiled in rows:
                best = model.best(stages)
                slowest = [1e3 * model.slowest(cuts) for cuts in (default, profiled, best)]
                print(f"{title:10}{stages:7}{slowest[0]:12.3f}{slowest[1]:13.3f}"
                      f"{slowest[2]:9.3f}{slowest[0] / slowest[2] - 1:+11.1%}", flush=True)


if __name__ == "__main__":
    main()
