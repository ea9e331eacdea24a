// Which sanitizers a test was built with.
#pragma once

namespace tiny::testing {

// Whether reads of memory that is free are reported.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kWatchesMemory = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kWatchesMemory = true;
#else
inline constexpr bool kWatchesMemory = false;
#endif
#else
inline constexpr bool kWatchesMemory = false;
#endif

}  // namespace tiny::testing
