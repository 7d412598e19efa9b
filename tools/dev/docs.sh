# shellcheck shell=bash
# docs: guide, design notes, manual and API reference as one folder of HTML.

docs_home=$LRUN_CACHE/docs  # a Python that draws the pictures

# need_docs_python: returns 1, and says why, where it cannot be made; pictures are shown as text then.
need_docs_python() {
  if ! cmp -s tools/docs/requirements.txt "$docs_home/requirements.txt"; then
    python3 -c 'import ensurepip, venv' 2> /dev/null || need_packages python3 python3-venv
    stage "fetching what draws Mermaid's pictures into $docs_home (8 MB)"
    { python3 -m venv --clear "$docs_home" &&
      "$docs_home/bin/pip" install --quiet --no-deps -r tools/docs/requirements.txt &&
      cp tools/docs/requirements.txt "$docs_home/"; } || { note "pictures stay text: fetching failed"; return 1; }
  fi
  export LRUN_DOCS_PYTHON=$docs_home/bin/python
}

dev_docs() {
  need_packages "${docs_packages[@]}" python3
  need_docs_python || true  # it says why
  stage "making build/docs"
  tools/docs/build.sh build/docs
  note "build/docs/index.html"
}
