#!/usr/bin/env bash
# Formats the C and C++ files that differ from main, or with --all every one;
# with --check changes nothing and fails when something would change.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-22 || echo /usr/lib/llvm-22/bin/clang-format)
if [[ ! -x $format ]]; then
  echo "format.sh: clang-format 22 is missing: apt-get install clang-format-22" >&2
  exit 1
fi

all=() check=()
for argument in "$@"; do
  case $argument in
    --all) all=(--all) ;;
    --check) check=(--dry-run --Werror) ;;
    *) echo "format.sh: unknown argument $argument (known: --all, --check)" >&2; exit 1 ;;
  esac
done

mapfile -t files < <(scripts/changed-files.sh "${all[@]}" '*.h' '*.c' '*.cpp')
((${#files[@]})) || exit 0
"$format" "${check[@]:--i}" "${files[@]}"
