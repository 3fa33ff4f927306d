#!/usr/bin/env bash
# Prints what each CUDA kernel needs of a multiprocessor: registers per thread, and bytes of stack frame, of spilled
# stores and loads, and of shared memory. Needs nvcc, but no GPU. Compiles the .cu files of a build folder again, device
# code only.
#   tests/gpu/registers.sh [BUILD [ARCHITECTURE]]    default: build-cuda sm_90
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
build=${1:-build-cuda} architecture=${2:-sm_90}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Removes the launcher, dependency file, output and architectures from a command of the build.
device_only() {
  sed -E 's/^\S*ccache //; s/ -o \S+//; s/ -MD -MT \S+ -MF \S+//; s/ (--generate-code|-gencode)=\S+//g'
}

ninja -C "$build" -t commands tern_kernels tern_core | grep -E -- '-c \S+\.cu( |$)' | device_only > "$work/commands"
while read -r command; do
  (cd "$build" && $command -cubin "-arch=$architecture" -Xptxas -v -o "$work/cubin" < /dev/null) 2>> "$work/report" ||
    { cat "$work/report"; exit 1; }
done < "$work/commands"

echo "registers  stack  spilled(out in)  shared  kernel"
awk -v quote="'" '
  /Compiling entry function/ { split($0, part, quote); name = part[2] }
  /bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
  /Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
    printf "%9d %6d %9d %6d %7d  %s\n", registers, stack, stores, loads, shared, name
  }' "$work/report" |
  c++filt | sed -E 's/(void |tern::(cuda::|kernels::)?|\(anonymous namespace\)::)//g; s/\)\(.*$/)/' | sort -k2nr -k3nr -k1nr
