/* Makes each fdatasync and fsync of a process take longer, and changes nothing else: LD_PRELOAD.
 *
 * SLOW_SYNC_MICROSECONDS says by how much. The thread sleeps before the real call, as it would for a slower disk; unlike
 * under strace, all other calls cost what they always do. Works for whatever syncs through the C library: Rust's
 * File::sync_data and sync_all do, and so does the JVM's FileChannel.force.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static struct timespec delay;
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);

__attribute__((constructor)) static void prepare(void) {
  const char *text = getenv("SLOW_SYNC_MICROSECONDS");
  long microseconds = text == NULL ? 0 : strtol(text, NULL, 10);
  delay.tv_sec = microseconds / 1000000;
  delay.tv_nsec = microseconds % 1000000 * 1000;
  real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
}

static void wait_for_the_disk(void) {
  struct timespec rest = delay;
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) {
  }
}

int fdatasync(int file) {
  wait_for_the_disk();
  return real_fdatasync(file);
}

int fsync(int file) {
  wait_for_the_disk();
  return real_fsync(file);
}
