"""Checks the PTX of kernels, and how many registers they take.

usage: check_ptx.py FILE.ptx... --archs sm_80,sm_90 [--ptxas PATH]

Each file has a module for each of the architectures, as --emit=ptx writes them.
No instruction is atomic or approximate, those of f32 and f64 that round do so to
nearest, none but conversions computes with f16 or bf16, and no name has a dot,
which ptxas refuses. Prints how often each
rounding instruction occurs.

With --ptxas, the assembler compiles each module: no kernel spills a register, and
each has at most as many as its class may. Prints for each class the largest
number on each architecture.
"""

import argparse
import collections
import re
import subprocess
import sys
import tempfile

# Kernels are named after their function and their class.
LIMITS = {"elementwise": 64, "indexed": 64, "updates": 64, "numbers": 64, "rows": 96, "reduction": 96}
ROUNDING = re.compile(r"(add|sub|mul|mad|fma|div|rcp|sqrt)\.(.*\.)?f(32|64)$")


def getClass(kernel):
    found = re.fullmatch(rf".*_({'|'.join(LIMITS)})(_\d+)?", kernel)
    return found[1] if found else kernel


def checkText(path, text, counts):
    """Yields what is wrong."""
    names = re.findall(r"^\.visible \.entry ([^\s(]+)", text, re.M)
    names += re.findall(r"^\.(?:global|shared|const) .*?([^\s\[]+)(?:\[\d+\])?(?: = .*)?;", text, re.M)
    for name in names:
        if "." in name:
            yield f"{path}: the name {name} has a dot"
    for opcode in re.findall(r"^\t(?:@!?%p\d+ )?([a-z]\S*)\s", text, re.M):
        base, *suffixes = opcode.rstrip(";").split(".")
        if base in ("atom", "red") or "approx" in suffixes or "full" in suffixes:
            yield f"{path}: {opcode} is not deterministic or not exact"
        elif ROUNDING.match(opcode):
            if "rn" not in suffixes:
                yield f"{path}: {opcode} does not round to nearest"
            counts[f"{base}.{suffixes[-1]}"] += 1
        elif {"f16", "f16x2", "bf16", "bf16x2"} & set(suffixes) and base not in ("cvt", "neg", "abs"):
            yield f"{path}: {opcode} is not computed in f32"


def assemble(ptxas, path, arch, text, largest):
    """Yields what is wrong; `largest` has the registers by class and arch."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([ptxas, "-v", "-O3", "-fmad=false", f"-arch={arch}", "-o",
                               "/dev/null", file.name], capture_output=True, text=True)
    log = done.stderr + done.stdout
    if done.returncode:
        yield f"{path}: {arch}: {log}"
        return
    kernels = re.findall(
        r"Compiling entry function '(\S+)' for '\S+'.*?(\d+) bytes stack frame, "
        r"(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers", log, re.S)
    expected = len(re.findall(r"\.entry ", text))
    if len(kernels) != expected or not expected:
        yield f"{path}: {arch}: ptxas tells of {len(kernels)} kernels, not {expected}: {log}"
    for name, _, stores, loads, registers in kernels:
        kind, registers = getClass(name), int(registers)
        if int(stores) or int(loads):
            yield f"{path}: {arch}: {name} spills {stores} and {loads} bytes"
        if kind not in LIMITS:
            yield f"{path}: {arch}: {name} is of no known class"
            continue
        if registers > LIMITS[kind]:
            yield f"{path}: {arch}: {name} takes {registers} registers, more than {LIMITS[kind]}"
        largest[kind][arch] = max(largest[kind].get(arch, (0, "")), (registers, name))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--archs", required=True)
    parser.add_argument("--ptxas")
    options = parser.parse_args()
    archs = options.archs.split(",")
    counts, largest, wrong = collections.Counter(), collections.defaultdict(dict), []
    total = 0
    for path in options.files:
        with open(path, encoding="utf-8") as file:
            modules = re.split(r"(?=^\.version )", file.read(), flags=re.M)[1:]
        found = [re.search(r"^\.target (\w+)", text, re.M)[1] for text in modules]
        if found != archs:
            wrong.append(f"{path}: code for {', '.join(found)}, not {options.archs}")
        for arch, text in zip(found, modules):
            total += len(re.findall(r"\.entry ", text))
            wrong += checkText(path, text, counts)
            if options.ptxas:
                wrong += assemble(options.ptxas, path, arch, text, largest)
    print(f"{total} kernels")
    for opcode in sorted(counts):
        print(f"{opcode} {counts[opcode]}")
    for kind in sorted(largest):
        print(f"{kind}: at most", ", ".join(
            f"{registers} registers on {arch} ({name})"
            for arch, (registers, name) in largest[kind].items()))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
