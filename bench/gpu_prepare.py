"""First half of bench/gpu.sh: all that the machine with the GPU needs, in a file.

    gpu_prepare.py OUT.tar.xz [--arch=sm_90] [--tiny]

Compiles here what runs there, where there is no compiler: the small models of the
tests with several methods and stages, a program for each class of kernels, and
the three models of the comparison in f32, tf32 and bf16. Runs the small ones on
the emulated GPU: its outputs are what the GPU has to give bit for bit, its
losses what it has to come near to. With --tiny, the large models are small and
--arch=emulated runs everything here. Needs torch, torchvision, onnx, numpy.
"""

import concurrent.futures
import gzip
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import gpu_models
import measure

ROOT = measure.ROOT
DIGITS = ROOT / "examples" / "digits"
FIXTURES = ROOT / "test" / "fixtures"
CROSS_ENTROPY = "--loss=softmax-cross-entropy"
# Name, model, data, labels, flags.
SMALL = {
    "mlp": (DIGITS / "mlp.onnx", ["x=train-images.npy"], "train-labels.npy", ["--microbatch-size=8"]),
    "cnn": (DIGITS / "cnn.onnx", ["x=train-images.npy"], "train-labels.npy", ["--microbatch-size=20"]),
    "gpt": (FIXTURES / "gpt.onnx", ["idx=gpt-idx.npy"], "gpt-labels.npy", ["--microbatch-size=4"]),
}
METHODS = ["sync", "pipedream", "2bw", "pipemare:anneal-steps=6,warmup-steps=2", "spectrain", "xpipe",
           "pipeoptim", "timeprest"]


def list_small():
    """Name, model, flags: stages 1 and 4, several on one GPU, and all methods."""
    for name, (model, _, _, flags) in SMALL.items():
        for stages in (1, 4):
            yield f"{name}-{stages}", name, [*flags, f"--stages={stages}", "--microbatches=4"]
        yield f"{name}-bf16", name, [*flags, "--precision=bf16", "--microbatches=2"]
    for method in METHODS[1:]:
        many = [] if method in ("spectrain", "xpipe", "pipeoptim") else ["--microbatches=4"]
        yield (f"mlp-{method.partition(':')[0]}", "mlp",
               [*SMALL["mlp"][3], "--stages=3", f"--method={method}", *many])


def compile_program(model, out, arch, *flags):
    done = subprocess.run([measure.build_folder() / "bin" / "penstockc", model, "-o", out, "--static",
                           "--target=cuda", f"--gpu-arch={arch}", *flags],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{out.name}: {done.stderr}")


def pack(source, folder):
    """A model travels without what its weights repeat."""
    with open(source, "rb") as file, gzip.open(folder / f"{source.name}.gz", "wb", 1) as packed:
        shutil.copyfileobj(file, packed)


def prepare_small(folder, arch):
    runs = []
    for name, model, flags in list_small():
        source, data, labels, _ = SMALL[model]
        shutil.copy(source, folder)
        for file in [one.partition("=")[2] for one in data] + [labels]:
            shutil.copy(source.parent / file, folder)
        flags = [CROSS_ENTROPY, "--optimizer=sgd:lr=0.05,momentum=0.9", *flags]
        compile_program(folder / source.name, folder / name, arch, *flags)
        emulated = folder / f"{name}.emulated"
        compile_program(folder / source.name, emulated, "emulated", *flags)
        subprocess.run([emulated, *(f for one in data for f in ("--data", one)), "--labels", labels,
                        "--steps", "20", "--log", f"{name}.jsonl"],
                       cwd=folder, check=True, capture_output=True)
        emulated.unlink()
        runs.append({"name": name, "model": source.name, "data": data, "labels": labels})
    return runs


def prepare_kernels(folder, arch, tiny):
    runs = []
    for kernel in gpu_models.KERNELS:
        sizes = {"small": kernel.small, "large": kernel.small if tiny else kernel.large}
        for which, size in sizes.items():
            model = folder / f"{kernel.name}-{which}.onnx"
            gpu_models.write_kernel(kernel, size, model)
            flags = ["--mode=infer", "--microbatch-size=1"]
            compile_program(model, folder / f"{kernel.name}-{which}", arch, *flags)
            if which == "small":
                emulated = folder / "emulated"
                compile_program(model, emulated, "emulated", *flags)
                data = gpu_models.write_inputs(kernel, size, 2, folder)
                subprocess.run([emulated, *data, "--outputs", folder / f"{kernel.name}.out"],
                               check=True, stdout=subprocess.DEVNULL)
                emulated.unlink()
            pack(model, folder)
            model.unlink()
        runs.append({"name": kernel.name, "goal": kernel.goal, **sizes})
    return runs


def prepare_models(folder, arch, tiny):
    runs, jobs = [], []
    for model in gpu_models.MODELS.values():
        path = folder / f"{model.name}-model.onnx"
        gpu_models.write_model(model, tiny, path)
        batch = 4 if tiny else model.batch
        for precision in ("f32", "tf32", "bf16"):
            for stages in (1, 2, 4) if precision == "bf16" or model.name == "mlp" else (1,):
                name = f"{model.name}-{precision}-{stages}"
                # One stage has the whole batch at once.
                parts = 1 if stages == 1 else min(8, batch)
                jobs.append((path, folder / name, arch, CROSS_ENTROPY, f"--precision={precision}",
                             "--optimizer=sgd:lr=0.0001,momentum=0.9", f"--stages={stages}",
                             f"--microbatch-size={batch // parts}", f"--microbatches={parts}"))
                runs.append({"name": name, "model": model.name, "precision": precision,
                             "stages": stages, "batch": batch})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: compile_program(*job), jobs))
    for model in gpu_models.MODELS.values():
        pack(folder / f"{model.name}-model.onnx", folder)
        (folder / f"{model.name}-model.onnx").unlink()
    return runs


def main():
    options = measure.read_options(__doc__, "out", arch="sm_90", tiny=False)
    out = pathlib.Path(options.out)
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / "gpu"
        folder.mkdir()
        plan = {"arch": options.arch, "tiny": options.tiny,
                "small": prepare_small(folder, options.arch),
                "kernels": prepare_kernels(folder, options.arch, options.tiny),
                "models": prepare_models(folder, options.arch, options.tiny)}
        (folder / "plan.json").write_text(json.dumps(plan, indent=1))
        # All programs have the same runtime: a dictionary that spans several of them.
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 128 << 20}]
        with lzma.open(out, "wb", filters=filters) as packed, \
                tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, "gpu")
    size = out.stat().st_size / 2**20
    print(f"{out}: {size:.1f} MiB, {len(plan['small'])} small programs, "
          f"{len(plan['kernels'])} kernels, {len(plan['models'])} programs to compare")


if __name__ == "__main__":
    main()
