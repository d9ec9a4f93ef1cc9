#!/usr/bin/env bash
# Build the kernel into folder $1: unpack, patch, configure, compile, strip; then the kernel with DCTCP
# out of the same tree. Called by `build`, which sets SOURCE, COMPILER, JOBS and HZ, the timer frequency.
# Each step leaves a mark, so that an interrupted build goes on; the compiler's own marks are make's.
set -euo pipefail
# kbuild reads its time stamp in the local time zone.
export LC_ALL=C TZ=UTC

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TARGET=$(cd "$1" && pwd)
WORK=$TARGET/work
TREE=$WORK/source
LOG=$TARGET/build.log

say() { echo "linux engine: $*" >&2; }

# The build must not know when, where, by whom and beside which compiler of Rust: the same inputs give the same kernel.
compile() {
    nice -n 10 make -C "$TREE" --no-print-directory ARCH=um SUBARCH=x86_64 CC="$COMPILER" \
        KBUILD_BUILD_TIMESTAMP=1970-01-01 KBUILD_BUILD_USER=replicate KBUILD_BUILD_HOST=replicate \
        KBUILD_BUILD_VERSION=1 RUSTC=false BINDGEN=false KCFLAGS="-ffile-prefix-map=$TREE=." "$@" >>"$LOG" 2>&1
}

step() {
    local mark=$WORK/.$1
    [ -f "$mark" ] && return
    say "$1"
    if ! "$1" >>"$LOG" 2>&1; then
        tail -n 20 "$LOG" >&2
        say "$1 failed; all of it is in $LOG"
        exit 1
    fi
    touch "$mark"
}

unpack() {
    rm -rf "$TREE"
    mkdir -p "$TREE"
    tar -xJf "$SOURCE" -C "$TREE" --strip-components=1
}

patch_source() {
    local change
    for change in "$HERE"/kernel/*.patch; do
        patch -d "$TREE" -p1 --forward <"$change"
    done
}

configure() {
    compile tinyconfig
    { cat "$HERE/kernel/kernel.config" && echo "CONFIG_HZ=$HZ"; } >"$WORK/wanted.config"
    (cd "$TREE" && scripts/kconfig/merge_config.sh -m .config "$WORK/wanted.config")
    compile olddefconfig
    # What depends on something that is not set vanishes without a word.
    local line
    while read -r line; do
        case $line in
        CONFIG_*) grep -qxF -- "$line" "$TREE/.config" || { echo "lost: $line" && return 1; } ;;
        esac
    done <"$WORK/wanted.config"
}

compile_kernel() {
    compile --jobs="$JOBS" linux && strip --strip-all -o "$WORK/linux" "$TREE/linux"
}

# A kernel of its own, since code at other addresses draws other random numbers from the same seed
# (add_interrupt_randomness): runs without DCTCP keep theirs.
compile_dctcp() {
    "$TREE/scripts/config" --file "$TREE/.config" --enable TCP_CONG_DCTCP
    compile olddefconfig && compile --jobs="$JOBS" linux &&
        strip --strip-all -o "$TARGET/dctcp-linux" "$TREE/linux"
}

finish() {
    make -s -C "$TREE" ARCH=um SUBARCH=x86_64 kernelversion >"$TARGET/release"
    mv "$WORK/linux" "$TARGET/linux"
}

mkdir -p "$WORK"
for name in unpack patch_source configure compile_kernel compile_dctcp finish; do
    step "$name"
done
rm -rf "$WORK"
