#include <ATen/ATen.h>
#include <lrun/version.h>

#include <iostream>

int main() {
  std::cout << "lrun " << lrun::version() << ", sum " << at::arange(5).sum().item<long>() << '\n';
  return 0;
}
