// A driver library whose answers a test sets: only what lrun asks for.
#include <cstdio>
#include <cstring>

namespace {

int init_result = 0;
int count_result = 0;
unsigned gpu_count = 0;
unsigned lost_gpu = ~0U;
int open_users = 0;
char devices[16];

}  // namespace

extern "C" {

void fake_nvml_set(int init, int counting, unsigned count, unsigned lost) {
  init_result = init;
  count_result = counting;
  gpu_count = count;
  lost_gpu = lost;
}
int fake_nvml_users() { return open_users; }

int nvmlInit_v2() {
  if (init_result == 0) ++open_users;
  return init_result;
}
int nvmlShutdown() {
  --open_users;
  return 0;
}
const char* nvmlErrorString(int code) { return code == 999 ? "Unknown Error" : "Error"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpu_count;
  return count_result;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, char** device) {
  *device = &devices[index];
  return index == lost_gpu ? 15 : 0;
}
int nvmlDeviceGetUUID(const char* device, char* uuid, unsigned length) {
  std::snprintf(uuid, length, "GPU-%c%c", static_cast<char>('a' + (device - devices)), 'x');
  return 0;
}

}  // extern "C"
