#!/usr/bin/env bash
# Tests ./dev on machines that lack packages, with fake tools on the PATH. It tests the messages, whom ./dev asks, and
# when it stops.
source "$(dirname -- "$0")/expect.sh"

# A machine with only the basic tools, and a git that lists a file. `./dev format` lacks the package `clang-format`.
tools=$scratch/tools
mkdir "$tools"
for tool in bash basename cat cp dirname env grep mktemp paste readlink rm tail true; do ln -s "$(type -P $tool)" "$tools"; done
stand_in() { printf '#!%s\n%s\n' "$(command -v bash)" "$2" >"$tools/$1" && chmod +x "$tools/$1"; }
stand_in git 'echo core/tensor.h'
machine() { env -i HOME="$scratch" PATH="$tools" "$dev" "$@"; }

stand_in id 'echo 0'
run 2 machine format --check
says "no apt-get to install them: clang-format"

stand_in apt-get "echo \"apt-get \$*\" >>'$scratch/calls'; case \$* in *install*) cp '$tools/true' '$tools/clang-format' ;; esac"
run 0 machine format --check
says "installing: clang-format"
output=$(<"$scratch/calls")
says "update"
says "install --no-install-recommends clang-format"

stand_in git 'exit 128'
run 128 machine format --check
stand_in git true
run 2 machine format --check
says "git lists no source files here"
stand_in git 'echo core/tensor.h'

: >"$scratch/calls"
run 0 machine format --check
[ ! -s "$scratch/calls" ] || fail "a second call installed again"

rm "$tools/clang-format"
stand_in id 'echo 1000'
run 2 machine format --check
says "needs root. Ask for: apt-get install --no-install-recommends clang-format"
[ ! -s "$scratch/calls" ] || fail "apt-get was called without root"

stand_in sudo 'exit 1'
run 2 machine format --check
says "sudo was refused. Ask for: apt-get install --no-install-recommends clang-format"

stand_in sudo "echo sudo >>'$scratch/calls'; exec \"\$@\""
run 0 machine format --check
output=$(<"$scratch/calls")
says "sudo
apt-get"

rm "$tools/clang-format"
stand_in apt-get 'echo "Could not resolve deb.example.org" >&2; exit 100'
run 2 machine format --check
says "Could not resolve deb.example.org"
says "apt-get failed, see above. To try by hand: apt-get install --no-install-recommends clang-format"

# If dpkg knows a package, it is not installed again. ./dev finds libraries by package and tools by name.
for tool in c++ cmake ninja; do cp "$tools/true" "$tools/$tool"; done
# shellcheck disable=SC2016
stand_in dpkg-query 'for name in "$@"; do [ "$name" = zlib1g-dev ] || echo "installed $name"; done; exit 1'
run 2 machine build
says "installing: zlib1g-dev"
says_not libfmt-dev

# Packages for Arm: apt-get works in folders of the build, without root. This machine's packages stay as they are.
for tool in aarch64-linux-gnu-g++ qemu-aarch64 dpkg-deb; do cp "$tools/true" "$tools/$tool"; done
ln -s "$(type -P mkdir)" "$tools"
cp "$dev" "$scratch/dev"
stand_in id 'echo 1000'
stand_in apt-get "echo \"\$*\" >>'$scratch/calls'; echo 'Could not resolve deb.example.org' >&2; exit 100"
: >"$scratch/calls"
dev=$scratch/dev run 2 machine cross-test
says "Could not resolve deb.example.org"
says "apt-get could not download the arm64 packages"
output=$(<"$scratch/calls")
says "Dir::State=$scratch/build-aarch64/apt"
says "APT::Architecture=arm64"
says_not install
