#!/bin/sh
# Runs the tests of the core under AddressSanitizer, which also looks for leaks at the end: native/asan.sh [CARGO TEST ARGUMENTS...]
#
# The sanitizer is an unstable option: RUSTC_BOOTSTRAP=1 makes the stable compiler accept it, so no nightly toolchain is needed.
set -eu
cd "$(dirname "$0")"
target=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address RUSTDOCFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
exec cargo test --target "$target" -p holdfast-core "$@"
