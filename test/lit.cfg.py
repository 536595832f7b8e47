# Configuration of the lit tests. Needs nothing but lit's own Python.
#
#   lit build/default/test                               all of them
#   lit build/default/test --filter passes/Schedule      some of them
#   lit build/default/test --param verify-roundtrip=1    each penstock-opt run
#                            also prints, parses and prints its input again
#   lit build/default/test --filter e2e --param device=remote
#                            programs run on devices whose memory the host
#                            cannot address; see runtime/RemoteDevice.cpp
#   lit build/default/test --filter e2e --param device=emulated
#                            programs run on the emulated GPU

import ctypes
import os
import shutil
import subprocess
import sys

import lit.formats
import lit.util

config.name = "Penstock"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".onnxtext", ".test"]
config.excludes = ["inputs", "fixtures", "unit", "runtime"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.penstock_binary_dir, "test")
config.recursiveExpansionLimit = 10

tools = os.path.join(config.penstock_binary_dir, "bin")
config.environment["PATH"] = os.path.pathsep.join(
    [tools, config.llvm_tools_dir, os.environ.get("PATH", "/usr/bin:/bin")]
)
config.environment["FILECHECK_OPTS"] = (
    "-enable-var-scope --allow-unused-prefixes=false"
)

# A test may say "REQUIRES: penstockc"; a sanitizer build says which.
for tool in ("penstock-opt", "penstock-translate", "penstockc",
             "penstock-lsp-server", "penstock-schedule", "penstock-plan",
             "penstock-plot", "penstock-checkpoint", "penstock-doctor",
             "penstock-mutate"):
    if os.access(os.path.join(tools, tool), os.X_OK):
        config.available_features.add(tool)
for sanitizer in filter(None, config.penstock_sanitize.split(",")):
    config.available_features.add(sanitizer)
if "thread" in config.available_features:
    config.environment["TSAN_OPTIONS"] = "suppressions=" + os.path.join(
        config.test_source_root, "tsan-suppressions.txt")

# The assembler of an installed CUDA toolkit, where penstockc looks for it.
ptxas = shutil.which("ptxas", path=os.pathsep.join(
    ["/usr/local/cuda/bin", os.environ.get("PATH", "")]))
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))

# How the CPU's library multiplies depends on the processor. As in
# ONEDNN_MAX_CPU_ISA=AVX2 lit ..., tests can run as on one without AVX-512.
isa = os.environ.get("ONEDNN_MAX_CPU_ISA")
if isa:
    config.environment["ONEDNN_MAX_CPU_ISA"] = isa
try:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        has_avx512 = "avx512bw" in file.read()
except OSError:
    has_avx512 = False
if has_avx512 and (not isa or isa.startswith("AVX512") or isa == "ALL"):
    config.available_features.add("avx512")
# An MPI whose launcher is there, and for which a shim was built. Tests run as
# root in containers, on fewer cores than processes.
for mpi, launcher in (("openmpi", "mpirun.openmpi"), ("mpich", "mpiexec.mpich")):
    shim = os.path.join(config.penstock_binary_dir, "runtime", "penstock",
                        f"libpenstock-mpi-{mpi}.so")
    if shutil.which(launcher) and os.path.exists(shim):
        config.available_features.add(mpi)
config.environment.update({"OMPI_ALLOW_RUN_AS_ROOT": "1",
                           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                           "OMPI_MCA_rmaps_base_oversubscribe": "1"})

# What kills a program at a chosen system call, and what gives it a file system
# or a network of its own, is not allowed everywhere.
for feature, command in (
        ("strace", ["strace", "-o", os.devnull, "true"]),
        ("network-namespaces", [
            "sh", "-c", "ip netns add penstock-lit-$$ && ip netns del penstock-lit-$$"]),
        ("namespaces", ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs",
                        "/mnt"])):
    if shutil.which(command[0]) and not subprocess.run(
            command, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL).returncode:
        config.available_features.add(feature)

# Where there is a driver, no test can show what happens without one.
try:
    ctypes.CDLL("libcuda.so.1")
    config.available_features.add("cuda-driver")
except OSError:
    pass

# Packages of Debian.
if all(shutil.which(tool) for tool in ("dpkg-deb", "dpkg-shlibdeps", "cpack")):
    config.available_features.add("dpkg")

# A root folder with nothing but a program and its libraries.
try:
    if not subprocess.run(["chroot", "/", "true"], capture_output=True,
                          check=False).returncode:
        config.available_features.add("chroot")
except OSError:
    pass

# LLVM's allocators mark free memory for the sanitizer where they are compiled
# with it. The packaged libMLIR is not, and takes memory from allocators that our
# code touched: the marks would accuse it.
if "address" in config.available_features:
    config.environment["ASAN_OPTIONS"] = "allow_user_poisoning=0"

remote_device = "PENSTOCK_DEVICE_LIBRARY=" + os.path.join(
    config.test_exec_root, "runtime", "libpenstock_remote.a")
device = lit_config.params.get("device", "cpu")
if device == "remote":
    name, value = remote_device.split("=", 1)
    config.environment[name] = value
elif device == "emulated":
    # A penstockc that compiles for the emulated GPU, before the real one.
    folder = os.path.join(config.test_exec_root, "emulated")
    os.makedirs(folder, exist_ok=True)
    wrapper = os.path.join(folder, "penstockc")
    with open(wrapper, "w") as file:
        file.write(f'#!/bin/sh\nexec {tools}/penstockc "$@" '
                   "--target=cuda --gpu-arch=emulated\n")
    os.chmod(wrapper, 0o755)
    config.environment["PATH"] = os.path.pathsep.join(
        [folder, config.environment["PATH"]])
elif device != "cpu":
    lit_config.fatal(f"device={device}: known are cpu, remote, emulated")

fixtures = os.path.join(config.test_source_root, "fixtures")
helpers = os.path.join(config.test_source_root, "e2e")
config.substitutions += [
    ("%examples", os.path.join(config.penstock_source_dir, "examples")),
    ("%digits", os.path.join(config.penstock_source_dir, "examples", "digits")),
    ("%fixtures", fixtures),
    ("%build", config.penstock_binary_dir),
    ("%python", sys.executable),
    ("%llvm-include", os.path.join(config.llvm_tools_dir, "..", "include")),
    ("%with-remote-device", "env " + remote_device),
    ("%expand-cases",
     f"{sys.executable} {os.path.join(config.test_source_root, 'expand_cases.py')}"),
    ("%expect-error",
     f"{sys.executable} {os.path.join(helpers, 'expect_error.py')}"),
    ("%each", f"{sys.executable} {os.path.join(helpers, 'each.py')}"),
    ("%run-fixture",
     f"{sys.executable} {os.path.join(helpers, 'run_fixture.py')} "
     + os.path.join(fixtures, "losses.json")),
    ("%compare-losses",
     f"{sys.executable} {os.path.join(helpers, 'compare_losses.py')}"),
]

# With the parameter, the tool's name becomes the tool and the flag; a path that
# merely contains the name is left alone.
if lit_config.params.get("verify-roundtrip", "0") not in ("", "0"):
    config.substitutions.append(
        (r"(?<![\w./-])penstock-opt(?![\w./-]| --verify-roundtrip)",
         "penstock-opt --verify-roundtrip")
    )

# A test that hangs is a failure, not a hung suite.
if lit.util.killProcessAndChildrenIsSupported()[0]:
    lit_config.maxIndividualTestTime = 600
