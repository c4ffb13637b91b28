// A library with NVML's calling convention. FAKE_NVML says what it pretends:
// "two" GPUs of different sizes, "mig", "unified" memory, "none", a driver
// "mismatch", a GPU that is "lost", one that is "sick": there, but without an answer
// about its memory; a driver that will "hang" while the file FAKE_NVML_HOLD exists.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } memory;
static const char *mode(void) { const char *m = getenv("FAKE_NVML"); return m ? m : "two"; }
static int is(const char *m) { return strcmp(mode(), m) == 0; }
int nvmlInit_v2(void) {
	const char *hold = getenv("FAKE_NVML_HOLD");
	while (is("hang") && hold && access(hold, F_OK) == 0) usleep(5000);
	return is("mismatch") ? 18 : 0;
}
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *b, unsigned n) { snprintf(b, n, "570.1"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = is("none") ? 0 : is("two") || is("lost") || is("sick") ? 2 : is("many") ? 100000 : 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) {
	if (is("lost") && i == 0) return 15;
	*h = (void *)(unsigned long)(i + 1);
	return 0;
}
int nvmlDeviceGetName(void *h, char *b, unsigned n) { snprintf(b, n, "Fake GPU %lu", (unsigned long)h); return 0; }
int nvmlDeviceGetUUID(void *h, char *b, unsigned n) {
	snprintf(b, n, "%s-%08lu", (unsigned long)h > 100 ? "MIG" : "GPU", (unsigned long)h);
	return 0;
}
int nvmlDeviceGetMemoryInfo(void *h, memory *m) {
	if (is("unified")) return 3;
	if (is("sick") && (unsigned long)h == 1) return 15;
	m->total = ((unsigned long)h > 100 ? 10ull : 12ull * (unsigned long)h) << 30;
	m->used = 1ull << 30;
	m->free = m->total - m->used;
	return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *h, int *a, int *b) { *a = 9; *b = 0; return 0; }
int nvmlDeviceGetMigMode(void *h, unsigned *now, unsigned *next) {
	if (!is("mig")) return 3;
	*now = *next = 1;
	return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void *h, unsigned *n) { *n = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *h, unsigned i, void **out) {
	if (i > 1) return 6;
	*out = (void *)(unsigned long)(101 + i);
	return 0;
}
int nvmlDeviceGetGpuInstanceId(void *h, unsigned *n) { *n = (unsigned)((unsigned long)h - 100); return 0; }
int nvmlDeviceGetComputeInstanceId(void *h, unsigned *n) { *n = 0; return 0; }
