# shellcheck shell=bash
# What the machine must have: Debian packages, LibTorch in the cache. Touches nothing that is already there.

is_debian_12() { grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; }

# Its default Boost and clang runtime have other names than later releases'.
if is_debian_12; then
  boost_packages=(libboost1.81-dev)
  clang_runtime=libclang-rt-14-dev
else
  boost_packages=(libboost-dev)
  clang_runtime=libclang-rt-dev
fi
build_packages=(g++ cmake ninja-build ccache pkg-config "${boost_packages[@]}" libcli11-dev libspdlog-dev libfmt-dev
  nlohmann-json3-dev libtomlplusplus-dev zlib1g-dev libgloo-dev libssl-dev)
test_packages=(libgtest-dev libgmock-dev python3 python3-yaml openssl dataset-fashion-mnist mandoc universal-ctags bash-completion zsh
  fish)
docs_packages=(cmark-gfm doxygen mandoc)
check_packages=(clang clang-format clang-tidy "$clang_runtime" shellcheck python3-venv "${docs_packages[@]}")
libtorch_wheels=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)

# missing_packages PACKAGE...: those that dpkg does not have.
missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null)" = installed ] || echo "$package"
  done
}

# need_packages PACKAGE...: installs what is missing, or says what is.
need_packages() {
  [ -z "${LRUN_SKIP_PACKAGES:-}" ] || return 0
  if ! have dpkg-query || ! have apt-get; then
    fail "this system has no apt; lrun is built with: $*" "install what corresponds, then set LRUN_SKIP_PACKAGES=1"
  fi
  local missing sudo=()
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    have sudo || fail "packages are missing: ${missing[*]}" "as root: apt-get install ${missing[*]}"
    sudo=(sudo)
  fi
  stage "installing ${#missing[@]} packages with apt: ${missing[*]}"
  "${sudo[@]}" apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# may_have_lab COMMAND: the tests' lab (tests/lab) makes hosts of namespaces, which only root may. COMMAND needs it.
may_have_lab() {
  [ "$(id -u)" -ne 0 ] || return 0
  note "left out, as the lab needs root; this runs it: sudo $1"
  return 1
}

# The lab starts Slurm, sshd and etcd on its hosts. Debian asks policy-rc.d whether to start them on this machine, too.
need_lab_packages() {
  local wanted missing policy=/usr/sbin/policy-rc.d
  mapfile -t wanted < <(tests/lab/lab packages)
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  if [ ${#missing[@]} -eq 0 ] || [ -e "$policy" ]; then
    need_packages "${wanted[@]}"
    return 0
  fi
  (
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT  # bash may have forgotten local variables by then
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
    need_packages "${wanted[@]}"
  )
}

libtorch_is_there() { [ -n "${LRUN_LIBTORCH:-}" ] || [ -f "$libtorch_home/torch/lib/libtorch_cpu.so" ]; }

# need_libtorch: LibTorch as PyPI's wheels have it, unpacked beside each other. The folder appears whole or not at all,
# and two clones that want it at once wait for each other.
need_libtorch() {
  ! libtorch_is_there || return 0
  [ "$(uname -m)" = x86_64 ] || fail "LibTorch's wheel is fetched for x86_64 only, this is $(uname -m)" \
    "set LRUN_LIBTORCH to a LibTorch of this machine"
  mkdir -p "$LRUN_CACHE"
  exec {lock}> "$LRUN_CACHE/.lock"
  flock "$lock"
  if ! libtorch_is_there; then
    fetch_libtorch
  fi
  exec {lock}>&-
}

fetch_libtorch() {
  stage "fetching LibTorch 2.11.0 into $libtorch_home: 545 MB, 1.3 GB on disk, a few minutes"
  fetch_wheels "$libtorch_home" "${libtorch_wheels[@]}"
}

# fetch_wheels FOLDER WHEEL...: unpacked beside each other. Of torch and CUDA, for LibTorch.
fetch_wheels() {
  local folder=$1 fresh source=()
  shift
  python3 -m pip --version > /dev/null 2>&1 || need_packages python3 python3-pip
  # Wheels that somebody put into the cache are taken from there.
  if [ -d "$LRUN_CACHE/wheels" ]; then
    source=(--find-links "$LRUN_CACHE/wheels")
    [ "$(find "$LRUN_CACHE/wheels" -name '*.whl' | wc -l)" -lt $# ] || source+=(--no-index)
  fi
  fresh=$(mktemp -d "$LRUN_CACHE/.libtorch.XXXXXX")
  # pip unpacks through TMPDIR: the cache has the room, /tmp may be memory.
  mkdir "$fresh/tmp"
  if ! TMPDIR=$fresh/tmp python3 -m pip install --quiet --no-deps --no-compile --no-cache-dir --only-binary=:all: \
    --python-version 3.11 --implementation cp --abi cp311 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 "${source[@]}" --target "$fresh/site" "$@"; then
    rm -rf "$fresh"
    fail "LibTorch could not be fetched" "check the network, or set LRUN_LIBTORCH to a LibTorch of version 2.11"
  fi
  chmod 755 "$fresh/site"
  mv -T "$fresh/site" "$folder"
  rm -rf "$fresh"
}
