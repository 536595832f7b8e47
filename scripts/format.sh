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

all=0 check=()
for argument in "$@"; do
  case $argument in
    --all) all=1 ;;
    --check) check=(--dry-run --Werror) ;;
    *) echo "format.sh: unknown argument $argument (known: --all, --check)" >&2; exit 1 ;;
  esac
done

patterns=('*.h' '*.c' '*.cpp')
if ((all)); then
  mapfile -t files < <(git ls-files -- "${patterns[@]}")
else
  base=$(git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
  mapfile -t files < <(
    { git diff --name-only --diff-filter=d "$base" -- "${patterns[@]}"
      git ls-files --others --exclude-standard -- "${patterns[@]}"; } | sort -u)
fi
((${#files[@]})) || exit 0
"$format" "${check[@]:--i}" "${files[@]}"
