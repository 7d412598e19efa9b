# shellcheck shell=bash
# shellcheck disable=SC2154 # root and libtorch_home are set by ./dev and common.sh
# gpu-kit: one archive that proves lrun on a GPU machine that has nothing but Python's torch. gpu: the same in place.

gpu_kit=build/gpu-kit  # the folder, and with .tar.xz the archive

# make_gpu_kit BUILD FOLDER: copies what the kit runs out of a build, stripped and without paths of this machine.
make_gpu_kit() {
  local build=$1 folder=$2 file
  rm -rf "$folder"
  mkdir -p "$folder"/{bin,lib,tests,bench,parts/programs}
  cp "$build/lrun" "$build"/examples/{ddp_minimal,launch_minimal,training_loop} "$build/examples/fashion_mnist/fashion_mnist" \
    "$folder/bin/"
  if [ -d /usr/share/datasets/fashion-mnist ]; then cp -r /usr/share/datasets/fashion-mnist "$folder/data"; fi
  cp "$build/$(readlink "$build/liblrun.so")" "$build/liblrun_cuda.so" "$build"/tests/runtime/cuda/libtorchs_data_parallel.so "$folder/lib/"
  cp "$build/tests/runtime/cuda/test_runtime_cuda" "$folder/tests/"
  cp "$build"/bench/bench_runtime_gpu_* "$folder/bench/"
  cp bench/gpu_*.py "$folder/bench/"
  cp tests/gpu/*.py "$folder/parts/"
  cp tests/programs/*.py "$folder/parts/programs/"
  mv "$folder/parts/run_gpu.py" "$folder/run-gpu"
  for file in "$folder"/{bin,lib,tests,bench}/*; do
    head -c 4 "$file" | grep -q ELF || continue
    strip --strip-all "$file"
    cmake -DFILE="$file" -P cmake/RemoveRunPath.cmake
  done
}

build_gpu_kit() {
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  need_libtorch
  configure_and_build release lrun lrun_runtime lrun_cuda test_runtime_cuda torchs_data_parallel bench_runtime_gpu_step \
    ddp_minimal launch_minimal training_loop fashion_mnist
  make_gpu_kit build/release "$gpu_kit"
}

dev_gpu_kit() {
  build_gpu_kit
  tar -C build -cJf "$gpu_kit.tar.xz" gpu-kit
  note "$gpu_kit.tar.xz, $(du -h "$gpu_kit.tar.xz" | cut -f1): unpack it on the GPU machine and run gpu-kit/run-gpu"
}

# dev_gpu [PART...]: builds the kit and runs it here, with the Python whose torch is to be used.
dev_gpu() {
  build_gpu_kit
  stage "running the kit on this machine"
  "${LRUN_TORCH_PYTHON:-python3}" "$gpu_kit/run-gpu" --output build/gpu-results "$@"
}
