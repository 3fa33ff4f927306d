#!/usr/bin/env bash
# Tests tests/gpu/run.sh on a copy with fake programs and tools, in a path with a space.
# shellcheck disable=SC2016,SC2154
source "$(dirname -- "$0")/expect.sh"

project="$scratch/a project"
source=$(dirname -- "$dev")
mkdir -p "$project/tests/gpu" "$project/tests/golden" "$project/build-gpu/lib" "$scratch/tools"
cp "$source"/tests/gpu/*.{sh,py} "$project/tests/gpu/"
export OUT=$scratch/results PATH=$scratch/tools:/usr/bin:/bin
gpu_run() { bash "$project/tests/gpu/run.sh" "$@"; }
summary() { grep -q "^$1 .*$2" "$OUT/summary.txt" || { output=$(cat "$OUT/summary.txt") && fail "summary: $1 $2"; }; }

# tool NAME SCRIPT writes a fake tool on the PATH. program NAME SCRIPT writes a fake program in build-gpu.
tool() { printf '#!/bin/bash\n%s\n' "$2" >"$scratch/tools/$1" && chmod +x "$scratch/tools/$1"; }
program() {
  mkdir -p "$(dirname "$project/build-gpu/$1")"
  printf '#!/bin/bash\n%s\n' "$2" >"$project/build-gpu/$1" && chmod +x "$project/build-gpu/$1"
}
passes='echo "[  PASSED  ] 3 tests."'
for name in tests/{core,kernels,autograd,layers,optim,dist,apps}_test; do program "$name" "$passes"; done
tool nvidia-smi 'exit 9'
program tests/gpu/bandwidth 'echo "$LD_LIBRARY_PATH of $1"'
program tests/gpu/steps 'echo "lenet 64 fp32 tern-graph 0.5"; echo "lenet 64 fp32 tern-one-by-one 0.9"'
# This program logs a hundred losses, times the number in the file `scale`, and the accuracy in the file `accuracy`.
program apps/train_lenet '
[ "$1" != --version ] || { echo tern 1; exit 0; }
while [ "$1" != --log ]; do shift; done
awk -v scale="$(cat '"$scratch"'/scale)" "BEGIN { for (i = 1; i <= 100; ++i)
  printf \"{\\\"event\\\":\\\"step\\\",\\\"step\\\":%d,\\\"loss\\\":%.9f,\\\"lr\\\":1}\n\", i, scale * 2 / i }" >"$2"
echo "{\"event\":\"done\",\"accuracy\":$(cat '"$scratch"'/accuracy),\"loss\":1}" >>"$2"'
for name in mlp resnet alexnet; do program "apps/train_$name" 'exit 3'; done
echo 1 >"$scratch/scale"
echo 0.995 >"$scratch/accuracy"
"$project/build-gpu/apps/train_lenet" --log "$project/build-gpu/lenet-cpu.jsonl"

run 0 gpu_run --list
limits=$(awk '$2 ~ /^[0-9]+$/ { print $2 }' <<<"$output")
[ "$(wc -l <<<"$limits")" -gt 20 ] || fail "the parts have limits"
[ "$(sort -n <<<"$limits" | tail -n 1)" -le 540 ] || fail "a part takes 9 minutes at most"
says "Without PART: from versions to sanitizer. A run takes 540 seconds at most."
run 2 gpu_run dance
says "found 'dance', expected --pack, --list"

# A pack contains everything that another machine needs. Here the builds are already done, and their programs do
# nothing.
mkdir -p "$project/build"
cp -r "$project/build-gpu/apps" "$project/build"
cp -r "$project/build-gpu" "$project/build-cuda"
find "$project/build-cuda" -type f -exec cp /bin/true {} \;
cp "$source"/tests/golden/make_*.py "$project/tests/golden/"
mv "$project/build-gpu" "$scratch/programs"
tool cmake true
run 0 gpu_run --pack
says " MB, expected 62 or less"
packed=$(tar -tJf "$project/build-gpu/packed.tar.xz")
for file in build-gpu/lenet-cpu.jsonl build-gpu/apps/train_alexnet build-gpu/tests/gpu/steps tests/gpu/{run,parts}.sh \
  tests/gpu/beside.py tests/golden/make_golden.py; do
  grep -qx "$file" <<<"$packed" || fail "the pack has no $file"
done
rm "$scratch/tools/cmake"
# It is unpacked with xz, or with Python if the machine has no xz. The programs then lie beside it.
cp -rs /usr/bin "$scratch/without xz"
rm "$scratch/without xz/xz"
for path in "$PATH" "$scratch/tools:$scratch/without xz"; do
  PATH=$path run 2 gpu_run versions
  summary versions ok
  cmp -s /bin/true "$project/build-gpu/apps/train_alexnet" || fail "the programs are unpacked"
  find "$project/build-gpu" -mindepth 1 -maxdepth 1 -type d -exec rm -r {} +
done
rm -r "$project/build-gpu"
mv "$scratch/programs" "$project/build-gpu"

# Without a GPU, the parts that need none run.
run 2 gpu_run
says "nvidia-smi finds no GPU; expected an NVIDIA GPU, ran what needs none"
summary versions ok
summary plans ok
summary parity 'skipped .*nvidia-smi finds no GPU'
grep -q versions.txt <<<"$(tar -tzf "$OUT/results.tar.gz")" || fail "results.tar.gz has the output"

tool nvidia-smi 'echo "GPU 0: a card"'
run 0 gpu_run plans parity codecs
says "build-gpu/lib"
says "of codecs"
summary codecs ok
# A failure does not stop the later parts. If tests skip because of the device, the part fails too.
program tests/kernels_test 'echo "[  FAILED  ] 1 test"; exit 1'
run 1 gpu_run parity codecs
summary parity failed
summary codecs ok
program tests/kernels_test "echo 'device cuda:0: no driver'; $passes"
run 1 gpu_run parity
summary parity failed
program tests/kernels_test "$passes"

# If a part reaches its limit, its output so far is kept. A process that it leaves behind does not make others wait.
mv "$project/build-gpu/apps/train_lenet" "$scratch/train_lenet"
program apps/train_lenet 'echo "tern 1"; setsid sleep 300 & sleep 300'
begin=$SECONDS
run 1 gpu_run versions codecs
[ $((SECONDS - begin)) -lt 60 ] || fail "the limit holds"
says "tern 1"
summary versions 'timed out .*after 15 s'
summary codecs ok
# The run has a limit, too. What is left over can be given to another run.
TERN_GPU_SECONDS=8 run 1 gpu_run versions codecs
summary versions 'cut off'
summary codecs 'no time'
says "left over: tests/gpu/run.sh versions codecs"
mv "$scratch/train_lenet" "$project/build-gpu/apps/train_lenet"
# A part that runs out of time names its test, unless that has ended.
for last in '[ RUN      ] A.b' '[  FAILED  ] A.b (1 ms)' '[  SKIPPED ] A.b (1 ms)'; do
  program tests/kernels_test "echo '[ RUN      ] A.a'; echo '$last'; sleep 300"
  TERN_GPU_SECONDS=6 run 1 gpu_run plans
  if [[ $last == *RUN* ]]; then summary plans 'above; in A.b$'; else summary plans 'above$'; fi
done
program tests/kernels_test "$passes"

# The expected values of losses and accuracies.
run 0 gpu_run as-cpu
says "the first 20 apart by 0 of them at most, expected below 0.001"
echo 1.01 >"$scratch/scale"
run 1 gpu_run as-cpu
says "the first 20 apart by 0.01 of them at most"
run 1 gpu_run ranks accuracy
says "lenet-tf32: accuracy 99.50 %, expected 99 % or more"
summary ranks ok
summary accuracy failed
echo 0.97 >"$scratch/accuracy"
run 1 gpu_run ranks
says "ranks-ternary: accuracy 97.00 %, expected 98 % or more"
rm "$project/build-gpu/lenet-cpu.jsonl"
run 0 gpu_run as-cpu
summary as-cpu 'skipped .*without the losses of a CPU build'

# If a checker finds something, its part fails. If the checker may not run here, the part is skipped.
tool compute-sanitizer 'echo "========= ERROR SUMMARY: 0 errors"'
run 1 gpu_run sanitizer
says "racecheck: no test ran on the device"
summary sanitizer failed
tool compute-sanitizer 'echo "[  PASSED  ] 3 tests."; echo "========= ERROR SUMMARY: 0 errors"'
run 0 gpu_run sanitizer
says "-- racecheck, at most"
summary sanitizer ok
tool compute-sanitizer 'echo "========= RACECHECK SUMMARY: 1 hazard displayed"; exit 9'
run 1 gpu_run sanitizer
summary sanitizer failed
tool compute-sanitizer 'echo "========= Error: Device not supported"; exit 1'
run 0 gpu_run sanitizer
summary sanitizer 'skipped .*Device not supported'

# Python uses its own libraries, not those of the pack. Its rows appear beside tern's.
tool python3 '
case $* in
  *torch_steps.py*) echo "python sees ${LD_LIBRARY_PATH:-nothing of tern}"; echo "lenet 64 fp32 graph 0.25"
    echo "lenet 64 fp32 eager-nhwc 0.125" ;;
  *beside.py*) exec /usr/bin/python3 "$@" ;;
esac'
run 0 gpu_run steps torch beside
says "python sees nothing of tern"
run 0 gpu_run steps-lenet
grep -Eq '0.5000 +0.9000 +- +0.1250 +0.2500 +- +-  4.00 \(eager-nhwc\)' <<<"$output" || fail "a row with a ratio"
rm "$scratch/tools/python3"

# Wheels of another CUDA are found before anything is linked.
tool ldd 'echo "libcublasLt.so.13 => not found"; echo "libcudnn.so.9 => not found"'
mkdir -p "$scratch/site-packages/nvidia_cublas_cu12-12.8.4.1.dist-info"
printf 'Metadata-Version: 2.1\nName: nvidia-cublas-cu12\nVersion: 12.8.4.1\n' \
  >"$scratch/site-packages/nvidia_cublas_cu12-12.8.4.1.dist-info/METADATA"
PYTHONPATH=$scratch/site-packages run 2 gpu_run versions
says "build-gpu/ needs libcublasLt.so.13 libcudnn.so.9, for CUDA 13; found nvidia-cublas-cu12. Install that toolkit"
# A build does the same, with the CUDA version of its toolkit.
wheel=$scratch/site-packages/nvidia/cublas
mkdir -p "$wheel/lib" "$wheel/include"
touch "$wheel/lib/libcublasLt.so.12" "$wheel/lib/libcublasLt.so.13" "$wheel/include/cublasLt.h"
cat >"$scratch/find.cmake" <<END
list(APPEND CMAKE_MODULE_PATH "$source/cmake")
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
set(CMAKE_SYSTEM_PREFIX_PATH "$scratch/none")
set(TERN_NVIDIA_WHEELS "$scratch/site-packages/nvidia")
function(add_library) # a script has no targets
endfunction()
function(set_target_properties)
endfunction()
find_package(cuBLASLt REQUIRED)
END
run 1 cmake -D CUDAToolkit_VERSION_MAJOR=13 -P "$scratch/find.cmake"
says "CUDA 13 needs its own"
run 0 cmake -D CUDAToolkit_VERSION_MAJOR=12 -P "$scratch/find.cmake"
says "Found cuBLASLt: $scratch/site-packages/nvidia/cublas/lib/libcublasLt.so.12"
