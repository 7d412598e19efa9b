# shellcheck shell=bash
# Shared by all commands of ./dev: messages, the cache, how many jobs. Sourced with the repository as working directory.
# shellcheck disable=SC2154 # root is set by ./dev
: "${LRUN_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/lrun}"
export LRUN_CACHE
libtorch_home=$LRUN_CACHE/libtorch-2.11.0

# Clones in different folders share compiled objects: ccache sees paths relative to the clone.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

# fail MESSAGE [HINT]: one error, one way out.
fail() {
  printf 'dev: error: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf 'dev: hint: %s\n' "$2" >&2
  exit 1
}

note() { printf 'dev: %s\n' "$*"; }

# stage TITLE: says what comes, with the time since the start.
stage() { printf '\n== %s  [%d:%02d]\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# A unit that sees LibTorch takes 1.5 GB of memory to compile.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo "${LRUN_JOBS:-$((cores < memory ? cores : memory))}"
}

# Most tests wait for processes: three of them keep a core busy. One that computes takes a core:
# LRUN_PROCESSORS_OF_A_CORE of tests/CMakeLists.txt, the same 3.
test_jobs() { echo $((3 * $(jobs))); }

have() { command -v "$1" > /dev/null 2>&1; }
