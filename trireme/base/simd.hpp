// Vectorization of inner loops: the compiler clones a marked function per instruction set, and the loader picks one.
// Mark plain loops called inside OpenMP regions: the bodies that the compiler outlines for OpenMP are not cloned.
#pragma once

// The thread sanitizer instruments the resolver, which runs before the sanitizer is ready: no clones there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define TRIREME_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TRIREME_SIMD
#endif

// For templates called by a marked function: they must be part of each of its clones.
#define TRIREME_INLINE __attribute__((always_inline)) inline
