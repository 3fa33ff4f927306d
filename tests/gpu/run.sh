#!/usr/bin/env bash
# Runs tests and measurements on a machine with an NVIDIA GPU, in parts. Each part has a time limit. Its output appears
# at once.
#
#   tests/gpu/run.sh --pack     on a machine with every build tool: makes build-gpu/packed.tar.xz. It contains the
#                               programs, the libraries that a bare machine lacks, these scripts, and the losses of a
#                               CPU build.
#   tests/gpu/run.sh            on the machine with the GPU: the default parts
#   tests/gpu/run.sh PART...    only these
#   tests/gpu/run.sh --list     the parts and their limits
#
# A run takes 9 minutes at most, or TERN_GPU_SECONDS. If parts are left over then, or cut off, the last line names them.
#
# If build-gpu/ works on the machine, the script runs it. Otherwise it builds it there. A build needs cmake, ninja,
# nvcc, cuDNN 9 and NCCL (pip's nvidia-cudnn-cu13 and nvidia-nccl-cu13 are enough). It also needs the headers and
# libraries of fmt, nlohmann-json, CLI11, zlib, liblzma, libarchive, OpenSSL, stb, kissfft and GoogleTest. It does
# not need oneDNN.
#
# Results are in OUT (results-gpu by default): summary.txt has one line per part, and results.tar.gz has all output and
# logs. A part that fails does not stop the others. Exit code 0: no part failed. 1: a part failed or was left over. 2:
# there is no GPU (then only the parts that need none run), or the machine lacks a library.
# shellcheck disable=SC2015
set -uo pipefail
script=$(readlink -f -- "${BASH_SOURCE[0]}")
root=$(dirname -- "$(dirname -- "$(dirname -- "$script")")")
cd -- "$root" || exit 2
out=${OUT:-$root/results-gpu}
pack=$root/build-gpu
programs=(tests/{core,kernels,autograd,layers,optim,dist,apps}_test tests/gpu/{bandwidth,steps}
  apps/train_{lenet,mlp,resnet,alexnet})
budget=${TERN_GPU_SECONDS:-540}
scripts=(tests/gpu/run.sh tests/gpu/parts.sh tests/gpu/torch_steps.py tests/gpu/beside.py tests/golden/make_models.py
  tests/golden/make_golden.py)
# shellcheck source=tests/gpu/parts.sh
source "$root/tests/gpu/parts.sh"

die() {
  echo "tests/gpu/run.sh: $1" >&2
  exit 2
}

list() {
  printf '%-15s %7s  %-9s\n' part seconds needs
  { default_parts; more_parts; } | while read -r name limit needs what; do
    printf '%-15s %7s  %-9s  %s\n' "$name" "$limit" "$needs" "$what"
  done
  echo "Without PART: from $(default_parts | sed -n '1s/ .*//p') to $(default_parts | sed -n '$s/ .*//p'). A run takes $budget seconds at most."
}

build() {
  local targets
  mapfile -t targets < <(basename -a "${programs[@]}")
  CUDAARCHS=${CUDAARCHS:-90} cmake --preset cuda -B build-cuda -DTERN_CPU=OFF && cmake --build build-cuda --target "${targets[@]}"
}

# Copies the programs into the folders that they have in the build. Also copies the libraries that they load, except the
# system's own and NVIDIA's.
collect() {
  local program
  rm -rf "$pack"
  mkdir -p "$pack/lib"
  for program in "${programs[@]}"; do install -Ds "build-cuda/$program" "$pack/$program" || return; done
  ldd "${programs[@]/#/$pack/}" | awk '$3 ~ /^\// &&
    $3 !~ /\/lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|cublasLt|cudnn[a-z_]*|nccl|cuda)\.so/ { print $3 }' | sort -u |
    xargs -r cp -L -t "$pack/lib" || return
  find "$pack/lib" -type f -exec strip {} +
}

# A build for a bare machine has no fast CPU kernels. So the CPU's losses come from a build that has them.
collect_cpu_losses() {
  cmake --preset release && cmake --build --preset release --target train_lenet &&
    build/apps/train_lenet "${lenet_beside_cpu[@]}" --quiet --log "$pack/lenet-cpu.jsonl"
}

# The size of the files that git would commit, as an archive.
tree_bytes() { git ls-files -z --cached --others --exclude-standard | tar -cz --null -T - 2>/dev/null | wc -c; }

# Most of each program is the same library. xz finds it again in the 64 MiB before; gzip looks back 32 KiB.
# The source tree travels with the pack, and both together may have 63 MB.
make_pack() {
  local bytes room
  build && collect && collect_cpu_losses && tar -cf - build-gpu "${scripts[@]}" | xz -9 >build-gpu.tmp &&
    rm -r "$pack" && mkdir "$pack" && mv build-gpu.tmp "$pack/packed.tar.xz" || return
  bytes=$(stat -c %s "$pack/packed.tar.xz")
  room=$((63000000 - $(tree_bytes)))
  list
  echo "build-gpu/packed.tar.xz: $((bytes / 1000000)) MB, expected $((room / 1000000)) or less"
  [ "$bytes" -le "$room" ]
}

# Prints the folders with NVIDIA's libraries for CUDA $1: those of the toolkit, those of pip's wheels unless they are for
# another CUDA, and the one in which containers have the driver's.
nvidia_folders() {
  python3 - "$1" 2>/dev/null <<'END'
import glob, os, sys
for path in sys.path:
    for folder in glob.glob(path + "/nvidia/*/lib"):
        wheels = glob.glob(f"{path}/nvidia_{os.path.basename(os.path.dirname(folder))}_cu[0-9]*")
        if not wheels or any(f"_cu{sys.argv[1]}-" in wheel for wheel in wheels):
            print(folder)
END
  ls -d /usr/local/cuda/lib64 /usr/local/nvidia/lib64 2>/dev/null
}

# Sets `libraries` to the folders that the packed programs need. If some libraries are missing, prints a sentence on
# stdout.
find_libraries() {
  local program=$pack/tests/kernels_test cuda missing wheels
  cuda=$(ldd "$program" 2>/dev/null | sed -n 's/.*libcublasLt\.so\.\([0-9]*\) .*/\1/p')
  libraries=$pack/lib:$(nvidia_folders "$cuda" | paste -sd:)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  missing=$(LD_LIBRARY_PATH=$libraries ldd "$program" 2>&1 | awk '/not found/ { print $1 }' | sort -u | paste -sd' ')
  [ -n "$missing" ] || return 0
  wheels=$(python3 -c 'from importlib.metadata import distributions as all
print(*sorted({d.name for d in all() if d.name.startswith(("nvidia-cublas", "nvidia-cudnn"))}), sep=" and ")' 2>/dev/null)
  echo "build-gpu/ needs $missing, for CUDA $cuda; found ${wheels:-no wheels of NVIDIA in python3}." \
    "Install that toolkit with cuDNN 9, or pip's nvidia-cublas, nvidia-cudnn-cu$cuda and nvidia-nccl-cu$cuda"
  return 1
}

# A bare machine may lack xz. Python has its own.
unpack() {
  if command -v xz >/dev/null; then tar -xJf "$1" build-gpu; else
    python3 -c 'import sys, tarfile
with tarfile.open(sys.argv[1]) as pack:
    pack.extractall(members=[file for file in pack if file.name.startswith("build-gpu/")])' "$1"
  fi
}

# Uses the pack, or builds its programs on this machine.
prepare_programs() {
  local why="build-gpu/ holds no programs"
  [ ! -e "$pack/packed.tar.xz" ] || unpack "$pack/packed.tar.xz" || die "build-gpu/packed.tar.xz is damaged"
  if [ -e "$pack/tests/kernels_test" ]; then
    find_libraries >"$files/why-built.txt" && tern "$pack/tests/core_test" --gtest_list_tests 2>"$files/why-built.txt" \
      >/dev/null && return
    why=$(tail -n 1 "$files/why-built.txt")
  fi
  command -v nvcc >/dev/null && command -v cmake >/dev/null || die "$why; and there is no nvcc with cmake to build it here"
  echo "$why: building"
  build >"$files/build.txt" 2>&1 && collect && find_libraries && return
  tail -n 20 "$files/build.txt"
  die "the build failed, see above"
}

say_why_no_gpu() {
  local said
  command -v nvidia-smi >/dev/null || { echo "there is no NVIDIA driver on this machine"; return; }
  said=$(nvidia-smi -L 2>&1) && [[ $said == *GPU* ]] || echo "nvidia-smi finds no GPU${said:+ (${said:0:100})}"
}
# Prints what a part with the needs $1 lacks here. Prints nothing if it lacks nothing.
say_what_lacks() {
  [ "$1" = nothing ] || [ "$1" = cpu-torch ] || [ -z "$no_gpu" ] || { echo "$no_gpu"; return; }
  [[ $1 != *torch ]] || python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' ||
    echo "python3 has no PyTorch"
}

# Prints the test that was running when the output FILE ended.
say_test_in() {
  local last
  last=$(grep -E '^\[ +(RUN|OK|FAILED|SKIPPED) ' "$1" | tail -n 1)
  [[ $last != '[ RUN'* ]] || echo "; in ${last#*] }"
}

# run_part NAME SECONDS NEEDS: runs a part as its own process group. Its output goes to a file and to the screen.
# Nothing waits for a process that a part leaves behind.
run_part() {
  local name=$1 limit=$2 result reason begin=$SECONDS left=$((budget - SECONDS)) cut=
  [ "$left" -ge 0 ] || left=0
  [ "$limit" -le "$left" ] || { limit=$left && cut=yes; }
  printf '\n== %s, at most %s s\n' "$name" "$limit"
  reason=$(say_what_lacks "$3")
  if [ -n "$reason" ]; then
    result=skipped
    echo "skipped: $reason"
  elif [ "$limit" -lt 5 ]; then
    result='no time' reason="the run's $budget s are over"
    left_over+=" $name"
    echo "$reason"
  else
    : >"$files/$name.txt"
    timeout -k 5 "$limit" bash "$script" --part "$name" >>"$files/$name.txt" 2>&1 </dev/null &
    child=$!
    tail --pid="$child" -s 0.2 -n +1 -f "$files/$name.txt"
    wait "$child"
    case $? in
      0) result=ok ;;
      77) result=skipped reason=$(tail -n 1 "$files/$name.txt") ;;
      124 | 137)
        result='timed out' reason="after $limit s; rows up to then are above$(say_test_in "$files/$name.txt")" failed=1
        [ -z "$cut" ] || { result='cut off' && left_over+=" $name"; } ;;
      *) result=failed reason=$(tail -n 1 "$files/$name.txt") failed=1 ;;
    esac
    [ "$result" = ok ] || echo "$result: $reason"
  fi
  printf '%-15s %-9s %4s s  %s\n' "$name" "$result" $((SECONDS - begin)) "$reason" >>"$out/summary.txt"
  # This runs after every part, so that a run that is cut off keeps its results.
  cp "$out/summary.txt" "$files/" && tar -C "$files" -czf "$out/results.tmp" . && mv "$out/results.tmp" "$out/results.tar.gz"
}

case ${1:-} in
  --pack) make_pack && exit 0 || exit 1 ;;
  --help | -h) awk '/^# shellcheck/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$script" && list && exit 0 ;;
  --list) list && exit 0 ;;
  --part) set -o pipefail && "part_${2//-/_}" && exit 0 || exit $? ;;
esac
chosen=$(default_parts)
if [ $# -gt 0 ]; then
  chosen=
  for name in "$@"; do
    line=$({ default_parts; more_parts; } | grep "^$name ") ||
      die "found '$name', expected --pack, --list or parts that it names"
    chosen+=$line$'\n'
  done
fi

files=$(mktemp -d) libraries='' failed=0 child='' left_over=''
trap 'rm -rf "$files"' EXIT
trap '[ -z "$child" ] || kill "$child" 2>/dev/null; exit 130' INT TERM
no_gpu=$(say_why_no_gpu)
prepare_programs
mkdir -p "$out" && : >"$out/summary.txt" || die "$out cannot be written"
# Engines are measured again, and remembered for the later parts.
export pack files libraries no_gpu TERN_CACHE=$files/cache PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
while read -r name limit needs _; do
  [ -z "$name" ] || run_part "$name" "$limit" "$needs"
done <<<"$chosen"

# Once more, because some terminals keep only the end.
[ ! -s "$files/beside.txt" ] || { printf '\n== beside\n' && cat "$files/beside.txt"; }
printf '\n== summary\n'
cat "$out/summary.txt"
if [ -n "$left_over" ]; then
  echo "left over: tests/gpu/run.sh$left_over"
  failed=1
fi
if [ -n "$no_gpu" ]; then
  echo "tests/gpu/run.sh: $no_gpu; expected an NVIDIA GPU, ran what needs none" >&2
  exit 2
fi
exit "$failed"
