# shellcheck shell=bash
# What the tests of the examples share; each gets the built programs by name in its environment.
set -euo pipefail
export OMP_NUM_THREADS=1  # the same sums in the same order in every run, and no fight for the cores
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

work=$(mktemp -d)
cleanup() {
  local pid
  for pid in $(jobs -pr); do kill -KILL "$pid" 2> /dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

fail() {
  printf 'FAILED: %s\n' "$1" >&2
  shift
  local file
  for file in "$@"; do
    printf -- '--- %s\n' "$file" >&2
    cat "$file" >&2
  done
  exit 1
}

skip() {
  echo "skipped: $1"
  exit 77
}

# The first COUNT images of the real files for training and 1000 for the test: small_data COUNT DIR
small_data() {
  mkdir "$2"
  first_images train "$1" "$2"
  first_images t10k 1000 "$2"
}

# first_images PREFIX COUNT DIR
first_images() {
  local size
  size=$(printf '\\0\\0\\x%02x\\x%02x' $(($2 / 256)) $(($2 % 256)))
  {
    printf '\0\0\x08\x03%b' "$size"
    head -c $((8 + 784 * $2)) < <(unpacked "$1-images-idx3-ubyte")  # 8: rows and columns
  } > "$3/$1-images-idx3-ubyte"
  {
    printf '\0\0\x08\x01%b' "$size"
    head -c "$2" < <(unpacked "$1-labels-idx1-ubyte")
  } > "$3/$1-labels-idx1-ubyte"
}

# The bytes behind the number of images in a real file; the reader may stop early.
unpacked() { gzip -dc "/usr/share/datasets/fashion-mnist/$1.gz" 2> /dev/null | tail -c +9; }

# The two ranks of a program, started by hand as a launcher would: two_ranks OUT PROGRAM [ARGS...]
# Writes OUT.0 and OUT.1; fails when a rank does.
two_ranks() {
  local out=$1 port rank pids=()
  shift
  port=$("$FREE_PORT")
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      "$@" > "$out.$rank" 2>&1 &
    pids+=($!)
  done
  for rank in 0 1; do
    wait "${pids[$rank]}" || fail "rank $rank ended with $?" "$out.0" "$out.1"
  done
}

# The test accuracy in percent on the last line of a log; a launcher may have put a rank before it.
final_accuracy() {
  local line
  line=$(tail -n 1 "$1")
  [[ $line =~ final\ test\ accuracy:\ ([0-9.]+)\ %$ ]] || fail "the last line is no test accuracy" "$1"
  echo "${BASH_REMATCH[1]}"
}

# The training loss of an epoch in a log: loss_of EPOCH LOG
loss_of() { sed -nE "s/^(.*[^0-9 ])?\s*$1 +([0-9.]+) +[0-9.]+ % +[0-9]+\$/\2/p" "$2"; }

is_true() { awk "BEGIN { exit !($1) }"; }
