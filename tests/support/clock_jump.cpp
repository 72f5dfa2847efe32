// Loaded before the C library (LD_PRELOAD): a second after a process has first asked for the time, the clock of the
// wall is an hour ahead, as if somebody had set it. The kernel's own clock stays, so times of the wall until which
// somebody waits are turned back on their way to it.
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include <cstdarg>

namespace {

constexpr time_t kJump = 3600;

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int real_clock(clockid_t clock, timespec* time) {
  static auto* const function = real<int(clockid_t, timespec*)>("clock_gettime");
  return function(clock, time);
}

time_t seconds_ahead() {
  static timespec start{};
  timespec now{};
  real_clock(CLOCK_MONOTONIC, &now);
  if (start.tv_sec == 0) start = now;
  return now.tv_sec - start.tv_sec >= 1 ? kJump : 0;
}

// Steady times are small: seconds since the machine was started.
timespec for_kernel(const timespec& until) {
  constexpr time_t kIn2001 = 1'000'000'000;
  timespec result = until;
  if (until.tv_sec > kIn2001) result.tv_sec -= seconds_ahead();
  return result;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = real_clock(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += seconds_ahead();
  return result;
}

extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}

extern "C" time_t time(time_t* place) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (place != nullptr) *place = now.tv_sec;
  return now.tv_sec;
}

extern "C" int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static auto* const function = real<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  const timespec given = for_kernel(*until);
  return function(condition, mutex, &given);
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* until) {
  static auto* const function =
      real<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  const timespec given = for_kernel(*until);
  return function(condition, mutex, clock, &given);
}

extern "C" int sem_timedwait(sem_t* semaphore, const timespec* until) {
  static auto* const function = real<int(sem_t*, const timespec*)>("sem_timedwait");
  const timespec given = for_kernel(*until);
  return function(semaphore, &given);
}

// Some libraries ask the kernel itself.
extern "C" long syscall(long number, ...) noexcept {
  static auto* const function = real<long(long, ...)>("syscall");
  long words[6];
  va_list list;
  va_start(list, number);
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  timespec given{};
  if (number == SYS_futex && (words[1] & FUTEX_CLOCK_REALTIME) != 0 && words[3] != 0) {
    given = for_kernel(*reinterpret_cast<const timespec*>(words[3]));
    words[3] = reinterpret_cast<long>(&given);
  }
  return function(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
