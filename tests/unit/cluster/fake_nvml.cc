// A driver library whose answers a test sets, by functions or, for the built lrun, by FAKE_NVML_GPUS, FAKE_NVML_PROCESS
// and FAKE_NVML_TROUBLE: only what lrun asks for.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

unsigned from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? 0 : static_cast<unsigned>(std::atoi(value));
}

char letter_from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? ' ' : value[0];
}

int init_result = 0;
int count_result = 0;
unsigned gpu_count = from_environment("FAKE_NVML_GPUS");
unsigned lost_gpu = ~0U;
int open_users = 0;
unsigned divided_gpu = ~0U;  // in MIG mode, with instances 0 and 2
int mode = 0;
unsigned process = from_environment("FAKE_NVML_PROCESS");     // computes on GPU 0
char trouble = letter_from_environment("FAKE_NVML_TROUBLE");  // 'c': init crashes, 'h': it hangs
char devices[16];
char instances[16];
constexpr int kNotFound = 6;

struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct ProcessSample {
  unsigned pid;
  unsigned long long time_us;
  unsigned percents[4];
};

struct PciInfo {
  char legacy_address[16];
  unsigned numbers[5];
  char address[32];
};

}  // namespace

extern "C" {

void fake_nvml_set(int init, int counting, unsigned count, unsigned lost) {
  init_result = init;
  count_result = counting;
  gpu_count = count;
  lost_gpu = lost;
}
int fake_nvml_users() { return open_users; }
void fake_nvml_divide(unsigned gpu) { divided_gpu = gpu; }
void fake_nvml_occupy(int compute_mode, unsigned pid) {
  mode = compute_mode;
  process = pid;
}
void fake_nvml_trouble(char kind) { trouble = kind; }

int nvmlInit_v2() {
  if (trouble == 'c') {
    std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would make an exit of it
    std::raise(SIGSEGV);
  }
  while (trouble == 'h') pause();
  if (init_result == 0) ++open_users;
  return init_result;
}
int nvmlShutdown() {
  --open_users;
  return 0;
}
const char* nvmlErrorString(int code) { return code == 999 ? "Unknown Error" : "Error"; }
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 12080;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpu_count;
  return count_result;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, char** device) {
  *device = &devices[index];
  return index == lost_gpu ? 15 : 0;
}
int nvmlDeviceGetUUID(const char* device, char* uuid, unsigned length) {
  const bool instance = device >= instances && device < instances + sizeof instances;
  const char letter = static_cast<char>('a' + (instance ? device - instances : device - devices));
  std::snprintf(uuid, length, "%s-%cx", instance ? "MIG" : "GPU", letter);
  return 0;
}
int nvmlDeviceGetName(const char*, char* name, unsigned length) {
  std::snprintf(name, length, "Fake \xff");  // not UTF-8
  return 0;
}
int nvmlDeviceGetPciInfo_v3(const char* device, PciInfo* info) {
  std::snprintf(info->address, sizeof info->address, "00000000:%02X:00.0",
                static_cast<unsigned>(device - devices) + 0xa);
  return 0;
}
int nvmlDeviceGetComputeMode(const char*, int* compute_mode) {
  *compute_mode = mode;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(const char* device, unsigned* count, ProcessInfo* infos) {
  *count = device == devices && process != 0 ? 1 : 0;
  if (*count == 1) infos[0] = {process, 300ULL << 20U, 0, 0};
  return 0;
}
int nvmlDeviceGetProcessUtilization(const char* device, ProcessSample* samples, unsigned* count,
                                    unsigned long long since_us) {
  if (device != devices || process == 0) return kNotFound;
  *count = 2;
  samples[0] = {process, since_us + 1, {87, 0, 0, 0}};
  samples[1] = {process, since_us - 1, {12, 0, 0, 0}};
  return 0;
}
int nvmlDeviceGetMigMode(const char* device, unsigned* current, unsigned* pending) {
  *current = *pending = device == devices + divided_gpu ? 1 : 0;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(const char*, unsigned* count) {
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(const char*, unsigned index, char** instance) {
  *instance = &instances[index];
  return index == 0 || index == 2 ? 0 : kNotFound;
}

}  // extern "C"
