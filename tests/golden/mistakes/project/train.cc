#include <cstdio>
#include <cstdlib>
int main() { std::printf("rank %s\n", std::getenv("RANK")); }
