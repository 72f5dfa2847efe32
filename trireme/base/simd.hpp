// How the inner loops of own code become vector code: the compiler makes one copy of a marked function per
// instruction set and the loader picks the one for this machine. The marked functions are plain loops called from
// inside OpenMP regions, because the bodies that the compiler outlines for OpenMP are not copied.
#pragma once

// The thread sanitizer instruments the function that picks, which runs before the sanitizer is ready: one copy there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define TRIREME_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TRIREME_SIMD
#endif

// For templates that a marked function calls: they must become part of each of its copies.
#define TRIREME_INLINE __attribute__((always_inline)) inline
