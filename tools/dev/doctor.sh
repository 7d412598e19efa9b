# shellcheck shell=bash
# doctor: what is here and what is not. Exit status 1 when something is missing; what is only absent leaves tests out.

# report STATE SUBJECT TEXT
report() { printf '  %-8s %-22s %s\n' "$1" "$2" "$3"; }

doctor_packages() {
  local purpose=$1 missing
  shift
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -eq 0 ]; then
    report ok "packages to $purpose" "all $# installed"
    return 0
  fi
  report MISSING "packages to $purpose" "apt-get install --no-install-recommends ${missing[*]}"
  return 1
}

doctor_libtorch() {
  if [ -n "${LRUN_LIBTORCH:-}" ]; then
    if [ -f "$LRUN_LIBTORCH/lib/libtorch_cpu.so" ]; then
      report ok LibTorch "$LRUN_LIBTORCH (LRUN_LIBTORCH)"
      return 0
    fi
    report MISSING LibTorch "LRUN_LIBTORCH=$LRUN_LIBTORCH has no lib/libtorch_cpu.so: unset it or correct it"
    return 1
  fi
  if libtorch_is_there; then
    report ok LibTorch "$libtorch_home/torch"
    return 0
  fi
  report MISSING LibTorch "./dev build fetches it into $libtorch_home (545 MB)"
  return 1
}

doctor_system() {
  if [ "$(uname -s)" != Linux ]; then
    report MISSING Linux "lrun runs on Linux only, this is $(uname -s)"
    return 1
  fi
  report ok Linux "$(uname -r) on $(uname -m), $(nproc) cores"
  local free
  free=$(df --output=avail -BG "$root" | tail -1 | tr -dc '0-9')
  if [ "$free" -lt 4 ] && [ ! -d build/dev ]; then
    report MISSING "disk space" "a build takes 4 GB, $free GB are free in $root"
    return 1
  fi
  report ok "disk space" "$free GB free"
}

# A part that only makes more tests run is never an error.
doctor_optional() {
  local part why
  for part in slurm etcd; do
    if why=$(tests/lab/lab has $part 2>&1); then report ok "lab with $part" "for ./dev check"; else
      report absent "lab with $part" "${why#lab: "$part": }"
    fi
  done
  if python_torch_is_there; then report ok "Python's torch" "$python_home"; else
    report absent "Python's torch" "./dev python (tests that need it are skipped)"
  fi
  if have nvidia-smi && nvidia-smi -L > /dev/null 2>&1; then
    report ok GPU "$(nvidia-smi -L | wc -l)"
  else
    report absent GPU "tests labelled gpu are left out"
  fi
}

dev_doctor() {
  local bad=0
  doctor_system || bad=1
  if have dpkg-query; then
    doctor_packages build "${build_packages[@]}" || bad=1
    doctor_packages test "${test_packages[@]}" || bad=1
    doctor_packages check "${check_packages[@]}" || bad=1
  elif [ -z "${LRUN_SKIP_PACKAGES:-}" ]; then
    report MISSING apt "install what corresponds to: ${build_packages[*]} ${test_packages[*]}; then LRUN_SKIP_PACKAGES=1"
    bad=1
  fi
  doctor_libtorch || bad=1
  doctor_optional
  return $bad
}
