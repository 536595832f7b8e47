"""Goes on with the checkpoint of one program in others.

usage: checkpoint_moves.py FOLDER same|state FIRST=PLAN NAME=PLAN... -- COMPILE... -- DATA...
       checkpoint_moves.py FOLDER pairs NAME=PLAN... -- COMPILE... -- DATA...

same: the losses after the move, and the model at the end, are those of the first
program without one; and the move itself changes no value. state: that alone, and
the next loss, which the weights give. pairs: every program goes on with the
checkpoint of every other one.
"""

import itertools
import json
import pathlib
import shutil
import subprocess
import sys

UPDATES = 20


def split(arguments):
    groups = [[]]
    for argument in arguments:
        if argument == "--":
            groups.append([])
        else:
            groups[-1].append(argument)
    return groups


def run(command, notes=None):
    result = subprocess.run(command, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    assert result.returncode == 0, (command, result.stderr)
    for line in result.stderr.splitlines():
        assert line.startswith(("note: ", "training: ", "step ")), (command, line)
        if notes is not None and line.startswith("note: "):
            notes.append(line)
    return result.stdout


def losses_of(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return {record["step"]: record["loss"] for record in records
            if "loss" in record}


class Programs:
    def __init__(self, folder, plans, compiler, data):
        self.folder, self.data = folder, data
        self.names = []
        for plan in plans:
            name, _, flags = plan.partition("=")
            run([*compiler, "-o", folder / name, *flags.split()])
            self.names.append(name)

    def train(self, name, updates, *more, notes=None):
        log, model = (self.folder / f"{name}.{end}"
                      for end in ("jsonl", "saved.onnx"))
        run([self.folder / name, *self.data, f"--steps={updates}",
             f"--log={log}", f"--save={model}", *more], notes)
        return losses_of(log), model.read_bytes()

    def checkpoint(self, name):
        folder = self.folder / f"{name}.run"
        self.train(name, UPDATES, f"--checkpoint-dir={folder}")
        return folder


def check_same(programs, whole=True):
    first, *others = programs.names
    expected, model = programs.train(first, 2 * UPDATES)
    checkpoint = programs.checkpoint(first)
    for name in others:
        notes = []
        losses, end = programs.train(name, 2 * UPDATES, f"--resume={checkpoint}",
                                     notes=notes)
        after = {step: loss for step, loss in expected.items()
                 if step > UPDATES}
        # Its log holds no more than what came after.
        assert losses.keys() == after.keys()
        assert losses[UPDATES + 1] == after[UPDATES + 1]
        assert not whole or (losses == after and end == model), (
            name, losses, after)
        moved = programs.folder / f"{name}.moved"
        shutil.rmtree(moved, ignore_errors=True)
        (programs.folder / f"{name}.jsonl").unlink()
        programs.train(name, UPDATES, f"--resume={checkpoint}",
                       f"--checkpoint-dir={moved}")
        print(run(["penstock-checkpoint", "--diff", checkpoint, moved]).strip())
        print(f"{first} -> {name}: "
              f"{len(after) if whole else 1} losses are equal", *notes,
              sep="\n  ")
        (programs.folder / f"{name}.jsonl").unlink()


def check_pairs(programs):
    checkpoints = {name: programs.checkpoint(name) for name in programs.names}
    for name in programs.names:
        (programs.folder / f"{name}.jsonl").unlink()
    for name, other in itertools.product(programs.names, repeat=2):
        notes = []
        losses, _ = programs.train(other, 2 * UPDATES,
                                   f"--resume={checkpoints[name]}", "--verify",
                                   notes=notes)
        assert sorted(losses) == list(range(UPDATES + 1, 2 * UPDATES + 1))
        assert all(loss is not None for loss in losses.values()), losses
        (programs.folder / f"{other}.jsonl").unlink()
        print(f"{name} -> {other}", *notes, sep="\n  ")


def main():
    (folder, kind, *plans), compiler, data = split(sys.argv[1:])
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    programs = Programs(folder, plans, compiler, data)
    {"same": check_same, "pairs": check_pairs,
     "state": lambda programs: check_same(programs, whole=False)}[kind](programs)


main()
