/* Faults of files, for a process that is started with this library in LD_PRELOAD.
 *
 * F5PY_FAULT is CALL:WHAT:PART:NTH. CALL is open, read, write, close or rename; WHAT the number of an error, or "short"
 * for transfers of a few bytes, or "eintr" for every second call to be interrupted; PART a part of the file's path; NTH
 * from which such call on it fails (counted from 1).
 *
 * F5PY_REFUSED is a list of calls with commas, all of which fail, as sandboxes have it: chmod, fchmod, fchown, flock,
 * fsync, madvise, memfd_create, sched_setaffinity, statvfs or prctl.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sched.h>
#include <unistd.h>

static char call_name[16], what[16], part[256];
static int number, nth;
static char known[512];
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_calls;

/* Take the fault from the environment, which a process that was forked may have changed before anything else. */
static void look(void)
{
    const char *fault = getenv("F5PY_FAULT");
    pthread_mutex_lock(&one_at_a_time);
    if (strncmp(known, fault ? fault : "", sizeof known - 1)) {
        strncpy(known, fault ? fault : "", sizeof known - 1);
        if (fault && sscanf(fault, "%15[^:]:%15[^:]:%255[^:]:%d", call_name, what, part, &nth) == 4)
            number = atoi(what);
        else
            call_name[0] = 0;
    }
    pthread_mutex_unlock(&one_at_a_time);
}

/* Whether a call on that path is one that is to fail: 0 no, 1 with an error, 2 short. */
static int fails(const char *call, const char *path)
{
    look();
    if (strcmp(call, call_name) || !strstr(path, part))
        return 0;
    int i = ++n_calls;
    if (!strcmp(what, "short"))
        return 2;
    if (!strcmp(what, "eintr")) {
        errno = EINTR;
        return i % 2;
    }
    errno = number;
    return i >= nth;
}

static int fails_at(const char *call, int descriptor)
{
    look();
    if (strcmp(call, call_name))
        return 0;
    char link[64], path[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return 0;
    path[size] = 0;
    return fails(call, path);
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) \
        real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
#define FEW(size) ((size) > 7 ? 1 + (size) / 3 : (size))

#define TRANSFER(name, call, buffer) \
    ssize_t name(int descriptor, buffer data, size_t size) \
    { \
        REAL(ssize_t, #name, int, buffer, size_t); \
        int fault = fails_at(call, descriptor); \
        return fault == 1 ? -1 : real(descriptor, data, fault == 2 ? FEW(size) : size); \
    }
#define TRANSFER_AT(name, call, buffer) \
    ssize_t name(int descriptor, buffer data, size_t size, off_t place) \
    { \
        REAL(ssize_t, #name, int, buffer, size_t, off_t); \
        int fault = fails_at(call, descriptor); \
        return fault == 1 ? -1 : real(descriptor, data, fault == 2 ? FEW(size) : size, place); \
    }

TRANSFER(read, "read", void *)
TRANSFER(write, "write", const void *)
TRANSFER_AT(pread, "read", void *)
TRANSFER_AT(pread64, "read", void *)
TRANSFER_AT(pwrite, "write", const void *)
TRANSFER_AT(pwrite64, "write", const void *)

ssize_t writev(int descriptor, const struct iovec *pieces, int n)
{
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    int fault = fails_at("write", descriptor);
    if (fault == 2 && n > 0)
        return write(descriptor, pieces[0].iov_base, FEW(pieces[0].iov_len));
    return fault == 1 ? -1 : real(descriptor, pieces, n);
}

int close(int descriptor)
{
    REAL(int, "close", int);
    int fault = fails_at("close", descriptor), kept = errno;
    int result = real(descriptor);
    if (fault == 1) {
        errno = kept;
        return -1;
    }
    return result;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        REAL(int, #name, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = va_arg(rest, mode_t); \
        va_end(rest); \
        return fails("open", path) == 1 ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

int rename(const char *from, const char *to)
{
    REAL(int, "rename", const char *, const char *);
    return fails("rename", to) == 1 ? -1 : real(from, to);
}

/* Whether a call is one of those that are refused. */
static int refused(const char *call)
{
    const char *calls = getenv("F5PY_REFUSED");
    size_t size = strlen(call);
    for (const char *at = calls; at && (at = strstr(at, call)); at += size)
        if ((at == calls || at[-1] == ',') && (at[size] == ',' || !at[size])) {
            errno = EPERM;
            return 1;
        }
    return 0;
}

#define REFUSABLE(name, parameters, ...) \
    int name parameters \
    { \
        static int (*real) parameters; \
        if (!real) \
            real = (int(*) parameters)dlsym(RTLD_NEXT, #name); \
        return refused(#name) ? -1 : real(__VA_ARGS__); \
    }
REFUSABLE(chmod, (const char *path, mode_t mode), path, mode)
REFUSABLE(fchmod, (int descriptor, mode_t mode), descriptor, mode)
REFUSABLE(fchown, (int descriptor, uid_t owner, gid_t group), descriptor, owner, group)
REFUSABLE(flock, (int descriptor, int operation), descriptor, operation)
REFUSABLE(fsync, (int descriptor), descriptor)
REFUSABLE(madvise, (void *at, size_t size, int advice), at, size, advice)
REFUSABLE(memfd_create, (const char *name, unsigned flags), name, flags)
REFUSABLE(sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set), pid, size, set)
REFUSABLE(statvfs, (const char *path, struct statvfs *about), path, about)

int prctl(int option, ...)
{
    REAL(int, "prctl", int, ...);
    va_list rest;
    va_start(rest, option);
    unsigned long values[4];
    for (int i = 0; i < 4; i++)
        values[i] = va_arg(rest, unsigned long);
    va_end(rest);
    return refused("prctl") ? -1 : real(option, values[0], values[1], values[2], values[3]);
}
