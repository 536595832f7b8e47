#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is needed, builds the
# compiler and its tools, compiles the character GPT into two stages, trains it as
# a 1F1B pipeline on two cores, tests what it learned, and draws its loss and its
# timeline.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
# From nothing, the compiler's files take half as long in batches.
export CMAKE_ARGS="-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 ${CMAKE_ARGS:-}"

# Shows one step of ninja's in fifty, and the last one. Not by awk: some buffer what
# they read and print.
show_steps() {
  local line last= count=0
  while IFS= read -r line; do
    [[ $line =~ ^\[[0-9]+/[0-9]+\] ]] || continue
    last=$line
    if (( ++count % 50 == 0 )); then
      echo "$line"
    fi
  done
  if (( count % 50 )); then
    echo "$last"
  fi
}

scripts/install-dependencies.sh
echo "building the compiler and its tools ..."
if [[ -t 1 ]]; then
  scripts/build.sh default penstock-tools
else
  # A terminal shows one line that changes; a file gets one in fifty.
  mkdir -p build
  if ! scripts/build.sh default penstock-tools 2>&1 | tee build/quickstart.log | show_steps; then
    tail -n 40 build/quickstart.log >&2
    echo "quickstart: the build failed, see build/quickstart.log" >&2
    exit 1
  fi
fi
echo "built in $((SECONDS - started)) s"

tools=build/default/bin
out=build/quickstart
gpt=examples/gpt
mkdir -p "$out"
# Says a command, then runs it.
run() {
  echo
  echo "\$ $*"
  "$@"
}

run $tools/penstockc $gpt/gpt.onnx -o $out/gpt \
  --stages=2 --schedule=1f1b --microbatch-size=4 --microbatches=8 \
  --loss=softmax-cross-entropy --optimizer=adamw:lr=0.003 \
  --lr-schedule=cosine:total-steps=945,warmup-steps=60 --report

run $out/gpt --data tokens=$gpt/train-tokens.npy --labels $gpt/train-labels.npy \
  --epochs 15 --shuffle --eval-every 3epochs \
  --eval-data tokens=$gpt/test-tokens.npy --eval-labels $gpt/test-labels.npy \
  --log $out/losses.jsonl --trace $out/trace.json --trace-steps 801:820 \
  --save $out/trained.onnx

run $tools/penstock-plot GPT=$out/losses.jsonl --smooth=20 \
  --trace $out/trace.json --updates=810:810 -o $out/run.svg

echo
echo "trained model:      $out/trained.onnx (loads in any ONNX runtime)"
echo "loss and timeline:  $out/run.svg (open it in a browser)"
echo "loss per update:    $out/losses.jsonl"
echo "trace:              $out/trace.json (open it in Perfetto)"
echo "done in $((SECONDS - started)) s"
