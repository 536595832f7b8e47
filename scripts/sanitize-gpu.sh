#!/usr/bin/env bash
# Trains on the emulated GPU with the runtime of a sanitizer preset:
# scripts/sanitize-gpu.sh asan-ubsan|tsan
# Methods, schedules, replicas, bf16, graphs and a process per GPU; each run
# verifies itself. Takes the compiler of build/default, and builds what it links
# of the preset: the runtime with the emulated driver. Accesses of kernels are
# checked by the emulated GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-}
case $preset in
  asan-ubsan) sanitizers=address,undefined ;;
  tsan) sanitizers=thread ;;
  *)
    echo "usage: sanitize-gpu.sh asan-ubsan|tsan" >&2
    exit 1
    ;;
esac
scripts/build.sh default penstockc
scripts/build.sh "$preset" penstock_start penstock_emulated
runtime=build/$preset/runtime
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TSAN_OPTIONS="suppressions=$PWD/test/tsan-suppressions.txt"
failed=0

# compile OUT MODEL [options of penstockc]
compile() {
  local out=$1
  shift
  build/default/bin/penstockc "$@" --target=cuda --gpu-arch=emulated \
    --loss=softmax-cross-entropy --emit=obj -o "$out.o"
  clang++-22 "-fsanitize=$sanitizers" "$out.o" "$runtime/libpenstock_start.a" \
    -Wl,-u,penstock_cuda "$runtime/libpenstock_cuda.a" \
    -Wl,-u,penstock_emulated "$runtime/libpenstock_emulated.a" \
    "$runtime/libpenstock_runtime.a" -ldl -lgomp -lpthread -lm -o "$out"
}

# check NAME COMMAND...
check() {
  local name=$1 start=$SECONDS
  shift
  if "$@" > "$work/log" 2>&1; then
    echo "$name: passed, $((SECONDS - start)) s"
  else
    echo "$name: FAILED"
    cat "$work/log"
    failed=1
  fi
}

digits=(--data x=examples/digits/train-images.npy
  --labels examples/digits/train-labels.npy --verify)
gpt=(--data idx=test/fixtures/gpt-idx.npy --labels test/fixtures/gpt-labels.npy --verify)
mlp=(examples/digits/mlp.onnx --microbatch-size=8)

compile "$work/pipedream" "${mlp[@]}" --stages=3 --method=pipedream
check "pipedream, 3 stages" "$work/pipedream" "${digits[@]}" --steps 6
check "in another order" env PENSTOCK_EMULATED_ORDER=7 \
  "$work/pipedream" "${digits[@]}" --steps 6 --trace "$work/trace.json"
check "without graphs" env PENSTOCK_GRAPHS=0 "$work/pipedream" "${digits[@]}" --steps 6
check "three GPUs of one process" env PENSTOCK_EMULATED_GPUS=3 \
  "$work/pipedream" "${digits[@]}" --steps 6
compile "$work/replicas" "${mlp[@]}" --stages=2 --replicas=2,1 --microbatches=4
check "replicas" env PENSTOCK_EMULATED_GPUS=3 "$work/replicas" "${digits[@]}" --steps 4
compile "$work/xpipe" "${mlp[@]}" --stages=4 --microbatches=4 --method=xpipe \
  --optimizer=adamw:lr=0.001
check "xpipe, 4 stages" "$work/xpipe" "${digits[@]}" --steps 4 --checkpoint-dir "$work/points"
compile "$work/cnn" examples/digits/cnn.onnx --microbatch-size=5 --stages=2 \
  --microbatches=2 --precision=bf16
check "bf16, 2 stages" "$work/cnn" "${digits[@]}" --steps 2
compile "$work/gpt" test/fixtures/gpt.onnx --microbatch-size=2 --stages=3 \
  --microbatches=4 --schedule=zb-h1 --clip-grad-norm=0.5
check "zb-h1, 3 stages" "$work/gpt" "${gpt[@]}" --steps 3
for name in pipedream replicas; do
  check "$name, a process per GPU" env PENSTOCK_EMULATED_GPUS=3 \
    python3 test/e2e/launch.py -n 3 "$work/$name" "${digits[@]}" --steps 3 --transport=nccl
done
exit "$failed"
