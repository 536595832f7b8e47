#!/usr/bin/env python3
"""The slowest stage of the default cuts against that of the best cuts found.

    bench/default_cuts.py [--only=REGEX] [--stages=2,3,4] [--cache=FOLDER]

For each model and number of stages: the cuts that penstockc makes by itself,
those with --profile, and the best that a search finds which begins at both and
moves the cuts next to the slowest stage while that helps. All are measured in
the same way, as --profile measures stages: the program of these stages is
trained, and the means of its actions count. Needs two idle cores, PyTorch and
torchvision. With --cache, times are kept, so that a search can be continued.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from measure import build_folder, machine  # noqa: E402
from mlp_model import write_mlp  # noqa: E402

MICROBATCHES = 8


def list_models(folder, only):
    """Name, file and microbatch."""
    for width in (256, 1024):
        name = f"mlp{width}"
        if re.search(only, name):
            (folder / name).mkdir(parents=True, exist_ok=True)
            if not (folder / name / "model.onnx").exists():
                write_mlp(folder / name / "model.onnx", 8, width, 100)
            yield name, folder / name / "model.onnx", 64
    import memory_models
    for model in memory_models.export_all(folder, only):
        yield model.name, model.path, model.batch


class Model:
    def __init__(self, path, batch, folder):
        self.path, self.batch, self.folder = path, batch, folder
        self.nodes = [line[40:].strip() for line in
                      self.compile("--list-nodes").stdout.splitlines()[1:]]
        self.known = {}

    def compile(self, *flags):
        return subprocess.run(
            [build_folder() / "bin" / "penstockc", str(self.path), "-o",
             str(self.folder / "program"), "--loss=softmax-cross-entropy",
             f"--microbatch-size={self.batch}", f"--microbatches={MICROBATCHES}", *flags],
            check=True, capture_output=True, text=True,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})

    def find(self, name):
        return max(i for i, node in enumerate(self.nodes) if node == name) + 1

    def cuts(self, stages, *flags):
        """Numbers of the nodes that begin a stage."""
        text = self.compile(f"--stages={stages}", "--explain", "--emit=stages", *flags).stderr
        return tuple(self.find(name) for name in
                     re.findall(r"stage \d+ begins here, after '([^']*)'", text))

    def measure(self, cuts):
        """Seconds of every stage per microbatch."""
        if cuts not in self.known:
            report = self.folder / "report.json"
            names = ",".join(self.nodes[cut - 1] for cut in cuts)
            self.compile(f"--split-at={names}", "--profile", f"--report-json={report}")
            self.known[cuts] = [
                stage["seconds"]["forward"] + stage["seconds"]["backward"]
                + stage["seconds"]["update"] / MICROBATCHES
                for stage in json.loads(report.read_text())["stages"]]
        return self.known[cuts]

    def improve(self, cuts):
        """Moves cuts next to the slowest stage while that makes it faster."""
        while True:
            times = self.measure(cuts)
            slowest = times.index(max(times))
            tried = []
            for index, step in ((slowest - 1, 1), (slowest, -1)):
                if not 0 <= index < len(cuts):
                    continue
                for many in (1, 2, 4):
                    moved = list(cuts)
                    moved[index] += step * many
                    bounds = [0, *moved, len(self.nodes)]
                    if all(a < b for a, b in zip(bounds, bounds[1:])):
                        tried.append(tuple(moved))
            best = min(tried, key=lambda other: max(self.measure(other)), default=cuts)
            if max(self.measure(best)) >= max(times):
                return cuts
            cuts = best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="of the names of models")
    parser.add_argument("--stages", default="2,3,4", metavar="N,N")
    parser.add_argument("--cache", metavar="FOLDER", help="where models and times are kept")
    options = parser.parse_args()
    print(f"{machine()}\n\n{'model':10}{'stages':>7}{'default ms':>12}{'profiled ms':>13}"
          f"{'best ms':>9}{'over best':>11}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(options.cache or name)
        for title, path, batch in list_models(folder, options.only):
            own = folder / title
            (own / "cache").mkdir(exist_ok=True)
            model = Model(path, batch, own)
            for stages in map(int, options.stages.split(",")):
                default, profiled = model.cuts(stages), model.cuts(stages, "--profile")
                best = min((model.improve(default), model.improve(profiled)),
                           key=lambda cuts: max(model.measure(cuts)))
                slowest = [1e3 * max(model.measure(cuts))
                           for cuts in (default, profiled, best)]
                print(f"{title:10}{stages:7}{slowest[0]:12.3f}{slowest[1]:13.3f}"
                      f"{slowest[2]:9.3f}{slowest[0] / slowest[2] - 1:+11.1%}", flush=True)


if __name__ == "__main__":
    main()
