// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/process_lock.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/process_state.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace weightfs::test {
namespace {

class Place {
 public:
  Place() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  ~Place() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::filesystem::path lock() const { return std::filesystem::path(path_) / "lock"; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "weightfs-lock-XXXXXX";
};

std::optional<Errc> refusal(const std::filesystem::path& path) {
  try {
    const ProcessLock lock(path, "the store");
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

/// A process that has the lock until it is killed; `main_thread` is what its first thread does
/// then. Killed and reaped at the end.
class Holder {
 public:
  Holder(const std::filesystem::path& path, void (*main_thread)()) {
    int ready[2];
    REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      try {
        const ProcessLock lock(path, "the store");
        pthread_t other{};
        const auto wait = [](void*) -> void* {
          for (;;) ::pause();
        };
        if (::pthread_create(&other, nullptr, wait, nullptr) != 0) ::_exit(2);
        if (::write(ready[1], "1", 1) != 1) ::_exit(2);
        for (;;) main_thread();
      } catch (const std::exception&) {
        ::_exit(1);
      }
    }
    ::close(ready[1]);
    char came = 0;
    REQUIRE(::read(ready[0], &came, 1) == 1);
    ::close(ready[0]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

void end_main_thread() {
  ::syscall(SYS_exit, 0);
}
void wait_for_signals() {
  ::pause();
}

bool eventually(const std::function<bool()>& is_so) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_CASE("a lock has one holder, which is named, and ends with it") {
  const Place place;
  {
    const ProcessLock lock(place.lock(), "the store");
    CHECK_THROWS_WITH(
        ProcessLock(place.lock(), "the store"),
        Catch::Matchers::ContainsSubstring("in use by process " + std::to_string(::getpid())));
  }
  CHECK(refusal(place.lock()) == std::nullopt);
  {
    const Holder other(place.lock(), wait_for_signals);
    CHECK(refusal(place.lock()) == Errc::kBusy);
  }
  CHECK(refusal(place.lock()) == std::nullopt);
}

TEST_CASE("the lock of a process that will never run again is taken over, once") {
  const Place place;
  const Holder hanging(place.lock(), end_main_thread);
  REQUIRE(eventually([&] {
    const std::optional<ProcessState> state = process_state(hanging.pid());
    return state && state->main_thread_ended;
  }));
  const ProcessLock lock(place.lock(), "the store");
  CHECK(lock.taken_over());
  CHECK(refusal(place.lock()) == Errc::kBusy);
}

TEST_CASE("a lock that is only looked at is neither made nor changed, and kept from others") {
  const Place place;
  const std::filesystem::path directory = place.lock().parent_path();
  const Fd top = open_file(directory, O_PATH | O_DIRECTORY);
  const auto look = [&] { return keep_unlocked(top, "lock", directory, "the store"); };
  CHECK_FALSE(look());
  CHECK_FALSE(std::filesystem::exists(place.lock()));
  {
    const Holder other(place.lock(), wait_for_signals);
    CHECK_THROWS_WITH(look(), Catch::Matchers::ContainsSubstring("in use by process " +
                                                                 std::to_string(other.pid())));
  }
  const std::string note = read_file(place.lock(), 100);
  {
    const Fd kept = look();
    CHECK(kept);
    CHECK(refusal(place.lock()) == Errc::kBusy);
    CHECK(read_file(place.lock(), 100) == note);
  }
  CHECK(refusal(place.lock()) == std::nullopt);

  const Holder hanging(place.lock(), end_main_thread);
  REQUIRE(eventually([&] {
    const std::optional<ProcessState> state = process_state(hanging.pid());
    return state && state->main_thread_ended;
  }));
  CHECK_NOTHROW(look());
}

TEST_CASE("a note that names another process than the holder frees nothing") {
  const Place place;
  const Holder hanging(place.lock(), end_main_thread);
  const std::string pid = std::to_string(hanging.pid());
  for (const std::string& note : {pid + " 1\n", pid + "\n", std::string("0 0\n"), std::string()}) {
    const Fd file = open_file(place.lock(), O_WRONLY | O_TRUNC);
    write_at(file, 0, std::as_bytes(std::span(note)));
    CHECK(refusal(place.lock()) == Errc::kBusy);
  }
}

}  // namespace
}  // namespace weightfs::test
