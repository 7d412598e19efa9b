// Sums the numbers of all ranks and says by which backend; with '--for-ever' again and again, until a rank is lost.
#include <ATen/ops/full.h>
#include <lrun/session.h>

#include <exception>
#include <iostream>
#include <string_view>

int main(int argc, char** argv) {
  try {
    lrun::Session session(lrun::SessionOptions{.banner = false});
    lrun::Collectives& group = session.collectives();
    do {
      const at::Tensor sum = at::full({100'000}, session.rank() + 1, at::kDouble);
      group.all_reduce(sum, lrun::ReduceOp::kSum)->wait();
      const bool equal = sum.eq(sum[0]).all().item<bool>();
      std::cout << group.name() << ' ' << (equal ? sum[0].item<double>() : -1) << std::endl;
    } while (argc > 1 && std::string_view(argv[1]) == "--for-ever");
    return 0;
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 1;
  }
}
