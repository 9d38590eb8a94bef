#!/bin/sh
# Builds the fuzz targets and runs each for some time: native/fuzz/run.sh SECONDS [TARGET...]
#
# Installs cargo-fuzz if it is missing. Uses the nightly toolchain if there is one; otherwise the stable compiler, which
# accepts the same options with RUSTC_BOOTSTRAP=1.
set -eu

if [ $# -lt 1 ] || ! [ "$1" -gt 0 ] 2>/dev/null; then
    echo "expected a number of seconds, as in: native/fuzz/run.sh 60 shard" >&2
    exit 1
fi
seconds=$1
shift
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- $(basename -s .rs fuzz_targets/*.rs)

command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --version 0.13.2 --locked
toolchain=+nightly
if ! cargo +nightly --version >/dev/null 2>&1; then
    toolchain=
    export RUSTC_BOOTSTRAP=1
fi

for target in "$@"; do
    # shellcheck disable=SC2086
    nice -n 5 cargo $toolchain fuzz build "$target"
done
for target in "$@"; do
    mkdir -p "corpus/$target"
    most=1024
    [ "$target" = hello ] && most=4096 # as long as those of browsers
    # shellcheck disable=SC2086
    nice -n 5 cargo $toolchain fuzz run "$target" "corpus/$target" "seeds/$target" -- \
        -max_total_time="$seconds" -max_len=$most -timeout=20 -print_final_stats=1
done
