#!/usr/bin/env bash
# Tests `./dev docs` on a copy of this project's headers and pages, if Doxygen is here.
source "$(dirname -- "$0")/expect.sh"

command -v doxygen >/dev/null || { echo "skipped: doxygen is not installed"; exit 77; }
root=$(dirname -- "$dev")
project="$scratch/a project"
mkdir "$project"
cp -r "$root"/{dev,CMakeLists.txt,README.md,CONTRIBUTING.md,CHANGELOG.md,docs,tern.h} "$project"
cp -r "$root"/{core,kernels,autograd,layers,optim,data,dist,apps} "$project"
dev=$project/dev

run 0 "$dev" docs
says "the API reference is $project/build/docs/html/index.html"
html=$project/build/docs/html
grep -q 'include &lt;.*tern/trainer/application.h' "$html/structtern_1_1Application.html" ||
  fail "Application shows another header"
grep -q 'href="extending.html#extending-a-codec"' "$html/training.html" || fail "training.md has no link to a codec"
[ ! -e "$html/frame_8h.html" ] || fail "dist/comm/tcp/frame.h is not installed, but it is in the reference"

echo 'See [the flags](training.md#no-such-part).' >>"$project/docs/data.md"
run 2 "$dev" docs
says "docs/data.md"
says "unable to resolve reference to 'training-no-such-part'"

cp "$root/docs/data.md" "$project/docs"
sed -i 's|^/// A dense array|/// See \\ref NoSuchClass. A dense array|' "$project/core/tensor.h"
run 2 "$dev" docs
says "tern/core/tensor.h"
says "unable to resolve reference to 'NoSuchClass'"
