#!/usr/bin/env bash
# Installs the Debian packages that Penstock builds on, and those that are named:
# scripts/install-dependencies.sh [PACKAGE...]. Does nothing when all of them are
# there; needs root or sudo otherwise. Asks no questions.
set -euo pipefail

packages=(
  # Compiler, MLIR, lit and FileCheck.
  clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  cmake ninja-build ccache g++ python3
  # ONNX, its protobuf and its node tests; matrix products; unit tests.
  libonnx-dev libonnx-testdata libprotobuf-dev protobuf-compiler libdnnl-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  # Two MPIs, for the shims that programs load. None is needed to build.
  libopenmpi-dev openmpi-bin libmpich-dev mpich
  # Checkpoints: manifests and checksums; headers only.
  nlohmann-json3-dev libxxhash-dev
  # The order of cores, which programs load where it is there.
  libhwloc-dev
  "$@"
)

missing=()
for package in "${packages[@]}"; do
  if [[ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null)" != "ii " ]]; then
    missing+=("$package")
  fi
done
if ((${#missing[@]} == 0)); then
  echo "install-dependencies: all ${#packages[@]} packages are installed"
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "install-dependencies: no apt-get here; install the equivalents of: ${missing[*]}" >&2
  exit 1
fi
root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-dependencies: run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  root=(sudo)
fi

echo "install-dependencies: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -qq ||
  echo "install-dependencies: apt-get update failed, trying with the lists at hand" >&2

# LLVM 22 came to Debian 12 through its security updates.
unknown=()
for package in "${missing[@]}"; do
  candidate=$(apt-cache policy "$package" 2>/dev/null | awk '/Candidate:/ {print $2}')
  if [[ -z "$candidate" || "$candidate" == "(none)" ]]; then
    unknown+=("$package")
  fi
done
if ((${#unknown[@]} > 0)); then
  {
    echo "install-dependencies: apt knows no package ${unknown[*]}"
    echo "  On Debian 12 the packages of LLVM 22 are in the suite bookworm-security, component main:"
    echo "  enable it in /etc/apt/sources.list, or add another archive that has them, and run this again."
  } >&2
  exit 1
fi

"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
