#!/usr/bin/env bash
# From a fresh clone to a trained model: installs, builds the compiler, compiles
# the digits MLP into four stages, trains it as a 1F1B pipeline over threads, and
# tests what it learned.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-dependencies.sh
mkdir -p build
echo "building the compiler (log: build/quickstart.log) ..."
if ! scripts/build.sh default penstockc >build/quickstart.log 2>&1; then
  tail -n 40 build/quickstart.log >&2
  echo "quickstart: the build failed, see build/quickstart.log" >&2
  exit 1
fi

out=build/quickstart
digits=examples/digits
mkdir -p "$out"
# Says a command, then runs it.
run() {
  echo
  echo "\$ $*"
  "$@"
}

run build/default/bin/penstockc "$digits/mlp.onnx" -o "$out/digits" \
  --stages=4 --schedule=1f1b --microbatch-size=10 --microbatches=8 \
  --loss=softmax-cross-entropy --optimizer=sgd:lr=0.05,momentum=0.9 \
  --report

run "$out/digits" --data "x=$digits/train-images.npy" \
  --labels "$digits/train-labels.npy" --epochs 30 \
  --eval-data "x=$digits/test-images.npy" \
  --eval-labels "$digits/test-labels.npy" \
  --log "$out/losses.jsonl" --trace "$out/trace.json" \
  --save "$out/trained.onnx"

echo
echo "trained model:  $out/trained.onnx (loads in any ONNX runtime)"
echo "loss per step:  $out/losses.jsonl"
echo "trace:          $out/trace.json (open it in Perfetto)"
