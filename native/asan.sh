#!/bin/sh
# Runs the core's tests under AddressSanitizer, which at the end looks for leaks too. Needs a nightly toolchain.
set -eu
cd "$(dirname "$0")"
target=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS=-Zsanitizer=address RUSTDOCFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=1 CARGO_TARGET_DIR=target/asan \
    cargo +nightly test --target "$target" -p holdfast-core "$@"
