# shellcheck shell=bash
# soak packages: the packages of ./dev release, made twice; on older and newer systems, in an empty root, and on the other
# processor. Its figures are the table in build/packages.md, which bench/README.md has.

packages_table=build/packages.md

# figure WHAT GOAL MEASURED: a row of the table.
figure() {
  note "$1: $3"
  printf '| %s | %s | %s |\n' "$@" >> "$packages_table"
}

milliseconds_since() { echo $((($(date +%s%N) - $1) / 1000000)); }
megabytes_of() { stat -L -c %s "$1" | awk '{ printf "%.2f MB", $1 / 1e6 }'; }

soak_packages() {
  [ "$(id -u)" -eq 0 ] || fail "soak packages needs root (debootstrap, chroot)"
  need_packages debootstrap lintian qemu-user libc6-arm64-cross
  dev_release
  printf '| figure | goal | measured |\n|---|---|---|\n' > "$packages_table"
  wheel_is_small_and_quick
  wheel_launches_quickly
  runs_in_an_empty_root
  runs_on_debian
  runs_below_qemu
  release_is_repeatable
  stage "the figures, $packages_table"
  cat "$packages_table"
}

wheel_is_small_and_quick() {
  local work version wheel floor milliseconds of_wheel
  version=$(project_version)
  stage "the wheel, installed as docs/install.md says"
  figure "wheel for x86_64" "2 MB" "$(megabytes_of dist/lrun-*_x86_64.whl), $(newest_symbol GLIBC_ build/wheel/lrun)"
  figure "wheel for aarch64" "2 MB" "$(megabytes_of dist/lrun-*_aarch64.whl), $(newest_symbol GLIBC_ build/wheel-aarch64/lrun)"
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/lrun-wheel.XXXXXX")
  python3 -m venv "$work/venv"
  PATH=$work/venv/bin:$PATH \
    pip install dist/lrun-*-py3-none-manylinux_2_28_"$(uname -m)".whl
  sh tests/install/anywhere_test.sh "$work/venv/bin/lrun" "$version"
  wheel=$(ls dist/lrun-*-py3-none-manylinux_2_28_"$(uname -m)".whl)
  # The same wheel around a program of a few kilobytes: what pip itself takes.
  floor=$(python3 packaging/make.py wheel "$(type -P true)" 0 "manylinux_2_28_$(uname -m)" "$work")
  installed_by "$work/venv/bin/pip" install "$wheel"
  of_wheel=$milliseconds
  installed_by "$work/venv/bin/pip" install "$floor"
  figure "\`pip install\` of it, and of one without the program" "1 s" "$of_wheel, $milliseconds ms"
  "$work/venv/bin/pip" install --quiet uv pipx
  installed_by "$work/venv/bin/uv" pip install --python "$work/venv/bin/python" "$wheel"
  figure "\`uv pip install\` of it" "1 s" "$milliseconds ms"
  workers_run_in_the_right_python "$work"
  rm -rf "$work"
}

# installed_by COMMAND... WHEEL: sets milliseconds to what it takes, of seven times the median.
installed_by() {
  local began times=()
  for _ in 1 2 3 4 5 6 7; do
    "$work/venv/bin/pip" uninstall --quiet --yes lrun 2> "$work/log"
    began=$(date +%s%N)
    "$@" > "$work/log" 2>&1 || { cat "$work/log"; fail "it does not install: $*"; }
    times+=("$(milliseconds_since "$began")")
  done
  milliseconds=$(printf '%s\n' "${times[@]}" | sort -n | sed -n 4p)
}

# workers_run_in_the_right_python WORK: uv and pipx are in WORK/venv.
workers_run_in_the_right_python() {
  need_python_torch
  export_test_python
  mkdir "$1/bin"
  ln -s "$1/venv/bin/uv" "$1/venv/bin/uvx" "$1/venv/bin/pipx" "$1/bin"
  # shellcheck disable=SC2154 # root is set by dev
  PATH=$PATH:$1/bin LRUN_BESIDE_TORCHRUN=1 \
    bash tests/install/python_layouts_test.sh build/wheel/lrun "$root" "$(project_version)" "$1/layouts" | tee "$1/out"
  figure "workers run in the right Python, in layouts" "12" "$(grep -c ^ok: "$1/out"); torchrun's in $(grep -c 'torchrun: the same' "$1/out")"
}

# The limit programs are those of the benchmarks.
wheel_launches_quickly() {
  local line
  configure_and_build release lrun_limits
  stage "8 workers, beside the limit program"
  line=$(LRUN_BUILD=build/release python3 bench/launch_table.py -n 8 -k 25 \
    "limit=build/release/bench/limits/limit_launch {n} {c}" "lrun=build/wheel/lrun -n {n} {c}" | tee /dev/stderr | tail -1)
  figure "launch of 8 workers beside the limit, median and minimum" "1.6 ×" "$(awk '{ print $(NF - 1), "and", $NF }' <<< "${line//x/ }") ×"
}

# The Dockerfile's command makes the image: the archive, and of this machine's glibc what it needs.
runs_in_an_empty_root() {
  local work
  stage "the image of packaging/recipes/Dockerfile"
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/lrun-image.XXXXXX")
  cp dist/lrun-*-linux-"$(uname -m)".tar.gz "$work"
  sed -n '/^RUN /,/[^\\]$/p' packaging/recipes/Dockerfile | sed 's/^RUN //' > "$work/run.sh"
  (cd "$work" && sh run.sh)
  figure "image from scratch" "10 MB" "$(du -sb "$work/image" | awk '{ printf "%.1f MB", $1 / 1e6 }')"
  env -i PATH=/usr/local/bin HOME=/root LRUN_NO_CGROUP=1 "$(command -v chroot)" "$work/image" \
    lrun --devices 4 lrun --version > "$work/out"
  [ "$(grep -c "^\[[0-3]\] lrun $(project_version)\$" "$work/out")" -eq 4 ] || { cat "$work/out"; fail "lrun does not run in the image"; }
  figure "in that image, a root without /proc" "runs" "4 workers ran"
  rm -rf "$work"
}

# The library needs a newer glibc than bullseye's.
runs_on_debian() {
  stage "Debian's packages"
  lintian --allow-root --fail-on error dist/*.deb
  works_on bullseye lrun
  works_on bookworm lrun liblrun-dev
  works_on trixie lrun liblrun-dev
}

# works_on SUITE PACKAGE...: they are installed in a bare Debian, lrun is used, and nothing of them is left when they are purged.
# Then that Debian is a host of `-H --copy`, by a stand-in for ssh.
works_on() {
  local suite=$1 work package version of
  shift
  version=$(project_version)
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/lrun-$suite.XXXXXX")
  bare_debian "$suite" "$work"
  for package in "$@"; do
    cp "dist/${package}_${version}_$(dpkg --print-architecture).deb" "$work/root/"
  done
  cp tests/install/anywhere_test.sh "$work/root/"
  cat > "$work/ssh" << SCRIPT
#!/bin/bash
exec unshare --mount --propagation private --uts sh -euc 'hostname $suite; mount --rbind /proc "\$1/proc"; mount --rbind /dev "\$1/dev"
  exec chroot "\$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh -euc "\$2"' _ "$work/root" "\${@: -1}"
SCRIPT
  chmod +x "$work/ssh"
  "$work/ssh" "
    dpkg --install /*.deb
    sh /anywhere_test.sh lrun $version
    dpkg --purge $*
    ! find / -xdev -name '*lrun*' ! -name '*.deb' | grep -v ^/var/log/" || fail "Debian's packages do not work on $suite"
  of="Debian $(cut -d . -f 1 "$work/root/etc/debian_version")"
  figure "$* on $of" "installed, used, purged" "yes"
  # shellcheck disable=SC2016 # expanded by the worker's shell
  build/wheel/lrun --copy --ssh "$work/ssh" -H "$suite:2" --chdir / --output raw sh -c 'echo "$(cat /etc/debian_version): $0"' "$suite" > "$work/out"
  [ "$(sort -u "$work/out")" = "$(cat "$work/root/etc/debian_version"): $suite" ] || { cat "$work/out"; fail "lrun does not run there with --copy"; }
  ! ls "$work"/root/tmp/* 2> "$work/log" || fail "--copy leaves files behind"
  figure "\`-H --copy\` to a host of $of" "runs" "yes"
  rm -rf --one-file-system "$work"
}

# Workers are this machine's programs there: qemu hands every exec to the kernel.
runs_below_qemu() {
  stage "the aarch64 program below qemu"
  printf '#!/bin/sh\nexec qemu-aarch64 -L /usr/aarch64-linux-gnu %q "$@"\n' "$PWD/build/wheel-aarch64/lrun" > build/lrun-aarch64
  chmod +x build/lrun-aarch64
  sh tests/install/anywhere_test.sh "$PWD/build/lrun-aarch64" "$(project_version)"
  figure "aarch64 below qemu-user: 4 workers, kill -9" "runs" "yes"
}

# Another clone in another folder, without what was compiled here, makes the same bytes.
release_is_repeatable() {
  stage "the same packages once more, in another folder"
  local work
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/lrun-release.XXXXXX")
  git clone --quiet "$root" "$work/clone"
  CCACHE_DISABLE=1 "$work/clone/dev" release > "$work/log" 2>&1 || { tail -20 "$work/log"; fail "./dev release failed there"; }
  diff dist/SHA256SUMS "$work/clone/dist/SHA256SUMS" || fail "the packages differ, those of $work/clone/dist"
  figure "made twice, in two folders" "bit-equal" "$(wc -l < dist/SHA256SUMS) of $(wc -l < dist/SHA256SUMS) files"
  rm -rf "$work"
}
