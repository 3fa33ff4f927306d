#!/usr/bin/env bash
# What a machine with an NVIDIA GPU has to show, in order and within 9 minutes: versions, GPU tests, LeNet on CUDA beside
# the CPU, and the tables beside PyTorch where it is installed. Results also as files in OUT (results-gpu by default).
#
#   tests/gpu/run.sh --pack    on a machine with every build tool: puts the programs and the libraries that a bare machine
#                              lacks into build-gpu/, to be brought along
#   tests/gpu/run.sh           on the machine with the GPU: runs build-gpu/ where that works, else builds it there
#
# A build there needs cmake, ninja, nvcc, cuDNN 9 and NCCL (pip's nvidia-cudnn-cu13 and nvidia-nccl-cu13 will do), and the
# headers and libraries of fmt, nlohmann-json, CLI11, zlib, liblzma, libarchive, OpenSSL, stb and GoogleTest; neither
# oneDNN nor OpenBLAS. TERN_TEST_DATA/mnist: real digits.
set -uo pipefail
root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")")
cd -- "$root" || exit 2
out=${OUT:-$root/results-gpu}
pack=$root/build-gpu packed=$root/build-gpu/packed.tar.gz
deadline=$((SECONDS + 540))
programs=(tests/core_test tests/kernels_test tests/dist_test tests/gpu/bandwidth tests/gpu/steps apps/train_lenet)

build() {
  cmake --preset cuda -DTERN_CPU=OFF -DCMAKE_CUDA_ARCHITECTURES="${ARCHITECTURES:-90}" &&
    cmake --build --preset cuda --target core_test kernels_test dist_test bandwidth steps train_lenet
}

# The programs, and the libraries they load beside the system's own and NVIDIA's.
collect() {
  local program
  rm -rf "$pack"
  mkdir -p "$pack/lib"
  for program in "${programs[@]}"; do cp "build-cuda/$program" "$pack/" || return 1; done
  ldd "$pack"/* 2>/dev/null | awk '$3 ~ /^\// { print $3 }' | sort -u |
    grep -Ev '/lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|cublasLt|cudnn[a-z_]*|nccl|cuda)\.so' | xargs -r cp -L -t "$pack/lib"
  strip "$pack"/{core_test,kernels_test,dist_test,bandwidth,steps,train_lenet} "$pack"/lib/*.so*
}

# Folders with NVIDIA's libraries: the toolkit's and those of pip's wheels.
nvidia_folders() {
  python3 -c 'import glob, sys; print("\n".join(f for p in sys.path for f in glob.glob(p + "/nvidia/*/lib")))' 2>/dev/null
  ls -d /usr/local/cuda/lib64 2>/dev/null
}

if [ "${1:-}" = --pack ]; then
  build && collect && tar -C "$pack" -czf "$root/build-gpu.tmp" . && rm -r "$pack" && mkdir "$pack" &&
    mv "$root/build-gpu.tmp" "$packed" && du -sh "$pack"
  exit
fi
if [ $# -gt 0 ]; then
  echo "tests/gpu/run.sh: found '$*', expected --pack or nothing" >&2
  exit 2
fi

if ! gpu=$(nvidia-smi -L 2>&1); then
  echo "tests/gpu/run.sh: no NVIDIA GPU with a driver on this machine (${gpu#*: line *: }); expected one" >&2
  exit 2
fi
[ ! -e "$packed" ] || tar -C "$pack" -xzf "$packed"
mkdir -p "$out"
LD_LIBRARY_PATH=$pack/lib:$(nvidia_folders | paste -sd:):${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH OMP_WAIT_POLICY=PASSIVE
if ! "$pack/core_test" --gtest_list_tests >/dev/null 2>"$out/why-built.txt"; then
  echo "build-gpu/ does not run here ($(tail -n 1 "$out/why-built.txt")): building"
  build >"$out/build.txt" 2>&1 && collect || { tail -n 20 "$out/build.txt"; exit 1; }
fi

failed=0
# show NAME SECONDS COMMAND...: its output on the screen and in a file; a failure does not stop what follows.
show() {
  local name=$1 limit=$2 left=$((deadline - SECONDS)) status
  shift 2
  echo "== $name"
  [ "$left" -gt 5 ] || { echo "left out: the 9 minutes are over"; failed=1; return; }
  timeout "$((limit < left ? limit : left))" bash -c '"$@"' show "$@" 2>&1 | tee "$out/$name.txt" | tail -n 60
  status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || { echo "ended with $status"; failed=1; }
}

versions() {
  date -u
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  "$pack/train_lenet" --version
  nvcc --version 2>/dev/null | tail -n 2
  python3 -c 'import torch; print("torch", torch.__version__)' 2>/dev/null || echo "no PyTorch"
}

train() {
  local data=(--data digits)
  [ ! -d "${TERN_TEST_DATA:-}/mnist" ] || data=(--data mnist --data-dir "$TERN_TEST_DATA/mnist")
  "$pack/train_lenet" "${data[@]}" --lr 0.01 --log "$out/$1.jsonl" --device "${@:2}"
}
losses() { sed -n 's/.*"event":"step".*"loss":\([^,]*\),.*/\1/p' "$out/$1.jsonl"; }

# Steps as a CUDA graph give the losses of operations one by one, bit for bit.
as_graph() {
  train graph cuda --iterations 200 --deterministic
  train one-by-one cuda --iterations 200 --deterministic --no-cuda-graph
  diff <(losses graph) <(losses one-by-one) >/dev/null && [ "$(losses graph | wc -l)" = 200 ] &&
    echo "the same 200 losses"
}

# The first 20 losses within 1e-3 of the CPU's, the mean over 100 steps within 5 %.
as_cpu() {
  train lenet-cuda-fp32 cuda --iterations 100 --deterministic
  train lenet-cpu cpu --iterations 100
  paste <(losses lenet-cpu) <(losses lenet-cuda-fp32) | awk '
    function apart(a, b) { return (a > b ? a - b : b - a) / a }
    { cpu += $1; cuda += $2; if (NR <= 20 && apart($1, $2) > most) most = apart($1, $2) }
    END { printf "first 20 losses apart by %.2g at most, means over %d by %.2g\n", most, NR, apart(cpu, cuda)
          exit !(NR == 100 && most < 1e-3 && apart(cpu, cuda) < 0.05) }'
}
# tern's step as a graph over PyTorch's best, for every network and precision that both have.
ratios() {
  awk '{ row = substr($0, 1, 34) }
       $0 !~ /(fp32|tf32|bf16) / { next }
       FILENAME ~ /steps/ { tern[row] = substr($0, 35) + 0; next }
       { for (i = NF; $i !~ /^(fp32|tf32|bf16)$/; --i)
           if ($i + 0 > 0 && (!(row in torch) || $i + 0 < torch[row])) torch[row] = $i + 0
         if (!seen[row]++) rows[++count] = row }
       END { for (i = 1; i <= count; ++i)
               if (rows[i] in torch && rows[i] in tern) printf "%s %8.2f\n", rows[i], tern[rows[i]] / torch[rows[i]] }' \
    "$out/steps.txt" "$out/torch.txt"
}
export -f versions train losses as_graph as_cpu ratios
export pack out
# Engines are timed anew, and remembered for the runs that follow.
export TERN_CACHE=$out/cache

show versions 30 versions
show memory 60 "$pack/core_test" --gtest_filter='CudaMemory*:Device*'
show parity 150 "$pack/kernels_test" --gtest_brief=1 --gtest_filter='*CudaParity*:Cuda*:*Cudnn*:Coverage*'
show nccl 60 "$pack/dist_test" --gtest_filter='Nccl*:*Cuda*'
show lenet-cuda 60 train lenet-cuda cuda --iterations 1000
show lenet-cuda-tf32 60 train lenet-cuda-tf32 cuda --iterations 1000 --precision tf32
show lenet-cuda-bf16 60 train lenet-cuda-bf16 cuda --iterations 1000 --precision bf16
show lenet-nccl 60 train lenet-nccl cuda --iterations 100 --workers 1 --transport nccl
show profile 60 train lenet-cuda-profile cuda --iterations 200 --profile
show as-graph 60 as_graph
show as-cpu 120 as_cpu
show steps 150 "$pack/steps"
show bandwidth 60 "$pack/bandwidth"
if python3 -c 'import torch' 2>/dev/null; then
  show torch 300 python3 tests/gpu/torch_steps.py $((deadline - SECONDS - 105))
  show ratios 5 ratios
fi
# Whatever comes of it: NCCL does not promise this.
result=$failed
show nccl-pair 60 env TERN_TEST_NCCL_PAIR=1 "$pack/dist_test" --gtest_filter='NcclPair.*'
failed=$result
[ "$failed" = 0 ] && echo "all of it ran" || echo "something failed, see above"
exit "$failed"
