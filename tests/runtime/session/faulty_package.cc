// A library that people install and do not write: its code faults.
extern "C" __attribute__((visibility("default"))) void lrun_test_write(volatile int* place) { *place = 1; }
