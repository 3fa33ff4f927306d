# shellcheck shell=bash disable=SC2015,SC2154
# The parts of run.sh. run.sh sources this file, and runs each part in its own process in the repository's root. Exit
# code 77 means skipped; the last line then says why. $pack contains the programs. $files is a folder for rows and logs
# that come back.

# NAME SECONDS NEEDS WHAT. NEEDS is nothing, gpu, torch (PyTorch and a GPU) or cpu-torch.
default_parts() {
  cat <<'END'
versions 15 nothing the driver, libraries and tools of this machine
plans 30 nothing cuDNN's plans for an H200, which need none
parity 60 gpu kernels beside the reference in double precision, without convolutions and products
engine-parity 90 gpu convolutions and products beside the reference in double precision
programs 150 gpu tests of memory, autograd, codec messages, methods, recorded steps and failures
as-cpu 20 gpu LeNet's losses beside those of a CPU build
as-graph 60 gpu recorded steps of ResNet-20 and AlexNet give what operations one by one give
steps 150 gpu training steps of five networks, as a CUDA graph and one by one
torch 110 torch PyTorch's steps: eager, as a CUDA graph, and compiled as many as fit
beside 10 nothing both in one table, and tern over PyTorch's best
codecs 30 gpu GB/s of every codec kernel beside a device copy
accuracy 60 gpu LeNet learns digits in three precisions, ResNet-20 shapes
ranks 40 gpu two ranks on this GPU over sockets, ternary and QSGD
engines 20 gpu cuDNN's engines: chosen, remembered, read by a second run
sanitizer 60 gpu compute-sanitizer's racecheck, memcheck and synccheck on kernels' tests
END
}
more_parts() {
  cat <<'END'
steps-lenet 540 torch one network: tern before and after PyTorch in all ways
steps-cifarnet 540 torch the same
steps-resnet20 540 torch the same
steps-resnet18 540 torch the same
steps-alexnet 540 torch the same
bandwidth 60 gpu GB/s of kernels that move memory beside a device copy
profile 60 gpu times and calls of the operations of LeNet and ResNet-20
nccl 60 gpu NCCL with one rank
nccl-pair 60 gpu NCCL with two ranks on one GPU, which NCCL does not promise
torch-check 300 cpu-torch torch_steps.py's networks on the CPU, and their numbers of parameters
END
}

# Runs one of tern's programs. Only tern's programs see the packed libraries.
tern() { LD_LIBRARY_PATH=$libraries OMP_WAIT_POLICY=PASSIVE "$@"; }
# tests PROGRAM FILTER: also fails if tests skip because the device cannot be used.
tests() {
  tern "$pack/tests/$1" --gtest_filter="$2" | tee "$files/$1.log"
  [ "${PIPESTATUS[0]}" = 0 ] && ran_tests "$files/$1.log"
}
# Whether a log has tests that passed, and none that skipped because of the device.
ran_tests() { grep -q 'PASSED  \] [1-9]' "$1" && ! grep -q '^device cuda:0: ' "$1"; }
skip() {
  echo "$1"
  exit 77
}
# train LOG PROGRAM FLAGS...: trains on the GPU.
train() { tern "$pack/apps/$2" --log "$files/$1.jsonl" --device cuda "${@:3}"; }
# losses prints the losses of a log's steps. course prints all its results, without times.
losses() { sed -n 's/.*"event":"step".*"loss":\([^,]*\),.*/\1/p' "$1"; }
course() { grep -E '"event":"(step|eval)"' "$1" | grep -Eo '"(step|loss|accuracy)":[^,}]*'; }
# reaches LOG PERCENT: expects this accuracy at the end.
reaches() {
  sed -n 's/.*"event":"done","accuracy":\([^,]*\),.*/\1/p' "$files/$1.jsonl" | awk -v name="$1" -v bar="$2" '
    { printf "%s: accuracy %.2f %%, expected %s %% or more\n", name, 100 * $1, bar; reached = 100 * $1 >= bar }
    END { exit !reached }'
}

part_versions() {
  date -u
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "$no_gpu"
  tern "$pack/apps/train_lenet" --version || return
  nvcc --version 2>/dev/null | tail -n 2
  python3 -c 'from importlib.metadata import version; print("torch", version("torch"))' 2>/dev/null || echo "no PyTorch"
  echo "compute-sanitizer: $(find_sanitizer || echo none)"
}
part_plans() { tests kernels_test 'Cudnn*:*/Cudnn*:Coverage*'; }

engine_kernels='*CudaParity*/conv2d*:*CudaParity*/matmul*:*CudaParity*/linear*'
part_parity() { tests kernels_test "*CudaParity*:Cuda*-$engine_kernels"; }
part_engine_parity() { tests kernels_test "$engine_kernels"; }
part_programs() {
  local failed=0 folder
  tests core_test 'CudaMemory*:Device*' || failed=1
  for folder in autograd layers optim; do tests "${folder}_test" '*Cuda*' || failed=1; done
  tests dist_test '*Cuda*-*Nccl*:*Slow*' || failed=1
  tests apps_test '*Cuda*-*Slow*' || failed=1  # the last, because it starts many processes
  return "$failed"
}

part_steps() { tern "$pack/tests/gpu/steps" | tee "$files/tern.rows"; }
# The script ends by itself before the limit of the part.
part_torch() { torch 100 all; }
part_beside() {
  [ -s "$files/tern.rows" ] && [ -s "$files/all-torch.rows" ] || skip "there are no rows of both in this run"
  python3 tests/gpu/beside.py "$files/tern.rows" "$files/all-torch.rows"
}
# torch SECONDS NAME NETWORK...: also writes the rows to the file NAME-torch.rows. The output of compilers goes to a
# file.
torch() {
  python3 tests/gpu/torch_steps.py --seconds "$1" "${@:3}" 2>"$files/$2-torch-stderr.txt" | tee "$files/$2-torch.rows" ||
    { tail -n 5 "$files/$2-torch-stderr.txt" && return 1; }
}
part_steps_lenet() { steps_of lenet; }
part_steps_cifarnet() { steps_of cifarnet; }
part_steps_resnet20() { steps_of resnet20; }
part_steps_resnet18() { steps_of resnet18; }
part_steps_alexnet() { steps_of alexnet; }
steps_of() {
  tern "$pack/tests/gpu/steps" "$1" | tee "$files/$1-before.rows" && torch 420 "$1" "$1" &&
    tern "$pack/tests/gpu/steps" "$1" | tee "$files/$1-after.rows" &&
    python3 tests/gpu/beside.py "$files/$1"-{before,torch,after}.rows
}

part_codecs() { tern "$pack/tests/gpu/bandwidth" codecs; }
part_bandwidth() { tern "$pack/tests/gpu/bandwidth" kernels; }

find_sanitizer() {
  command -v compute-sanitizer || compgen -G '/usr/local/cuda*/bin/compute-sanitizer' | head -n 1 | grep .
}
# sanitize TOOL SECONDS FILTER FLAGS...: runs the kernels' tests under the tool.
sanitize() {
  local status found
  echo "-- $1, at most $2 s: $3"
  timeout -k 2 "$2" "$(find_sanitizer)" --tool "$1" --error-exitcode 9 --target-processes all "${@:4}" \
    env LD_LIBRARY_PATH="$libraries" "$pack/tests/kernels_test" --gtest_filter="$3" >"$files/$1.txt" 2>&1
  status=$?
  tail -n 5 "$files/$1.txt"
  if [ "$status" = 124 ] || [ "$status" = 137 ]; then
    found=$(grep -Em 1 '^=+ (Invalid|Misaligned|Error|Warning|Barrier)' "$files/$1.txt")
    echo "$1: ran out of its $2 s; until then $(grep -c '^\[       OK' "$files/$1.txt") tests passed, and it found" \
      "${found:-nothing}"
    [ -z "$found" ] && grep -q '^\[       OK' "$files/$1.txt"
    return
  fi
  grep -q SUMMARY "$files/$1.txt" ||
    skip "compute-sanitizer does not work here: $(grep -im 1 error "$files/$1.txt" || tail -n 1 "$files/$1.txt")"
  ran_tests "$files/$1.txt" || { echo "$1: no test ran on the device" && return 1; }
  return "$status"
}
# racecheck and synccheck run only the sums within blocks (summation.h, bucket_sums.cu).
part_sanitizer() {
  local failed=0 sums='*CudaParity*/sum:*CudaParity*/mse:*CudaParity*/batch_norm_*:*CudaParity*/gradient_statistics'
  sums+=':*CudaParity*/norm_quantize:CudaStatistics*'
  find_sanitizer >/dev/null || skip "there is no compute-sanitizer on this machine"
  sanitize racecheck 22 "$sums" || failed=1
  # Some tests make calls that CUDA refuses. These are not errors of a kernel.
  sanitize memcheck 17 "*CudaParity*:Cuda*-$engine_kernels" --report-api-errors no || failed=1
  sanitize synccheck 9 "$sums" || failed=1
  return "$failed"
}

# run.sh --pack runs the CPU with the same flags.
lenet_beside_cpu=(--data digits --lr 0.01 --iterations 100)
part_as_cpu() {
  [ -e "$pack/lenet-cpu.jsonl" ] || skip "build-gpu/ was built here, without the losses of a CPU build"
  train lenet-cuda train_lenet "${lenet_beside_cpu[@]}" --deterministic --quiet || return
  paste <(losses "$pack/lenet-cpu.jsonl") <(losses "$files/lenet-cuda.jsonl") | awk '
    function apart(a, b) { return (a > b ? a - b : b - a) / a }
    { cpu += $1; cuda += $2; d = apart($1, $2); if (NR <= 20 && d > first) first = d; if (d > most) most = d }
    END { printf "%d losses beside those of the CPU: ", NR
          printf "the first 20 apart by %.2g of them at most, expected below 0.001; ", first
          printf "their means by %.2g, expected below 0.05; any one by %.2g at most\n", apart(cpu, cuda), most
          exit !(NR == 100 && first < 1e-3 && apart(cpu, cuda) < 0.05) }'
}

part_accuracy() {
  local failed=0 precision
  for precision in fp32 tf32 bf16; do
    train "lenet-$precision" train_lenet --data digits --precision "$precision" --quiet && reaches "lenet-$precision" 99 ||
      failed=1
  done
  train resnet20 train_resnet --data shapes --precision bf16 --batch-size 64 --iterations 1500 --lr-schedule cosine \
    --quiet && losses "$files/resnet20.jsonl" | awk '
      NR <= 100 { first += $1 / 100 } NR > 1400 { last += $1 / 100 }
      END { printf "resnet20 on shapes: mean loss of the first 100 steps %.3f, of the last %.3f, ", first, last
            print "expected half of it or less"
            exit !(NR == 1500 && last <= first / 2) }' || failed=1
  return "$failed"
}

# as_graph NAME PROGRAM FLAGS...: expects that recorded steps give the same results, bit for bit.
as_graph() {
  train "$1-graph" "${@:2}" --deterministic --quiet || return
  train "$1-one-by-one" "${@:2}" --deterministic --quiet --no-cuda-graph || return
  if grep 'steps run operation by operation' "$files/$1-graph.jsonl"; then
    echo "$1: its steps were not recorded, see the note above"
    return 1
  fi
  diff <(course "$files/$1-graph.jsonl") <(course "$files/$1-one-by-one.jsonl") | head -n 6
  [ "${PIPESTATUS[0]}" = 0 ] && echo "$1: the same $(losses "$files/$1-graph.jsonl" | wc -l) losses, and the same evaluation"
}
part_as_graph() {
  local failed=0
  as_graph resnet20-ema train_resnet --data shapes --iterations 40 --batch-size 64 --ema-decay 0.99 || failed=1
  as_graph alexnet-dropout train_alexnet --data shapes224 --iterations 12 --batch-size 32 || failed=1
  return "$failed"
}

part_ranks() {
  local failed=0 codec
  for codec in ternary qsgd:bits=4,bucket=512; do
    train "ranks-${codec%%:*}" train_lenet --data digits --workers 2 --transport socket --codec "$codec" --iterations 400 |
      tail -n 8 && reaches "ranks-${codec%%:*}" 98 || failed=1
  done
  return "$failed"
}

# A run that finds all its engines in the file does not write a new file.
part_engines() {
  local run before after
  export TERN_CACHE=$files/engines
  for run in first second; do
    before=$(stat -c %i "$TERN_CACHE"/engines-*.txt 2>/dev/null)
    train "engines-$run" train_resnet --data shapes --batch-size 64 --iterations 20 --quiet || return
    after=$(stat -c %i "$TERN_CACHE"/engines-*.txt) || return
    echo "$run run: $(cat "$TERN_CACHE"/engines-*.txt | wc -l) engines in the file, first step after" \
      "$(sed -n 's/.*"event":"step","step":1,.*"seconds":\([^,}]*\).*/\1/p' "$files/engines-$run.jsonl") s"
  done
  cat "$TERN_CACHE"/engines-*.txt
  [ "$before" = "$after" ] || { echo "the second run wrote the file anew" && return 1; }
}

part_profile() {
  train lenet-profile train_lenet --data digits --iterations 200 --profile &&
    train resnet20-profile train_resnet --data shapes --iterations 100 --batch-size 128 --profile
}
part_nccl() {
  tests dist_test 'Nccl*:*NcclCudaOne*' &&
    train lenet-nccl train_lenet --data digits --iterations 100 --workers 1 --transport nccl
}
part_nccl_pair() { TERN_TEST_NCCL_PAIR=1 tests dist_test 'NcclPair.*'; }
part_torch_check() { python3 tests/gpu/torch_steps.py --check; }
