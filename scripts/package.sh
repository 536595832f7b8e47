#!/usr/bin/env bash
# Builds the Debian packages penstock, penstock-dev and penstock-mpi into
# build/package.
set -euo pipefail
cd "$(dirname "$0")/.."
# By dpkg-shlibdeps and file, CPack finds the libraries that the packages need.
scripts/install-dependencies.sh dpkg-dev file
scripts/build.sh package
cd build/package
rm -f ./*.deb
cpack >cpack.log || {
  cat cpack.log >&2
  exit 1
}
ls -l ./*.deb
