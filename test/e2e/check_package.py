"""check_package.py DIR SHIM...: what is in the Debian packages of DIR, and what they
need.

A package has to hold the files below, nothing outside of /usr, and no file of
another one. Each SHIM is a transport that was built for some MPI. It has to depend on the package of each library that one of its
binaries names, and on what it calls otherwise.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

TOOLS = ("penstockc", "penstock-opt", "penstock-translate", "penstock-plan",
         "penstock-plot", "penstock-schedule", "penstock-checkpoint",
         "penstock-doctor", "penstock-lsp-server")
FILES = {
    "penstock": [f"bin/{tool}" for tool in TOOLS] + [
        "lib/libpenstock_runtime.a", "lib/libpenstock_start.a",
        "lib/libpenstock_cpu.a", "include/penstock/abi.h",
        "lib/cmake/Penstock/PenstockConfig.cmake",
        "share/man/man1/penstockc.1.gz", "share/man/man1/penstock-plot.1.gz",
        "share/man/man1/penstock-checkpoint.1.gz",
        "share/man/man1/penstock-doctor.1.gz",
        "share/bash-completion/completions/penstock-doctor",
        "share/bash-completion/completions/penstockc",
        "share/zsh/site-functions/_penstockc",
        "share/zsh/vendor-completions/_penstockc",
        "share/fish/vendor_completions.d/penstockc.fish",
        "share/doc/penstock/README.md", "share/doc/penstock/docs/tutorial.md",
        "share/doc/penstock/copyright", "share/penstock/examples/digits/mlp.onnx",
        "share/penstock/examples/export.py"],
    "penstock-dev": ["lib/libPenstockDriver.a",
                     "include/penstock/Driver/Compiler.h",
                     "include/penstock-compiler/dialects/Pipeline/PipelineOps.td",
                     "lib/cmake/Penstock/PenstockCompiler.cmake"],
    "penstock-mpi": ["bin/penstock-build-mpi", "share/penstock/mpi/Shim.c"] + [
        f"lib/penstock/{shim}" for shim in sys.argv[2:]],
}
# Called, linked or loaded by name.
CALLED = {"penstock": {"g++", "libgomp1", "libdnnl2"},
          "penstock-dev": {"penstock", "libmlir-22-dev"},
          "penstock-mpi": {"penstock"}}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def find_owner(library):
    """The package of a shared library, as the loader finds it by its name."""
    paths = re.findall(rf"{re.escape(library)} .*=> (\S+)", run("/sbin/ldconfig", "-p"))
    paths += [str(p) for p in pathlib.Path("/usr/lib").glob(f"llvm-*/lib/{library}")]
    for path in paths:
        real = pathlib.Path(path).resolve()
        for name in (str(real), str(real).removeprefix("/usr")):
            found = subprocess.run(["dpkg", "-S", name], capture_output=True,
                                   text=True, check=False).stdout
            if found:
                return found.split(":")[0]
    return None


def get_needs(folder):
    names = set()
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            with open(file, "rb") as stream:
                if stream.read(4) != b"\x7fELF":
                    continue
            names.update(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", str(file))))
    owners = {name: find_owner(name) for name in names}
    lost = sorted(name for name, owner in owners.items() if not owner)
    if lost:
        sys.exit(f"no package has {lost}")
    return set(owners.values())


seen = {}
for package in FILES:
    [path] = pathlib.Path(sys.argv[1]).glob(f"{package}_*.deb")
    if run("dpkg-deb", "-f", str(path), "Package").strip() != package:
        sys.exit(f"{path.name} is not {package}")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        run("dpkg-deb", "-x", str(path), folder)
        if [entry.name for entry in root.iterdir()] != ["usr"]:
            sys.exit(f"{package} has files outside of /usr")
        files = {str(f.relative_to(root / "usr")) for f in root.rglob("*") if not f.is_dir()}
        missing = [name for name in FILES[package] if name not in files]
        if missing:
            sys.exit(f"{package} lacks {missing}")
        for name in files:
            if name in seen:
                sys.exit(f"{package} and {seen[name]} have {name}")
            seen[name] = package
        needs = get_needs(root) | CALLED[package]
    depends = set(re.findall(r"(?:^|, )([\w.+-]+)", run("dpkg-deb", "-f", str(path), "Depends")))
    if not needs <= depends:
        sys.exit(f"{package} needs {sorted(needs - depends)}, which it does not depend on")
    print(f"{package}: {len(files)} files")
    print("depends on all of " + " ".join(sorted(needs)))
