#!/usr/bin/env python3
"""Checks that includes follow the layers of the source: check-layers.py [ROOT]

Each layer may include itself and those before it. A target is what only devices
of one kind have: its dialect, library and passes.

  compiler  lib/Support, dialects, lib, passes, targets, lib/Driver, tools
  runtime   support, io, job, observe, transport, device and transport/nccl,
            run, command, device/emulated, tools/penstock-checkpoint, which
            reads models with PenstockWireFormat of the compiler

So may the CMake libraries of these folders link each other. Prints each include
and each link that goes the other way, as FILE:LINE, and exits with 1 if there
are any. Tests, benchmarks and examples may include everything.
"""

import pathlib
import re
import sys

# Prefixes of paths, from the lowest layer up; the longest prefix that fits
# decides. Public headers belong to the library whose folder has their name.
COMPILER = [
    ["lib/Support/", "include/penstock/Support/"],
    ["dialects/"],
    ["lib/", "include/penstock/"],
    ["passes/"],
    ["dialects/Cpu/", "lib/Target/Cpu/", "include/penstock/Target/Cpu/",
     "dialects/Cuda/", "lib/Target/Cuda/", "include/penstock/Target/Cuda/",
     "passes/Cpu/", "passes/Cuda/"],
    ["lib/Driver/", "include/penstock/Driver/"],
    ["tools/"],
]
RUNTIME = [
    ["runtime/include/"],
    ["runtime/support/"],
    ["runtime/io/"],
    ["runtime/job/"],
    ["runtime/observe/"],
    ["runtime/transport/"],
    # What devices of one kind exchange by themselves.
    ["runtime/device/", "runtime/transport/nccl/"],
    ["runtime/run/"],
    ["runtime/command/"],
    # Stands in for libraries of a GPU: nothing may know of it.
    ["runtime/device/emulated/"],
    # Reads what a run has left.
    ["tools/penstock-checkpoint/"],
]
# What else a layer of the runtime's side includes.
ALSO = {"tools/penstock-checkpoint/": "lib/Import/ExternalData.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

LIBRARY = re.compile(r"^(?:penstock_library|penstock_tool|add_library)\(\s*(\w+)"
                     r"([^()]*)", re.MULTILINE)
# A library of the runtime has the name of its folder.
RUNTIME_LAYER = re.compile(r"^penstock_runtime_layer\(\s*(\w+)([^()]*)",
                           re.MULTILINE)
LINK = re.compile(r"^target_link_libraries\(\s*([\w-]+)([^()]*)", re.MULTILINE)


def layer_of(path, layers):
    """Returns the number of the layer that holds `path`, or None."""
    found = [(len(prefix), number) for number, layer in enumerate(layers)
             for prefix in layer if path.startswith(prefix)]
    return max(found)[1] if found else None


def resolve(root, file, name):
    """Returns the file of this tree that `name` means, or None."""
    for folder in (file.parent, root, root / "include",
                   root / "runtime" / "include"):
        candidate = (folder / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root).as_posix()
    # Generated headers stand where their table does.
    return name if "/" in name else (
        file.parent.relative_to(root) / name).as_posix()


def check_includes(root, complain):
    """Returns the number of includes of this tree's own files."""
    seen = 0
    for folder in ("dialects", "include", "lib", "passes", "tools", "runtime"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".c", ".def"):
                continue
            path = file.relative_to(root).as_posix()
            layers = (RUNTIME if layer_of(path, RUNTIME) is not None
                      else COMPILER)
            own = layer_of(path, layers)
            if own is None:
                complain(path, 1, "belongs to no layer")
                continue
            text = file.read_text()
            for match in INCLUDE.finditer(text):
                target = resolve(root, file, match.group(1))
                if not target.startswith(("dialects/", "include/", "lib/",
                                          "passes/", "tools/", "runtime/")):
                    continue
                seen += 1
                if target.startswith("runtime/include/") or any(
                        path.startswith(folder) and target == header
                        for folder, header in ALSO.items()):
                    continue  # The interface that both sides share.
                other = layer_of(target, layers)
                if other is None or other > own:
                    complain(path, text.count("\n", 0, match.start(1)) + 1,
                             f"includes {target}, which is "
                             + ("of the other side" if other is None else
                                "above it"))
    return seen


def check_links(root, complain):
    """Returns the number of links between libraries of either side."""
    files = [file for folder in ("dialects", "lib", "passes", "tools")
             for file in sorted((root / folder).rglob("CMakeLists.txt"))]
    layers, links = {}, []
    for file in files:
        path = file.relative_to(root).as_posix()
        text = file.read_text()
        for match in LIBRARY.finditer(text):
            layers[match.group(1)] = layer_of(path, COMPILER)
            used = match.group(2).partition("LINK")[2].partition("DEPENDS")[0]
            links.append((path, text, match, used))
        for match in LINK.finditer(text):
            links.append((path, text, match, match.group(2)))
    path = "runtime/CMakeLists.txt"
    text = (root / path).read_text()
    for match in RUNTIME_LAYER.finditer(text):
        layer = layer_of(f"runtime/{match.group(1)}/", RUNTIME)
        if layer is not None:
            layers[match.group(1)] = layer
            links.append((path, text, match,
                          match.group(2).partition("LINK")[2]))
    seen = 0
    for path, text, match, used in links:
        for library in used.split():
            if library not in layers or match.group(1) not in layers:
                continue
            seen += 1
            if layers[library] > layers[match.group(1)]:
                complain(path, text.count("\n", 0, match.start()) + 1,
                         f"links {library}, which is above it")
    return seen


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                        pathlib.Path(__file__).parent.parent).resolve()
    wrong = []

    def complain(path, line, text):
        wrong.append(text)
        print(f"{path}:{line}: {text}")

    includes = check_includes(root, complain)
    links = check_links(root, complain)
    print(f"{includes} includes and {links} links, "
          f"{len(wrong)} against the layers")
    return 1 if wrong or not includes or not links else 0


sys.exit(main())
