// A library for LD_PRELOAD: records, or fails, a process's calls on files below a folder, by Python and SQLite alike.
// tests/support/disk_calls.py compiles it, switches it on, and describes the record.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>

namespace {

enum Operation : uint32_t { kCreate = 1, kMkdir, kWrite, kTruncate, kSync, kRename, kUnlink, kMark };
enum Need { kNoRoom, kRoom };  // whether a call can fail on a full disk

struct Header {
  uint32_t operation, name_bytes;
  uint64_t device, inode;
  int64_t number;  // an offset, a size or a mark
  uint64_t data_bytes;
};

std::recursive_mutex mutex;
char base[PATH_MAX];  // of base_size characters; empty: switched off. No object, which ends before the process does
size_t base_size;
int record = -1;
long long calls, fail_at;
int fail_code;
bool fail_once;

template <typename Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define REAL(name)                                \
  [] {                                            \
    static auto* function = real(&::name, #name); \
    return function;                              \
  }()

std::string file_of(int descriptor) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const long size = syscall(SYS_readlink, link.c_str(), path, sizeof path);
  return size < 0 ? "" : std::string(path, static_cast<size_t>(size));
}

std::string absolute(int folder, const char* path) {
  if (path[0] == '/') return path;
  if (folder != AT_FDCWD) return file_of(folder) + "/" + path;
  char here[PATH_MAX];
  return syscall(SYS_getcwd, here, sizeof here) < 0 ? "" : std::string(here) + "/" + path;
}

bool inside(const std::string& path) {
  return base_size > 0 && path.compare(0, base_size, base) == 0 && (path.size() == base_size || path[base_size] == '/');
}

bool inside(int descriptor) { return base_size > 0 && inside(file_of(descriptor)); }

bool recorded(const std::string& path) {  // shared memory is not on a disk
  return record >= 0 && (path.size() < 4 || path.compare(path.size() - 4, 4, "-shm") != 0);
}

bool fails(Need need) {
  if (fail_code == 0 || ((fail_code == ENOSPC || fail_code == EDQUOT) && need == kNoRoom)) return false;
  ++calls;
  if (fail_at == 0 || calls < fail_at || (fail_once && calls > fail_at)) return false;
  errno = fail_code;
  return true;
}

void write_record(Header header, const std::string& name, const void* data) {
  const int before = errno;
  header.name_bytes = static_cast<uint32_t>(name.size());
  const iovec parts[] = {{&header, sizeof header},
                         {const_cast<char*>(name.data()), name.size()},
                         {const_cast<void*>(data), header.data_bytes}};
  const uint64_t size = sizeof header + name.size() + header.data_bytes;
  if (syscall(SYS_writev, record, parts, 3) != static_cast<long>(size)) _exit(99);
  errno = before;
}

void note(Operation operation, const std::string& path, int descriptor, int64_t number = 0, const void* data = nullptr,
          uint64_t data_bytes = 0) {
  struct stat found{};
  const long failed = descriptor < 0 ? syscall(SYS_newfstatat, AT_FDCWD, path.c_str(), &found, AT_SYMLINK_NOFOLLOW)
                                     : syscall(SYS_newfstatat, descriptor, "", &found, AT_EMPTY_PATH);
  if (failed) found = {};
  const std::string name = descriptor < 0 ? path.substr(base_size) : "";
  write_record({operation, 0, found.st_dev, found.st_ino, number, data_bytes}, name, data);
}

bool exists(const std::string& path) { return syscall(SYS_faccessat, AT_FDCWD, path.c_str(), F_OK) == 0; }

int open_file(int folder, const char* name, int flags, mode_t mode) {
  const std::lock_guard lock(mutex);
  const std::string path = base_size == 0 ? "" : absolute(folder, name);
  if (!inside(path)) return REAL(openat)(folder, name, flags, mode);
  const bool is_new = (flags & O_CREAT) != 0 && !exists(path);
  if (fails((flags & O_CREAT) != 0 ? kRoom : kNoRoom)) return -1;
  const int file = REAL(openat)(folder, name, flags, mode);
  if (file >= 0 && recorded(path)) {
    if (is_new)
      note(kCreate, path, -1);
    else if ((flags & O_TRUNC) != 0)
      note(kTruncate, path, file, 0);
  }
  return file;
}

// Of a write that fails, half is there.
ssize_t write_file(int file, const void* data, size_t size, off_t offset, bool positioned) {
  const std::lock_guard lock(mutex);
  const auto write_some = [&](size_t some) {
    return positioned ? REAL(pwrite)(file, data, some, offset) : REAL(write)(file, data, some);
  };
  const std::string path = base_size == 0 ? "" : file_of(file);
  if (!inside(path)) return write_some(size);
  if (fails(kRoom)) {
    if (size > 1) write_some(size / 2);
    errno = fail_code;
    return -1;
  }
  const ssize_t written = write_some(size);
  if (written > 0 && recorded(path)) {
    const off_t at = positioned ? offset : lseek(file, 0, SEEK_CUR) - written;
    note(kWrite, path, file, at, data, static_cast<uint64_t>(written));
  }
  return written;
}

template <typename Call>
int change(const std::string& path, Need need, Operation operation, Call call, int file = -1, int64_t number = 0) {
  const std::lock_guard lock(mutex);
  if (!inside(path)) return call();
  if (fails(need)) return -1;
  if (operation == kUnlink && recorded(path) && exists(path)) note(operation, path, -1);
  const int answer = call();
  if (answer == 0 && operation != kUnlink && recorded(path)) note(operation, path, file, number);
  return answer;
}

int rename_file(int folder, const char* name, int new_folder, const char* new_name) {
  const std::lock_guard lock(mutex);
  const std::string path = absolute(folder, name), target = absolute(new_folder, new_name);
  if (!inside(path) && !inside(target)) return REAL(renameat)(folder, name, new_folder, new_name);
  if (fails(kRoom)) return -1;
  const int answer = REAL(renameat)(folder, name, new_folder, new_name);
  if (answer == 0 && recorded(path)) {
    write_record({kRename, 0, 0, 0, 0, 0}, path.substr(base_size) + '\0' + target.substr(base_size), nullptr);
  }
  return answer;
}

// Calls that change nothing.
template <typename Where, typename Call>
auto look(const Where& where, Call call) -> decltype(call()) {
  const std::lock_guard lock(mutex);
  if (base_size > 0 && inside(where) && fails(kNoRoom)) return -1;
  return call();
}

}  // namespace

extern "C" {

// Switches the library on. record_file: where calls are recorded, or "". at: which call fails, counted from 1, or 0.
void disk_calls_begin(const char* folder, const char* record_file, long long at, int code, int once) {
  const std::lock_guard lock(mutex);
  record = record_file[0] == '\0' ? -1 : REAL(open)(record_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  calls = 0;
  fail_at = at;
  fail_code = code;
  fail_once = once != 0;
  base_size = std::min(strlen(folder), sizeof base - 1);
  memcpy(base, folder, base_size);
  base[base_size] = '\0';
}

// Records a number.
void disk_calls_mark(long long number) { write_record({kMark, 0, 0, 0, number, 0}, "", nullptr); }

// How many calls could have failed so far.
long long disk_calls_count() { return calls; }

#define MODE                     \
  mode_t mode = 0;               \
  if ((flags & O_CREAT) != 0) {  \
    va_list more;                \
    va_start(more, flags);       \
    mode = va_arg(more, mode_t); \
    va_end(more);                \
  }

int open(const char* name, int flags, ...) { MODE return open_file(AT_FDCWD, name, flags, mode); }
int open64(const char* name, int flags, ...) { MODE return open_file(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char* name, int flags, ...) { MODE return open_file(folder, name, flags, mode); }
int openat64(int folder, const char* name, int flags, ...) { MODE return open_file(folder, name, flags, mode); }
int creat(const char* name, mode_t mode) { return open_file(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

ssize_t write(int file, const void* data, size_t size) { return write_file(file, data, size, 0, false); }
ssize_t pwrite(int file, const void* data, size_t size, off_t at) { return write_file(file, data, size, at, true); }
ssize_t pwrite64(int file, const void* data, size_t size, off64_t at) { return write_file(file, data, size, at, true); }

int ftruncate(int file, off_t size) noexcept {
  return change(file_of(file), kRoom, kTruncate, [=] { return REAL(ftruncate)(file, size); }, file, size);
}
int ftruncate64(int file, off64_t size) noexcept { return ftruncate(file, size); }
int fsync(int file) {
  return change(file_of(file), kRoom, kSync, [=] { return REAL(fsync)(file); }, file);
}
int fdatasync(int file) {
  return change(file_of(file), kRoom, kSync, [=] { return REAL(fdatasync)(file); }, file);
}

int mkdirat(int folder, const char* name, mode_t mode) noexcept {
  return change(absolute(folder, name), kRoom, kMkdir, [=] { return REAL(mkdirat)(folder, name, mode); });
}
int mkdir(const char* name, mode_t mode) noexcept { return mkdirat(AT_FDCWD, name, mode); }
int unlinkat(int folder, const char* name, int flags) noexcept {
  return change(absolute(folder, name), kNoRoom, kUnlink, [=] { return REAL(unlinkat)(folder, name, flags); });
}
int unlink(const char* name) noexcept { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char* name) noexcept { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int renameat(int folder, const char* name, int new_folder, const char* new_name) noexcept {
  return rename_file(folder, name, new_folder, new_name);
}
int rename(const char* name, const char* new_name) noexcept { return rename_file(AT_FDCWD, name, AT_FDCWD, new_name); }

int close(int file) {
  const std::lock_guard lock(mutex);
  const bool failed = inside(file) && fails(kNoRoom);
  const int answer = REAL(close)(file);  // the descriptor is free even so
  if (failed) errno = fail_code;
  return failed ? -1 : answer;
}
ssize_t read(int file, void* data, size_t size) {
  return look(file, [=] { return REAL(read)(file, data, size); });
}
ssize_t pread(int file, void* data, size_t size, off_t at) {
  return look(file, [=] { return REAL(pread)(file, data, size, at); });
}
ssize_t pread64(int file, void* data, size_t size, off64_t at) { return pread(file, data, size, at); }

int fstat(int file, struct stat* found) noexcept {
  return look(file, [=] { return REAL(fstat)(file, found); });
}
int fstatat(int folder, const char* name, struct stat* found, int flags) noexcept {
  return look(absolute(folder, name), [=] { return REAL(fstatat)(folder, name, found, flags); });
}
int stat(const char* name, struct stat* found) noexcept { return fstatat(AT_FDCWD, name, found, 0); }
int lstat(const char* name, struct stat* found) noexcept { return fstatat(AT_FDCWD, name, found, AT_SYMLINK_NOFOLLOW); }
int fstat64(int file, struct stat64* found) noexcept { return fstat(file, reinterpret_cast<struct stat*>(found)); }
int fstatat64(int folder, const char* name, struct stat64* found, int flags) noexcept {
  return fstatat(folder, name, reinterpret_cast<struct stat*>(found), flags);
}
int stat64(const char* name, struct stat64* found) noexcept { return fstatat64(AT_FDCWD, name, found, 0); }
int lstat64(const char* name, struct stat64* found) noexcept {
  return fstatat64(AT_FDCWD, name, found, AT_SYMLINK_NOFOLLOW);
}

}  // extern "C"
