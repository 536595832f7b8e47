#!/usr/bin/env python3
"""How much of the time that workers of hetpipe wait for each other a distance of
waves takes away, on this machine.

    waves.py FOLDER [--wave 1] [--waves 200] [--build build/default]

Two workers of one stage each. Every other wave of each is lengthened to twice by
a wait, the two in turn: the program is linked with a penstock_mark that sleeps
in the forwards of these waves, as a worker would that something else slows down.
With D = 0 every wave takes as long as the slower one; with D = 1 each worker may
be a wave ahead, and the waits of one fall into those of the other. Prints
samples per second over those with D = 0, and the same of a simulation of the
workers' clocks, which knows how long a wave took without waits.

Needs nothing but Python and a C compiler.
"""

import pathlib
import statistics
import subprocess
import sys

import measure
import mlp_model

sys.path.insert(0, str(measure.ROOT / "test" / "e2e"))
from link_waiting import link_waiting  # noqa: E402

WIDTH, CLASSES, SAMPLES, MICROBATCH = 512, 10, 512, 32


def compile_with_waits(folder, build, distance, wave, seconds):
    """A program whose microbatches of slow waves take so much longer."""
    name = f"d{distance}" if seconds else "plain"
    program, obj = folder / name, folder / f"{name}.o"
    subprocess.run(
        [build / "bin/penstockc", folder / "model.onnx", "-o", obj, "--emit=obj",
         "--loss=softmax-cross-entropy", f"--microbatch-size={MICROBATCH}",
         "--stages=1", "--optimizer=sgd:lr=0.001",
         f"--method=hetpipe:workers=2,distance={distance},wave={wave}"],
        check=True)
    link_waiting(f"n / {wave} % 2 == own->device ? {round(seconds * 1e9)}L : 0", obj, program,
                 build)
    return program


def simulate(distance, waves, seconds):
    """The time until two workers have made so many waves of these seconds, by
    worker and wave, where wave c + 1 + D begins when both have pushed wave c."""
    ends = [[], []]
    for c in range(waves):
        due = max((ends[0] + [0])[c - 1 - distance],
                  (ends[1] + [0])[c - 1 - distance]) if c > distance else 0
        begins = [max(due, own[-1] if own else 0) for own in ends]
        for own, begin, worker in zip(ends, begins, (0, 1)):
            own.append(begin + seconds(worker, c))
    return max(ends[0][-1], ends[1][-1])


def main():
    arguments = measure.read_options(__doc__, "folder", build=measure.ROOT / "build/default",
                                     wave=1, waves=200, rounds=9)
    folder = pathlib.Path(arguments.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    mlp_model.write_mlp(folder / "model.onnx", 4, WIDTH, CLASSES)
    mlp_model.write_data(folder, SAMPLES, WIDTH, CLASSES)
    wave, waves = arguments.wave, arguments.waves

    # 1. A wave without waits.
    def build(distance, seconds):
        return compile_with_waits(folder, arguments.build, distance, wave, seconds)

    program = build(1, 0)
    plain = statistics.median(measure.train(program, folder, waves)[0]
                              for _ in range(arguments.rounds)) / waves
    print(f"a wave of {wave} microbatches takes {1e3 * plain:.2f} ms")

    # 2. Twice that, in turn.
    programs = {distance: build(distance, plain / wave) for distance in (0, 1)}
    samples = 2 * wave * MICROBATCH * waves
    rates = {distance: [] for distance in programs}
    simulated = {distance: [] for distance in programs}
    for _ in range(arguments.rounds):
        # How long a wave takes drifts, what it waits does not.
        now = measure.train(program, folder, waves)[0] / waves
        for distance, other in programs.items():
            rates[distance].append(samples / measure.train(other, folder, waves)[0])
            simulated[distance].append(samples / simulate(
                distance, waves, lambda worker, c: now + plain * (c % 2 == worker)))

    # 3. Of runs one after the other.
    def show(text, over, under):
        ratios = sorted(a / b for a, b in zip(over, under))
        return (f"{text} {statistics.median(ratios):.3f}, {ratios[0]:.3f} to "
                f"{ratios[-1]:.3f}")

    for distance in programs:
        print(f"D = {distance}: {statistics.median(rates[distance]):.0f} samples/s; "
              + show("of the simulated", rates[distance], simulated[distance]))
    print(show("D = 1 over D = 0:", rates[1], rates[0]) + " (at least 1.2), simulated "
          f"{statistics.median(simulated[1]) / statistics.median(simulated[0]):.3f}")


main()
