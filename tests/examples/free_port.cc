// Prints a TCP port of the loopback that the kernel says is free.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>

int main() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  sockaddr* const any = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || ::bind(fd, any, length) != 0 || ::getsockname(fd, any, &length) != 0) {
    std::perror("free_port");
    return 1;
  }
  std::printf("%d\n", ntohs(address.sin_port));
  return 0;
}
