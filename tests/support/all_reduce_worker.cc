// Reduces for ever: a worker to be killed in the middle of an all-reduce.
#include <ATen/ops/ones.h>
#include <lrun/session.h>

#include <exception>
#include <iostream>

int main() {
  try {
    lrun::Session session(lrun::SessionOptions{.banner = false});
    const at::Tensor values = at::ones({1 << 16});
    session.barrier();
    std::cout << "reducing" << std::endl;
    at::Tensor result = values;
    while (true) result = session.all_reduce(result, lrun::ReduceOp::kMax);
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
