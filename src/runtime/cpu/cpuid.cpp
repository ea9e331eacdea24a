#include "runtime/cpu/cpuid.h"

#include <algorithm>
#include <cstring>

#include "base/cores.h"
#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tiny {

#if defined(__x86_64__)

namespace {

struct Leaf {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

// The last leaf of the basic ones, or of the extended.  Asked once: in a virtual machine each cpuid
// is an exit to its host, some 20 us.
uint32_t last_leaf(uint32_t of) {
  constexpr uint32_t kExtended = 0x80000000u;
  static const uint32_t basic = __get_cpuid_max(0, nullptr);
  static const uint32_t extended = __get_cpuid_max(kExtended, nullptr);
  return of & kExtended ? extended : basic;
}

Leaf leaf(uint32_t number, uint32_t sub = 0) {
  Leaf l;
  if (number <= last_leaf(number)) __cpuid_count(number, sub, l.a, l.b, l.c, l.d);
  return l;
}

// The state that the operating system saves: what xgetbv says, 0 without it.
uint32_t saved_state(const Leaf& basic) {
  constexpr uint32_t kOsxsave = 1u << 27;
  if (!(basic.c & kOsxsave)) return 0;
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Linux keeps the state of tiles, 8 KiB a thread, only of processes that ask for it (Linux,
// Documentation/arch/x86/xstate.rst): asked once, for all threads from then on.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr uint32_t kTileState = 0x60000;  // the configuration and the tiles, of what xgetbv says
  constexpr long kRequestState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, of arch_prctl
  static const bool may = (saved_state(leaf(1)) & kTileState) == kTileState &&
                          syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
  return may;
#else
  return false;
#endif
}

void detect_dots(CpuFacts& facts) {
  const Leaf features = leaf(7, 0), more = leaf(7, 1);
  if (facts.isa == CpuIsa::None) return;
  facts.has_byte_dots_avx2 = (more.a & (1u << 4)) != 0;
  facts.has_signed_dots_avx2 = (more.d & (1u << 4)) != 0;
  if (facts.isa != CpuIsa::Avx512) return;
  facts.has_byte_dots = (features.c & (1u << 11)) != 0;
  facts.has_bfloat_dots = (more.a & (1u << 5)) != 0;
  constexpr uint32_t kTiles = 1u << 24 | 1u << 25;  // AMX_TILE and AMX_INT8
  facts.has_byte_tiles = (features.d & kTiles) == kTiles && may_use_tiles();
}

std::string brand_string() {
  if (last_leaf(0x80000000u) < 0x80000004u) return "unknown x86-64 processor";
  char text[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const Leaf l = leaf(0x80000002u + i);
    std::memcpy(text + 16 * i, &l, 16);
  }
  std::string brand = text;
  const size_t first = brand.find_first_not_of(' ');
  if (first == std::string::npos) return "unnamed x86-64 processor";
  return brand.substr(first, brand.find_last_not_of(' ') - first + 1);
}

void read_kind(CpuFacts& facts) {
  const Leaf first = leaf(0), kind = leaf(1);
  const uint32_t letters[] = {first.b, first.d, first.c};
  facts.vendor.assign(reinterpret_cast<const char*>(letters), sizeof letters);
  // The extended fields count from family 15, and for models from 6 too.
  const uint32_t family = (kind.a >> 8) & 15, model = (kind.a >> 4) & 15;
  const bool is_extended = family == 15 || family == 6;
  facts.family = static_cast<int32_t>(family == 15 ? family + ((kind.a >> 20) & 255) : family);
  facts.model = static_cast<int32_t>(is_extended ? (((kind.a >> 16) & 15) << 4) + model : model);
}

// Cache sizes from leaf 4 (Intel) or its twin 0x8000001D (AMD).
bool read_caches(uint32_t number, CpuFacts& facts) {
  bool any = false;
  for (uint32_t sub = 0; sub < 16; ++sub) {
    const Leaf l = leaf(number, sub);
    const uint32_t type = l.a & 31, level = (l.a >> 5) & 7;
    if (type == 0) break;
    if (type == 2) continue;  // instructions
    const int64_t line = (l.b & 0xFFF) + 1, partitions = ((l.b >> 12) & 0x3FF) + 1,
                  ways = (l.b >> 22) + 1;
    const int64_t bytes = line * partitions * ways * (int64_t{l.c} + 1);
    if (level == 1) facts.l1_bytes = bytes;
    if (level == 2) facts.l2_bytes = bytes;
    if (level == 3) facts.l3_bytes = bytes;
    any = true;
  }
  return any;
}

}  // namespace

CpuIsa detect_isa() {
  constexpr uint32_t kBasic = bit_FMA | bit_POPCNT | bit_AVX | bit_F16C;
  constexpr uint32_t kAvx2 = bit_AVX2 | bit_BMI2;
  constexpr uint32_t kAvx512 =
      bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL | bit_AVX512CD;
  constexpr uint32_t kYmmSaved = 0x6, kZmmSaved = 0xE6;  // of xmm and ymm; of masks and zmm besides
  const Leaf basic = leaf(1), more = leaf(7);
  const uint32_t saved = saved_state(basic);
  const auto has_all = [](uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; };
  if (!has_all(basic.c, kBasic) || !has_all(more.b, kAvx2) || !has_all(saved, kYmmSaved))
    return CpuIsa::None;
  const bool avx512 = has_all(more.b, kAvx512) && has_all(saved, kZmmSaved);
  return avx512 ? CpuIsa::Avx512 : CpuIsa::Avx2;
}

CpuFacts cpu_facts() {
  CpuFacts facts;
  facts.brand = brand_string();
  read_kind(facts);
  facts.isa = detect_isa();
  detect_dots(facts);
  const bool has_twin = last_leaf(0x80000000u) >= 0x8000001Du;
  if (!has_twin || !read_caches(0x8000001Du, facts)) read_caches(4, facts);
  facts.cores = available_cores();
  return facts;
}

#else

CpuIsa detect_isa() {
  return CpuIsa::None;
}

CpuFacts cpu_facts() {
  CpuFacts facts;
  facts.brand = "not an x86-64 processor";
  facts.missing = "instructions of x86-64";
  facts.cores = available_cores();
  return facts;
}

#endif

CpuIsa limit_isa(CpuIsa detected, std::string_view wish) {
  if (wish == "auto" || wish.empty() || wish == "avx512") return detected;
  if (wish == "none") return CpuIsa::None;
  require(wish == "avx2", Status::InvalidArgument, "isa \"", wish,
          "\": known are auto, avx512, avx2");
  return std::min(detected, CpuIsa::Avx2);
}

}  // namespace tiny
