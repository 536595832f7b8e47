#!/usr/bin/env bash
# Measures Penstock on a GPU, in two halves:
#   bench/gpu.sh prepare FILE.tar.xz [--arch=sm_90]   here: needs the build and torch
#   bench/gpu.sh run FILE.tar.xz OUT [STEP..]         there: needs Python, numpy, torch
#   bench/gpu.sh dry-run [STEP..]                     both, small, on the emulated GPU
# gpu_run.py lists the steps, with their minutes: 30 together. Where a command has
# ten, take these; OUT stays from one to the next, and has results.json:
#   run FILE OUT versions bits train sanitize --minutes=9
#   run FILE OUT rates kernels --minutes=9
#   run FILE OUT compare-bf16 --minutes=9
#   run FILE OUT compare-f32 compare-tf32 --minutes=9
# PYTHON names the interpreter.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
what=${1:-}
shift || true
case $what in
  prepare) exec "$python" "$here/gpu_prepare.py" "$@" ;;
  run)
    if (($# < 2)); then
      echo "usage: gpu.sh run FILE.tar.xz OUT [STEP..]" >&2
      exit 1
    fi
    file=$1 out=$2
    shift 2
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' \
      "$file" "$work"
    "$python" "$here/gpu_run.py" "$work/gpu" "$out" "$@"
    ;;
  dry-run)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$python" "$here/gpu_prepare.py" "$work/gpu.tar.xz" --arch=emulated --tiny
    if (($# == 0)); then set -- bits train rates compare-f32 compare-tf32 compare-bf16; fi
    "$here/gpu.sh" run "$work/gpu.tar.xz" "$work/out" "$@"
    ;;
  *)
    echo "usage: gpu.sh prepare|run|dry-run .. (see the head of this file)" >&2
    exit 1
    ;;
esac
