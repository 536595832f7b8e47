#!/usr/bin/env python3
"""headers.py PREFIX STAMPS LLVM-INCLUDE...: every installed header compiles alone.

Each header of PREFIX/include is compiled by itself, as C++ and, where it is of the
C API, as C. What a header includes of the installation is in the digest of its
stamp in the folder STAMPS, so that only what changed is compiled again. Prints
what does not compile, and how many do.
"""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

prefix, stamps = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
include = prefix / "include"
folders = [include, include / "penstock-compiler"]
compiler = next(filter(None, map(shutil.which, ("clang++-22", "clang++", "g++"))))
# Headers that C programs include, too.
C_HEADERS = {"penstock/abi.h", "penstock/embedded.h"}


def get_texts(header, seen):
    """The header and all that it includes of the installation, in order."""
    if header in seen:
        return
    seen.add(header)
    text = header.read_text(encoding="utf-8")
    yield text
    for name in re.findall(r'^#include [<"]([^">]+)[">]', text, re.M):
        for folder in [header.parent, *folders]:
            if (folder / name).is_file():
                yield from get_texts((folder / name).resolve(), seen)
                break


def compile_alone(header):
    """What the compiler says; nothing if it compiles."""
    name = header.relative_to(include).as_posix()
    flags = ["-fsyntax-only", "-DNDEBUG", "-Wall", "-Werror", "-Wno-unused-function"]
    flags += [f"-I{folder}" for folder in folders]
    flags += [part for folder in sys.argv[3:] for part in ("-isystem", folder)]
    digest = hashlib.sha256("\0".join([*get_texts(header, set()), compiler]).encode())
    stamp = stamps / (name.replace("/", "--") + "." + digest.hexdigest()[:32])
    if stamp.exists():
        return ""
    languages = [["-x", "c++", "-std=c++20"]] + [["-x", "c"]] * (name in C_HEADERS)
    for language in languages:
        done = subprocess.run([compiler, *language, *flags, "-"], text=True,
                              input=f"#include \"{header}\"\n#include \"{header}\"\n",
                              capture_output=True)
        if done.returncode:
            return done.stderr.strip().splitlines()[0]
    stamp.touch()
    return ""


stamps.mkdir(parents=True, exist_ok=True)
headers = sorted(include.rglob("*.h"))
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    faults = [(h, f) for h, f in zip(headers, pool.map(compile_alone, headers)) if f]
for header, fault in faults:
    print(f"{header.relative_to(include)}: {fault}")
print(f"{len(headers) - len(faults)} of {len(headers)} headers compile by themselves")
sys.exit(bool(faults) or not headers)
