# Doxygen reads the pages through this filter. In a page, a link names a file and one of its headings. In Doxygen, it
# names an anchor, and all pages share one set of anchors. So `training.md#exit-codes` becomes `training-exit-codes`.
function page(path) {
  sub(/.*\//, "", path)
  sub(/\.md$/, "", path)
  return tolower(path)
}

/^```/ { in_code = !in_code }

!in_code && /^# / { $0 = $0 " {#" page(FILENAME) "}" }

!in_code && /^##+ / {
  anchor = tolower($0)
  sub(/^#+ /, "", anchor)
  gsub(/[^a-z0-9_ -]/, "", anchor)
  gsub(/ /, "-", anchor)
  $0 = $0 " {#" page(FILENAME) "-" anchor "}"
}

!in_code {
  gsub(/\[LICENSE\]\(LICENSE\)/, "LICENSE")
  while (match($0, /\]\([A-Za-z.\/]*(\.md|#[a-z0-9_-]+)\)/)) {
    split(substr($0, RSTART + 2, RLENGTH - 3), link, "#")
    name = page(link[1] == "" ? FILENAME : link[1]) (link[2] == "" ? "" : "-" link[2])
    $0 = substr($0, 1, RSTART - 1) "](@ref " name ")" substr($0, RSTART + RLENGTH)
  }
}

{ print }
