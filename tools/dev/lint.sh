# shellcheck shell=bash
# lint: what decides about style, so that nobody has to.

# The files of a kind that git knows or would take: sources FILE-PATTERN...
sources() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

# A finding depends on the unit, on everything it includes and on the rules: a unit whose digest was clean before is
# clean. The digests lie in the cache, one empty file each, so that a clean clone does not start anew.
tidy_one() {
  local unit=$1 digest
  digest=$(ccache_free_preprocess "$unit" | cat - .clang-tidy | sha256sum | cut -c1-40) || return 1
  [ ! -e "$tidy_clean/$digest" ] || return 0
  clang-tidy --quiet -p build/lint --checks=-bugprone-suspicious-include --extra-arg=-Wno-unknown-pragmas \
    --extra-arg=-Wno-ignored-attributes --extra-arg=-Wno-unknown-warning-option "$unit" 2> /dev/null || return 1
  : > "$tidy_clean/$digest"
}

# The unit as the compiler sees it. The command of the compilation database, with -E and without launcher and output.
ccache_free_preprocess() {
  local command
  command=$(python3 - "$1" <<'PYTHON'
import json, os, shlex, sys
for entry in json.load(open("build/lint/compile_commands.json")):
    if os.path.realpath(entry["file"]) == os.path.realpath(sys.argv[1]):
        words = shlex.split(entry["command"])
        words = [w for w in words if not w.endswith("ccache")]
        at = words.index("-o")
        del words[at:at + 2]
        words[words.index("-c")] = "-E"
        print(shlex.join(words + ["-P"]))
        break
PYTHON
  )
  [ -n "$command" ] || return 1
  (cd build/lint && eval "$command")
}

# It spends its time on what units include, and up to 16 files are one unit here (which include sources: no finding).
lint_tidy() {
  stage "clang-tidy (units unchanged since they were clean are skipped)"
  export tidy_clean=$LRUN_CACHE/tidy
  mkdir -p "$tidy_clean" build/lint
  cmake --preset lint > build/lint/configure.log 2>&1 || { cat build/lint/configure.log; return 1; }
  export -f tidy_one ccache_free_preprocess
  local units
  mapfile -t units < <(compiled_units "$@")
  printf '%s\n' "${units[@]}" | xargs -r -P "$(jobs)" -I{} bash -c 'tidy_one "$1"' _ {}
}

# The units with the named files (none: all), the largest first; headers are looked at through them.
compiled_units() {
  python3 - "$@" <<'PYTHON'
import json, os, re, sys
wanted = {os.path.realpath(f) for f in sys.argv[1:]}
here = os.getcwd() + os.sep
files = {}
for entry in json.load(open("build/lint/compile_commands.json")):
    unit = entry["file"]
    inside = [unit]
    if "/Unity/unity_" in unit:
        inside = re.findall(r'^#include "(.*)"', open(unit).read(), re.M)
    inside = [f for f in map(os.path.realpath, inside) if f.startswith(here) and not f.startswith(here + "build")]
    if inside and (not wanted or wanted.intersection(inside)):
        files[os.path.realpath(unit)[len(here):]] = len(inside)
print("\n".join(sorted(files, key=lambda unit: (-files[unit], unit))))
PYTHON
}

lint_shell() {
  local scripts
  mapfile -t scripts < <(sources '*.sh' .ci/run completions/lrun.bash | grep -v '^tools/dev/')
  shellcheck -x dev "${scripts[@]}"
}

lint_man() {
  local pages
  mapfile -t pages < <(sources 'man/*.1')
  [ ${#pages[@]} -eq 0 ] || mandoc -T lint -W warning "${pages[@]}"
}

# What takes seconds: everything but clang-tidy. Of the named files, or of all.
lint_layout() {
  local bad=0 code
  stage "clang-format"
  mapfile -t code < <(sources '*.cc' '*.h')
  [ $# -eq 0 ] || code=("$@")
  tests/style/format.sh . "${code[@]}" || bad=1
  stage "shellcheck, mandoc"
  lint_shell || bad=1
  lint_man || bad=1
  return $bad
}

dev_lint() {
  need_packages "${build_packages[@]}" "${test_packages[@]}" "${check_packages[@]}"
  need_libtorch
  local bad=0
  lint_layout "$@" || bad=1
  lint_tidy "$@" || bad=1
  [ $bad -eq 0 ] || fail "lint found something" "clang-format -i FILE fixes the layout"
}
