#!/usr/bin/env bash
# Tests the verbs of ./dev on a copy of the script. Its project has one program, in a path with a space.
source "$(dirname -- "$0")/expect.sh"

project="$scratch/a project"
mkdir -p "$project/apps" "$project/data/sources" "$scratch/elsewhere"
cp "$dev" "$project/dev"
dev=$project/dev
cat >"$project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(toy LANGUAGES CXX)
add_subdirectory(apps)
END
cat >"$project/apps/CMakeLists.txt" <<'END'
add_executable(echo_app echo_app.cpp)
END
cat >"$project/apps/echo_app.cpp" <<'END'
#include <cstdio>
#include <csignal>
#include <cstdlib>
#include <unistd.h>
int main(int count, char** words) {
  for (int i = 1; i < count; ++i) std::printf("%s|", words[i]);
  if (count > 1 && words[1][0] == 'w') {
    std::signal(SIGINT, [](int) { _exit(130); });
    std::puts("ready");
    std::fflush(stdout);
    pause();
  }
  return count > 1 ? std::atoi(words[1]) : 0;
}
END
# On this machine every package is installed.
mkdir "$scratch/tools"
# shellcheck disable=SC2016
tool() { printf '#!%s\n%s\n' "$(type -P bash)" "$2" >"$scratch/tools/$1" && chmod +x "$scratch/tools/$1"; }
tool dpkg-query 'printf "installed %s\n" "$@"'
# It has the CUDA toolkit, but no driver yet.
tool nvcc true
tool nvidia-smi 'echo "NVIDIA-SMI has failed"; exit 9'
export PATH=$scratch/tools:$PATH

cd "$scratch/elsewhere"
run 2 "$dev" run
says "run one of: echo_app"
run 2 "$dev" run ../secret
says "there is no application '../secret'"
says "run one of: echo_app"
run 2 "$dev" dance
says "there is no verb 'dance'"
says "usage: ./dev VERB"
run 0 "$dev" help
says "applications: echo_app"
says "./dev run train_lenet --epochs"

run 0 "$dev" run echo_app
says "configuring $project/build without CUDA: no NVIDIA driver is loaded"
run 0 "$dev" run echo_app 0 "two words" '*' --flag
[ "$output" = '0|two words|*|--flag|' ] || fail "a second call: flags and nothing else"
run 7 "$dev" run echo_app 7
(cd "$project" && run 3 ./dev run echo_app 3)
ln -s "$dev" "$scratch/elsewhere/link"
run 0 "$scratch/elsewhere/link" run echo_app

started=$(date +%s%N)
run 0 "$dev" run echo_app
elapsed_ms=$((($(date +%s%N) - started) / 1000000))
[ "$elapsed_ms" -lt 2000 ] || fail "a second call took $elapsed_ms ms"

run 4 "$dev" run --cuda echo_app 4 --cuda
says "configuring $project/build with CUDA"
says "4|--cuda|"
grep -qxF TERN_CUDA:BOOL=ON "$project/build/CMakeCache.txt" || fail "TERN_CUDA is not set"
run 4 "$dev" run --cuda echo_app 4
[ "$output" = '4|' ] || fail "configured again"
rm -r "$project/build"
tool nvidia-smi 'printf "9.0\n8.0\n9.0\n"'
run 0 "$dev" run echo_app
says "configuring $project/build with CUDA for architecture 80;90"
# If the user did not ask for CUDA, ./dev builds without it after a failure.
sed -i 's/^add_sub.*/option(TERN_CUDA "" OFF)\nif(TERN_CUDA)\n  message(FATAL_ERROR "no cuDNN")\nendif()\n&/' "$project/CMakeLists.txt"
rm -r "$project/build"
run 0 "$dev" run echo_app
says "no cuDNN"
says "without CUDA, because the configuration with CUDA failed"
run 2 "$dev" run --cuda echo_app
says "the configuration failed, see above"
run 0 "$dev" run echo_app

# A signal reaches the application, because the application has replaced ./dev.
mkfifo "$scratch/words"
set -m
"$dev" run echo_app wait >"$scratch/words" &
job=$!
set +m
read -r output <"$scratch/words"
says ready
kill -INT "$job"
status=0
wait "$job" || status=$?
[ "$status" = 130 ] || fail "SIGINT gave $status, expected the application's 130"

mv "$project" "$scratch/moved"
run 5 "$scratch/moved/dev" run echo_app 5
says "configuring $scratch/moved/build"

echo 'int main() { return undeclared; }' >"$scratch/moved/apps/echo_app.cpp"
run 2 "$scratch/moved/dev" run echo_app
says undeclared
says "the build failed, see above"
