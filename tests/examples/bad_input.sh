#!/usr/bin/env bash
# Missing and torn files and bad options are one line and an exit code, before any training.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
source_data=/usr/share/datasets/fashion-mnist

# refused CODE TEXT OPTIONS...
refused() {
  local code=0 expected=$1 text=$2
  shift 2
  "$FASHION_MNIST" --epochs 1 --limit 100 "$@" > "$work/out" 2> "$work/err" || code=$?
  [ "$code" -eq "$expected" ] || fail "exit code $code, not $expected" "$work/err"
  [ ! -s "$work/out" ] || fail "it began to train" "$work/out"
  [ "$(cat "$work/err")" = "fashion_mnist: error: $text" ] || fail "not the line: $text" "$work/err"
}

# A folder with the real files, of which one is replaced by the first COUNT bytes: cut NAME COUNT
cut_file() {
  rm -rf "$work/data" && mkdir "$work/data"
  ln -s "$source_data"/* "$work/data/"
  rm "$work/data/$1"
  head -c "$2" "$source_data/$1" > "$work/data/$1"
}

refused 1 "no file '$work/none/train-images-idx3-ubyte.gz': install the package 'dataset-fashion-mnist', or name the \
folder that has it with --data" --data "$work/none"

cut_file train-images-idx3-ubyte.gz 1000000
refused 1 "'$work/data/train-images-idx3-ubyte.gz' is cut off: its compressed data ends too early" --data "$work/data"

cut_file t10k-labels-idx1-ubyte.gz 0
refused 1 "'$work/data/t10k-labels-idx1-ubyte.gz' ends within its header: 0 of 8 bytes" --data "$work/data"

cut_file train-labels-idx1-ubyte.gz 100
gzip -dc "$source_data/train-labels-idx1-ubyte.gz" | head -c 5008 > "$work/data/train-labels-idx1-ubyte" || true
refused 1 "'$work/data/train-labels-idx1-ubyte' is cut off: its header promises more than the 5000 bytes that follow it" \
  --data "$work/data"

refused 2 "unknown option '--epoch' (-h shows all)" --epoch 3
refused 2 "bad value '0' of --batch-size: a whole number of at least 1" --batch-size 0

printf 'lrunckpt torn' > "$work/c"
refused 1 "checkpoint '$work/c' cannot be used: it ends within its header: 13 of 64 bytes" --checkpoint "$work/c" --resume

"$FASHION_MNIST" -h > "$work/out" || fail "-h: exit code $?" "$work/out"
grep -q -- '--checkpoint FILE' "$work/out" || fail "-h does not name the options" "$work/out"
