/* A stand-in for libnvidia-ml.so.1 with three cards, for the functions that the probe calls.
 *
 * Signatures and structures are those of nvml.h. NVML_STAND_IN_INIT gives the error with which
 * nvmlInit fails. With NVML_STAND_IN_LOADED card 0 is under load, and its power is capped. Card 0: a healthy PCIe 4 x16 card at idle. Card 1: trained down to x4, four
 * NVLinks, in MIG mode. Card 2: fallen off the bus.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, GPU_IS_LOST = 15 };
enum { CARDS = 3, LOST = 2 };

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_t;

static const char *const names[CARDS] = {"NVIDIA A100-PCIE-40GB", "NVIDIA A100-SXM4-80GB", "lost"};
static const char *const uuids[CARDS] = {"GPU-11111111-2222-3333-4444-555555555555",
                                         "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa", ""};
static const char *const bus_ids[CARDS] = {"00000000:3B:00.0", "00000000:AF:00.0", ""};
static int cards[CARDS] = {0, 1, 2};

static int loaded(void) { return getenv("NVML_STAND_IN_LOADED") != NULL; }
static int lost(int *card) { return *card == LOST; }

int nvmlInitWithFlags(unsigned flags) {
    const char *error = getenv("NVML_STAND_IN_INIT");
    return flags == 0 && error != NULL ? atoi(error) : SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int result) { return result ? "stand-in error" : "success"; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    snprintf(text, length, "550.54.15");
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12040; return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = CARDS; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **card) {
    if (index >= CARDS) return NOT_FOUND;
    *card = &cards[index];
    return SUCCESS;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, int **card) {
    if (strcmp(address, "0000:3b:00.0") == 0) *card = &cards[0];
    else if (strcmp(address, "0000:af:00.0") == 0) *card = &cards[1];
    else return NOT_FOUND;
    return SUCCESS;
}
int nvmlDeviceGetClockInfo(int *card, int type, unsigned *mhz) {
    if (*card == 1 || (type != 1 && type != 2)) return NOT_SUPPORTED;
    *mhz = type == 2 ? 1215 : loaded() ? 1095 : 210;
    return SUCCESS;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(int *card, unsigned long long *reasons) {
    if (*card == 1) return NOT_SUPPORTED;
    *reasons = loaded() ? 0x4 : 0x1; /* a power cap; idle */
    return SUCCESS;
}
int nvmlDeviceGetName(int *card, char *text, unsigned length) {
    if (lost(card)) return GPU_IS_LOST;
    snprintf(text, length, "%s", names[*card]);
    return SUCCESS;
}
int nvmlDeviceGetUUID(int *card, char *text, unsigned length) {
    if (lost(card)) return GPU_IS_LOST;
    snprintf(text, length, "%s", uuids[*card]);
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v3(int *card, pci_t *pci) {
    if (lost(card)) return GPU_IS_LOST;
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", bus_ids[*card]);
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(int *card, memory_t *memory) {
    if (lost(card)) return GPU_IS_LOST;
    memory->total = (*card == 0 ? 40ull : 80ull) << 30;
    memory->free = memory->total;
    memory->used = 0;
    return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(int *card, int *major, int *minor) {
    if (lost(card)) return GPU_IS_LOST;
    *major = 8;
    *minor = 0;
    return SUCCESS;
}
int nvmlDeviceGetMaxPcieLinkGeneration(int *card, unsigned *v) { (void)card; *v = 4; return SUCCESS; }
int nvmlDeviceGetMaxPcieLinkWidth(int *card, unsigned *v) { (void)card; *v = 16; return SUCCESS; }
int nvmlDeviceGetCurrPcieLinkGeneration(int *card, unsigned *v) {
    *v = *card == 0 && !loaded() ? 1 : 4;
    return SUCCESS;
}
int nvmlDeviceGetCurrPcieLinkWidth(int *card, unsigned *v) {
    *v = *card == 0 ? 16 : 4;
    return SUCCESS;
}
int nvmlDeviceGetNvLinkState(int *card, unsigned link, unsigned *active) {
    if (*card == 0) return NOT_SUPPORTED;
    *active = link < 4;
    return SUCCESS;
}
int nvmlDeviceGetMigMode(int *card, unsigned *current, unsigned *pending) {
    if (*card == 0) return NOT_SUPPORTED;
    *current = *pending = 1;
    return SUCCESS;
}
