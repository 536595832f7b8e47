#!/usr/bin/env python3
"""run-dockerfile.py FOLDER [--base ROOT] [-- COMMAND...]: a Dockerfile without Docker.

Executes the steps of the Dockerfile of this repository in root folders under
FOLDER, one per stage, and then COMMAND in the last one, from /work. What COPY takes
from here is what git knows. ROOT is a root folder of Debian 12 to begin with;
without it, debootstrap makes one. Needs root, and a network that reaches Debian's
archive. Knows FROM, COPY, RUN, WORKDIR and ENTRYPOINT.
"""

import argparse
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
SUITES = ("bookworm", "bookworm-updates")


def make_base(root):
    """What the image debian:12 has: a minimal system, with security updates."""
    subprocess.run(["debootstrap", "--variant=minbase", SUITES[0], root,
                    "http://deb.debian.org/debian"], check=True)


def write_sources(root):
    lines = [f"deb http://deb.debian.org/debian {suite} main" for suite in SUITES]
    lines.append("deb http://deb.debian.org/debian-security bookworm-security main")
    (root / "etc/apt/sources.list").write_text("\n".join(lines) + "\n")
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")


def read_steps():
    """(instruction, arguments) of each step; a backslash goes on in the next line."""
    text = (SOURCE / "Dockerfile").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split(None, 1)


class Stage:
    def __init__(self, root):
        self.root, self.folder = root, "/"

    def run(self, command):
        """In a mount namespace of its own, which ends with it."""
        script = (f'mount -t proc proc {self.root}/proc && '
                  f'exec chroot {self.root} /bin/sh -c "$1"')
        inside = f"cd {self.folder} && {command}"
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                       "HOME": "/root", "LC_ALL": "C"}
        subprocess.run(["unshare", "-m", "/bin/sh", "-c", script, "step", inside],
                       check=True, env=environment)

    def resolve(self, path):
        whole = path if path.startswith("/") else f"{self.folder}/{path}"
        return self.root / whole.lstrip("/")

    def copy(self, stages, arguments):
        origin = None
        if arguments[0].startswith("--from="):
            origin = stages[arguments.pop(0)[len("--from="):]]
        target = self.resolve(arguments[-1])
        target.mkdir(parents=True, exist_ok=True)
        for pattern in arguments[:-1]:
            if origin:
                files = sorted(origin.root.glob(pattern.lstrip("/")))
                if not files:
                    sys.exit(f"run-dockerfile: nothing is {pattern}")
                for file in files:
                    shutil.copy2(file, target)
            elif pattern == ".":
                archive = subprocess.Popen(["git", "-C", SOURCE, "archive", "HEAD"],
                                           stdout=subprocess.PIPE)
                subprocess.run(["tar", "-x", "-C", target], stdin=archive.stdout, check=True)
                if archive.wait():
                    sys.exit("run-dockerfile: git archive failed")
            else:
                sys.exit(f"run-dockerfile: COPY {pattern} is not known")


def main():
    own, command = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, command = own[:at], own[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--base", type=pathlib.Path)
    arguments = parser.parse_args(own)
    arguments.folder.mkdir(parents=True)
    base = arguments.base
    if not base:
        base = arguments.folder / "base"
        make_base(base)
    stages, stage = {}, None
    for instruction, rest in read_steps():
        print(f"== {instruction} {rest}", flush=True)
        began = time.monotonic()
        if instruction == "FROM":
            words = rest.split()
            if words[0] != "debian:12":
                sys.exit(f"run-dockerfile: FROM {words[0]} is not known")
            name = words[2] if len(words) == 3 else "last"
            stage = stages[name] = Stage(arguments.folder.resolve() / name)
            subprocess.run(["cp", "-a", base, stage.root], check=True)
            write_sources(stage.root)
        elif instruction == "WORKDIR":
            stage.folder = rest
            stage.resolve(".").mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            stage.copy(stages, rest.split())
        elif instruction == "RUN":
            stage.run(rest)
        elif instruction != "ENTRYPOINT":
            sys.exit(f"run-dockerfile: {instruction} is not known")
        print(f"== {time.monotonic() - began:.1f} s", flush=True)
    if command:
        # One word is a line for the shell.
        line = command[0] if len(command) == 1 else shlex.join(command)
        print(f"== {line}", flush=True)
        stage.run(line)


main()
