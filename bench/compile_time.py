#!/usr/bin/env python3
"""How long penstockc takes, and how much memory: bench/compile_time.py [--large] [--check]

The digits MLP in four stages, the best of five; --check fails above 2 seconds.

--large is about ResNet-50 at 224 x 224 and GPT-2 small of 124 million weights
at 2 x 64 tokens, with random weights: the best of three, by the clock and in
user time, and the most memory of all; --check fails above 10 seconds. So that
it shows whether memory grows with the weights, GPT-2 is there twice more, with
half and with one and a half times its width. Needs torch, torchvision and transformers.
"""

import os
import subprocess
import sys
import time

import measure

GOAL, GOAL_LARGE = 2.0, 10.0
FLAGS = ("--stages=4", "--loss=softmax-cross-entropy")


def compile_once(model, *flags):
    """Seconds by the clock and in user time, and megabytes."""
    program = measure.work_folder() / "compiled"
    command = [measure.build_folder() / "bin" / "penstockc", model, "-o", program, *FLAGS, *flags]
    begin = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return seconds, usage.ru_utime, usage.ru_maxrss / 1024


def best_of(count, model, *flags):
    runs = [compile_once(model, *flags) for _ in range(count)]
    return min(run[0] for run in runs), min(run[1] for run in runs), max(run[2] for run in runs)


def resnet50():
    import torchvision
    return torchvision.models.resnet50(weights=None)


def image():
    import torch
    return torch.randn(4, 3, 224, 224)


def tokens():
    import torch
    return torch.randint(50257, (2, 64))


def gpt2(width):
    import architectures_list
    return architectures_list.transformers_model(
        "gpt2", "GPT2LMHeadModel", "GPT2Config", {"n_embd": width, "n_head": width // 64},
        causal=True).build()


#  Name, samples, how it is built, an input.
LARGE = [("ResNet-50", 4, resnet50, image)]
LARGE += [(f"GPT-2, width {width}", 2, lambda width=width: gpt2(width), tokens)
          for width in (384, 768, 1152)]


def export(name, path):
    """In a process of its own: what this one takes is counted for its children, too."""
    import training_steps
    build, sample = next(model[2:] for model in LARGE if model[0] == name)
    training_steps.export(build().train(), sample(), path)


def large_models():
    """Yields a name, a model file and flags."""
    for name, batch, _, _ in LARGE:
        path = measure.work_folder() / "compile_time" / f"{name}.onnx"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            partial = path.with_suffix(".partial")
            subprocess.run([sys.executable, __file__, "--export", name, partial], check=True)
            partial.rename(path)
        yield name, path, f"--microbatch-size={batch}"


def main(arguments):
    if arguments[:1] == ["--export"]:
        return export(*arguments[1:])
    options = measure.read_options(__doc__, check=False, large=False)
    slow = []
    if options.large:
        print(measure.machine())
        for name, path, batch in large_models():
            wall, user, memory = best_of(3, path, batch)
            megabytes = path.stat().st_size / 2**20
            print(f"{name}, {megabytes:.0f} MB: {wall:.2f} s, user time {user:.2f} s, at most "
                  f"{memory:.0f} MB of memory", flush=True)
            if wall > GOAL_LARGE:
                slow.append(f"{name}: {wall:.2f} s is above {GOAL_LARGE:g} s")
    else:
        model = measure.ROOT / "examples" / "digits" / "mlp.onnx"
        wall, _, _ = best_of(5, model, "--microbatch-size=10", "--microbatches=8")
        print(f"{measure.machine()}: {wall:.2f} s")
        if wall > GOAL:
            slow.append(f"{wall:.2f} s is above {GOAL:g} s")
    if slow and options.check:
        sys.exit(f"compile_time: {'; '.join(slow)}")


if __name__ == "__main__":
    main(sys.argv[1:])
